"""CLOCK: a hand for each partition over packed words of frames, and a queue of victims behind it."""

from amaranth import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from hw.params.params import Params
from hw.rtl.node.packed_words import Geometry, PackedWords
from hw.rtl.table import Table


class Clock(wiring.Component):
    """Finds the next block of a partition to evict, by what `words` hold of each frame and nothing else.

    The hand of a partition passes over a word of its pool at a step. Of the partition's own frames that may be evicted
    and are not queued, a referenced one loses its reference, another is queued, until the queue is full. Victims are
    taken from the queue, and looked at once more.

    Parameters
    ----------
    params
        Pools, partitions, and the sizes of words and queues.

    Interface
    ---------
    ready : Out(1)
        The words and queues are initialised.
    rewind, rewind_partition : In
        The partition changes pools: its hand goes to the start, its queue is emptied.
    start, partition, pool : In
        Find a victim of `partition` in `pool`.
    done : Out(1)
        The search has ended; it stays ended until the next `start`.
    found, victim : Out
        Whether there is one, and which.
    stalled : Out(1)
        The hand moves further than an ALLOC's usual steps, in this cycle.
    idle : In(1)
        In this cycle there is no search, and nothing is marked: the scrubbers may work.
    uncorrectable : Out(1)
        What was read of words and queues, by a search or by a scrubber, is lost.

    Latency and throughput
    ----------------------
    A search takes 2 cycles, 3 for each step of the hand and 1 more for each frame it queues, 3 for each
    entry it takes from the queue; usually some 10 in all, and at most (2 x words + 3) x (scan_frames + 3) +
    3 x (victims + frames).

    Ordering and stalls
    -------------------
    One search at a time; the words are not marked meanwhile.

    Reset and errors
    ----------------
    Reset empties the queues, and begins the sweep of words and queues. After `uncorrectable` a search still ends, but
    its victim is not to be trusted.

    Invariants
    ----------
    A search fails only when no frame of the partition may be evicted.

    Counters
    --------
    `stalled` is counted as `replacement_stall_steps`.
    """

    def __init__(self, params: Params):
        self._params = params
        partition = bits_for(params.tables.partitions - 1)
        frame = bits_for(params.frames - 1)
        self.words = PackedWords(params)
        super().__init__(
            {
                "ready": Out(1),
                "rewind": In(1),
                "rewind_partition": In(partition),
                "start": In(1),
                "partition": In(partition),
                "pool": In(bits_for(len(params.pools) - 1)),
                "done": Out(1),
                "found": Out(1),
                "victim": Out(frame),
                "stalled": Out(1),
                "idle": In(1),
                "uncorrectable": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:  # noqa: PLR0915 (one machine, state by state)
        m = Module()
        params, tables = self._params, self._params.tables
        partitions, depth = tables.partitions, tables.victims
        geometry = Geometry(params)
        lanes, lane_bits = geometry.lanes, geometry.lane_bits
        owner_bits = len(self.partition)
        m.submodules.words = words = self.words
        word = words.word

        # Hands and queues, one a partition.
        rest_bits = bits_for(max(pool.frames for pool in params.pools))
        hand = Signal(data.ArrayLayout(rest_bits, partitions))
        oldest = Signal(data.ArrayLayout(bits_for(depth - 1), partitions))
        count = Signal(data.ArrayLayout(bits_for(depth), partitions))
        places = partitions * depth
        m.submodules.queue = queue = Table(shape=self.victim.shape(), depth=places, ecc=tables.ecc)
        p = Signal.like(self.partition)
        pool = Signal.like(self.pool)
        size = Array(Const(pool.frames) for pool in params.pools)[pool]
        first = Array(map(Const, geometry.first_frames))[pool]
        first_word = Array(map(Const, geometry.first_words))[pool]
        steps_around = Array(map(Const, geometry.words_of))[pool]
        place = Signal(range(2 * depth))
        m.d.comb += [
            place.eq(oldest[p] + count[p]),
            queue.read_address.eq(p * depth + oldest[p]),
            queue.write_address.eq(p * depth + Mux(place >= depth, place - depth, place)),
            queue.idle.eq(self.idle),
            words.idle.eq(self.idle),
            self.uncorrectable.eq(queue.uncorrectable | words.uncorrectable),
        ]
        full = count[p] == depth

        # The word in hand: candidates from the hand's lane on, up to the end of the pool.
        lane = Signal(range(lanes + 1))
        cleared, queued = Signal(lanes), Signal(lanes)
        candidates, plain = Signal(lanes), Signal(lanes)
        word_start = Signal(rest_bits)
        for i in range(lanes):
            own = word.owner[i * owner_bits : (i + 1) * owner_bits] == p
            here = (lane <= i) & (word_start + i < size)
            m.d.comb += candidates[i].eq(word.evictable[i] & ~word.queued[i] & own & here)
        m.d.comb += plain.eq(candidates & ~word.referenced)
        lowest = Signal(lanes)
        number = Signal(range(lanes))
        m.d.comb += lowest.eq(plain & -plain)
        for i in range(lanes):
            with m.If(lowest[i]):
                m.d.comb += number.eq(i)
        end = Signal(rest_bits)
        m.d.comb += [
            end.eq(Mux(word_start + lanes > size, size, word_start + lanes)),
            queue.write_data.eq(first + word_start + number),
        ]

        steps = Signal(range(2 * max(geometry.words_of) + tables.scan_steps + 2))
        usual = steps < tables.scan_steps
        popped = geometry.locate(queue.read_data)
        bit = popped[:lane_bits]
        queued_here = word.queued.bit_select(bit, 1)
        owned_here = word.owner.word_select(bit, owner_bits) == p
        with m.FSM():
            with m.State("IDLE"), m.If(self.start):
                m.d.sync += [p.eq(self.partition), pool.eq(self.pool), steps.eq(0), self.done.eq(0)]
                m.next = "STEP"
            with m.State("STEP"):
                m.d.comb += [
                    self.stalled.eq(~usual),
                    words.read.eq(1),
                    words.address.eq(first_word + hand[p][lane_bits:]),
                ]
                m.d.sync += [
                    steps.eq(steps + 1),
                    lane.eq(hand[p][:lane_bits]),
                    word_start.eq(Cat(Const(0, lane_bits), hand[p][lane_bits:])),
                    cleared.eq(0),
                    queued.eq(0),
                ]
                m.next = "SCAN"
                with m.If(full):
                    m.next = "STEPPED"
            with m.State("SCAN"):
                with m.If(plain.any() & ~full):
                    m.d.comb += queue.write.eq(1)
                    m.d.sync += [
                        count[p].eq(count[p] + 1),
                        cleared.eq(cleared | (candidates & (lowest - 1))),
                        queued.eq(queued | lowest),
                        lane.eq(number + 1),
                    ]
                with m.Else():
                    with m.If(full):
                        m.d.sync += hand[p].eq(Mux(word_start + lane == size, 0, word_start + lane))
                    with m.Else():
                        m.d.sync += [cleared.eq(cleared | candidates), hand[p].eq(Mux(end == size, 0, end))]
                    m.next = "WRITE"
            with m.State("WRITE"):
                m.d.comb += [
                    words.target.eq(first_word + word_start[lane_bits:]),
                    words.mask.referenced.eq(cleared),
                    words.mask.queued.eq(queued),
                    words.new.queued.eq(queued),
                ]
                m.next = "STEPPED"
            with m.State("STEPPED"):
                m.next = "STEP"
                with m.If(~usual):
                    m.next = "POP"
            with m.State("POP"):
                m.d.comb += queue.read.eq(1)
                m.next = "LOOK"
                with m.If(count[p] == 0):
                    m.next = "STEP"
                    with m.If(steps == tables.scan_steps + 2 * steps_around + 1):
                        m.d.sync += [self.done.eq(1), self.found.eq(0)]
                        m.next = "IDLE"
            with m.State("LOOK"):
                m.d.comb += [words.read.eq(1), words.address.eq(popped[lane_bits:])]
                m.d.sync += [
                    oldest[p].eq(Mux(oldest[p] == depth - 1, 0, oldest[p] + 1)),
                    count[p].eq(count[p] - 1),
                ]
                m.next = "JUDGE"
            with m.State("JUDGE"):
                m.next = "POP"
                with m.If(queued_here & owned_here):
                    m.d.comb += [words.target.eq(popped[lane_bits:]), words.mask.queued.eq(1 << bit)]
                    with m.If(word.evictable.bit_select(bit, 1) & ~word.referenced.bit_select(bit, 1)):
                        m.d.sync += [self.done.eq(1), self.found.eq(1), self.victim.eq(queue.read_data)]
                        m.next = "IDLE"

        # The sweep: nothing is in the queues, but every row is a codeword.
        sweep, swept = Signal(range(places)), Signal()
        m.d.comb += self.ready.eq(words.ready & swept)
        with m.If(~swept):
            m.d.comb += [queue.write.eq(1), queue.write_address.eq(sweep), queue.write_data.eq(0)]
            m.d.sync += [sweep.eq(sweep + 1), swept.eq(sweep == places - 1)]

        with m.If(self.rewind):
            m.d.sync += [hand[self.rewind_partition].eq(0), count[self.rewind_partition].eq(0)]
        return m
