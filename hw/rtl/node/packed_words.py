"""What the replacement hand needs to know of each frame, packed into words of many frames."""

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for, exact_log2

from hw.params.params import Params
from hw.rtl.table import Table


def word_layout(params: Params) -> data.StructLayout:
    """Return the layout of a word: of each lane, a frame, three bits and its owner.

    - `evictable`: SEALED, held by nothing, with a generation to go.
    - `referenced`: since the hand last passed.
    - `queued`: in its owner's queue of victims.
    """
    lanes = params.tables.scan_frames
    owner = bits_for(params.tables.partitions - 1)
    return data.StructLayout({"evictable": lanes, "referenced": lanes, "queued": lanes, "owner": lanes * owner})


class Geometry:
    """Where frames lie: the frames of a pool fill words from a word's start."""

    def __init__(self, params: Params):
        self.lanes = params.tables.scan_frames
        self.lane_bits = exact_log2(self.lanes)
        sizes = [pool.frames for pool in params.pools]
        self.words_of = [-(-size // self.lanes) for size in sizes]
        self.first_frames = [sum(sizes[:i]) for i in range(len(sizes))]
        self.first_words = [sum(self.words_of[:i]) for i in range(len(sizes))]
        self.words = sum(self.words_of)

    def locate(self, frame: Value) -> Value:
        """Word and lane of a frame, the lane in the low bits."""
        firsts = list(zip(self.first_frames, self.first_words, strict=True))
        place: Value = frame + self.first_words[0]
        for first_frame, first_word in firsts[1:]:
            place = Mux(frame >= first_frame, frame + (first_word * self.lanes - first_frame), place)
        return place[: bits_for(self.words * self.lanes - 1)]


class PackedWords(wiring.Component):
    """The words, written a bit at a time: by marks of single frames, or by the hand under a mask.

    In SRAM each bit is a codeword, and each owner one, so that a write of some needs no others: SECDED of one bit is
    four copies. That is 20 bits a frame instead of 7 for 16 partitions; a code over the word would take fewer, but a
    read, and all writes in flight forwarded, for each mark.

    Parameters
    ----------
    params
        Pools, partitions, `tables.scan_frames`, the frames of a word, and `tables.ecc`.

    Interface
    ---------
    ready : Out(1)
        The initialising sweep has passed: no frame may be evicted.
    mark, frame, evictable : In
        Note of `frame` whether it may be evicted.
    referenced : In(1)
        With `mark`: it was referenced as well.
    claimed, owner : In
        With `mark`: it belongs to `owner` from here on, neither referenced nor queued.
    read, address, word
        Ask for a word; it stands from the next cycle until the next `read`.
    mask, new, target : In
        Write the bits of word `target` that `mask` has, as in `new`; of an owner all or none. Not with `mark`.
    idle : In(1)
        In this cycle nothing is asked or written, and no word is needed any more: the scrubbers may work.
    uncorrectable : Out(1)
        The word that stands, or what a scrubber has read, is lost.

    Latency and throughput
    ----------------------
    One cycle from question to answer; a read, and a mark or write, a cycle.

    Ordering and stalls
    -------------------
    In the order of cycles. A word that is read while it is written is void.

    Reset and errors
    ----------------
    Reset begins the sweep. After `uncorrectable`, no word is to be trusted until reset.

    Invariants
    ----------
    None of its own.

    Counters
    --------
    None.
    """

    def __init__(self, params: Params):
        self._params = params
        self._geometry = Geometry(params)
        self._layout = word_layout(params)
        address = range(self._geometry.words)
        super().__init__(
            {
                "ready": Out(1),
                "mark": In(1),
                "frame": In(bits_for(params.frames - 1)),
                "evictable": In(1),
                "referenced": In(1),
                "claimed": In(1),
                "owner": In(bits_for(params.tables.partitions - 1)),
                "read": In(1),
                "address": In(address),
                "word": Out(self._layout),
                "mask": In(self._layout),
                "new": In(self._layout),
                "target": In(address),
                "idle": In(1),
                "uncorrectable": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        lanes, words = self._geometry.lanes, self._geometry.words
        bits, owner_bits, ecc = 3 * lanes, len(self.owner), self._params.tables.ecc
        m.submodules.flags = flags = Table(shape=bits, depth=words, lanes=bits, ecc=ecc)
        m.submodules.owners = owners = Table(shape=lanes * owner_bits, depth=words, lanes=lanes, ecc=ecc)
        new, mask, target = Signal(self._layout), Signal(self._layout), Signal.like(self.target)
        m.d.comb += [
            self.word.eq(Cat(flags.read_data, owners.read_data)),
            self.uncorrectable.eq(flags.uncorrectable | owners.uncorrectable),
            flags.write.eq(mask.as_value()[:bits]),
            flags.write_data.eq(new.as_value()[:bits]),
            owners.write.eq(Cat(mask.owner.word_select(lane, owner_bits).any() for lane in range(lanes))),
            owners.write_data.eq(new.owner),
            new.eq(self.new),
            mask.eq(self.mask),
            target.eq(self.target),
        ]
        for table in (flags, owners):
            m.d.comb += [
                table.read.eq(self.read),
                table.read_address.eq(self.address),
                table.write_address.eq(target),
                table.idle.eq(self.idle),
            ]

        place = Signal(range(words * lanes))
        lane = Signal(lanes)
        owner_lane = Cat(bit.replicate(owner_bits) for bit in lane)
        m.d.comb += [
            place.eq(self._geometry.locate(self.frame)),
            lane.eq(1 << place[: self._geometry.lane_bits]),
        ]
        with m.If(self.mark):
            m.d.comb += [
                target.eq(place[self._geometry.lane_bits :]),
                mask.evictable.eq(lane),
                new.evictable.eq(self.evictable.replicate(lanes)),
                mask.referenced.eq(Mux(self.referenced | self.claimed, lane, 0)),
                new.referenced.eq(self.referenced.replicate(lanes)),
                mask.queued.eq(Mux(self.claimed, lane, 0)),
                new.queued.eq(0),
                mask.owner.eq(Mux(self.claimed, owner_lane, 0)),
                new.owner.eq(self.owner.replicate(lanes)),
            ]

        sweep = Signal(range(words))
        with m.If(~self.ready):
            m.d.comb += [target.eq(sweep), mask.as_value().eq(-1), new.as_value().eq(0)]
            m.d.sync += [sweep.eq(sweep + 1), self.ready.eq(sweep == words - 1)]
        return m
