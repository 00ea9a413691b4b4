"""Commands off a link: one after the other, taken apart into operations."""

from amaranth import Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for, exact_log2

from hw.params import Params
from hw.params.protocol import ITEM_BITS, KEY_BITS, KEY_BYTES, PORT_BITS, RING_BITS, Opcode, Status
from hw.rtl.fabric.layouts import COMMAND, COMMAND_BYTES, Channel, flit_layout, to_node_buffers
from hw.rtl.node.layouts import Kind, operation_layout, verdict_layout
from hw.rtl.node.port.decode import decode
from hw.rtl.node.port.layouts import ANSWER, arrival_layout, move_layout


class CommandReader(wiring.Component):
    """Makes operations of the commands in a port's buffer, and says what becomes of the data of WRITEs.

    A command is offered only when nothing that it needs of this port or its requester can be missing later: all of its
    flits are here, of a WRITE a whole segment, of a READ a place in the data path, and there is room for every answer
    that it may be given. So the core never waits for a port.

    Parameters
    ----------
    params
        Widths, and section `link`.

    Interface
    ---------
    port : In
        Number of the port: half of the stamp. The other half, the ring, comes with the flit from trusted logic.
    arriving, arriving_ring, arriving_last : In
        A flit of a request enters the buffer.
    requests : In, stream of `flit_layout(params)`
        The buffer.
    segments : In, stream of `arrival_layout(params)`
        Segments of write data that are here.
    operations : Out, stream of `operation_layout(params)`
        What the commands ask for.
    expired : Out(1)
        What is offered was sent under a binding that its ring no longer has: whoever takes it gives it to nobody.
    rebound : In, a bit a ring
        The ring has been bound anew: what is in the buffer of it expires.
    verdict_valid, verdict : In, `verdict_layout()`
        What the core says of a command of this port.
    moves : Out, stream of `move_layout(params)`
        What becomes of each segment of write data, in order.
    refusals : Out, stream of `ANSWER`
        The answers to expired commands.
    room : In
        Answers that may be added to those owed.
    resumed, stays : In(1)
        A READ that was parked is under way again, or still has to wait.
    may_resume : Out(1)
        There is a place in the data path for one.
    lost : In(1)
        The port is lost: what the core has not begun is forgotten, what it has begun is ended.
    told : In(1)
        The core knows that the rings of the port are lost.
    idle : Out(1)
        No command is in hand, and no READ under way.

    Latency and throughput
    ----------------------
    From the last flit of a command of n flits (`params.flits(COMMAND_BYTES)`) to its operation n + 1 cycles, and as
    many from one command to the next; a key a cycle in a LOOKUP. A WRITE waits for its verdict, segment by segment,
    and a LOOKUP for its last, before the next command is offered.

    Ordering and stalls
    -------------------
    Commands in the order of the link. A command that has to wait holds up those behind it, of all rings of the port,
    and nobody else.

    Reset and errors
    ----------------
    Reset forgets the command in hand; the buffer has to be reset too. A command of a ring that the port does not have,
    and a packet that ends before its command, are malformed (INVALID), flits behind it are dropped. A LOOKUP with more
    keys than it says is cut; with fewer, its last key is the last one there is. A packet that the buffer does not hold
    is malformed, or cut. Data of a WRITE that is refused is dropped, segment by segment.

    A loss of the port withdraws what is offered, but for the further keys of a LOOKUP, which are all here. A WRITE of
    which the core has taken a segment is offered once more, with whatever data, when the core is `told`: it ends
    UNAVAILABLE. Segments that the core has accepted go on, all others stay, and nothing is read: the port has to be
    reset when it is at rest.

    Invariants
    ----------
    Part of 4 and 10: the stamp is this port's, and every command is answered once.

    Counters
    --------
    None.
    """

    def __init__(self, params: Params):
        self._params = params
        super().__init__(
            {
                "port": In(PORT_BITS),
                "arriving": In(1),
                "arriving_ring": In(RING_BITS),
                "arriving_last": In(1),
                "requests": In(stream.Signature(flit_layout(params))),
                "segments": In(stream.Signature(arrival_layout(params))),
                "operations": Out(stream.Signature(operation_layout(params))),
                "expired": Out(1),
                "rebound": In(params.tables.rings_per_port),
                "verdict_valid": In(1),
                "verdict": In(verdict_layout()),
                "moves": Out(stream.Signature(move_layout(params))),
                "refusals": Out(stream.Signature(ANSWER)),
                "room": In(bits_for(params.answers)),
                "resumed": In(1),
                "stays": In(1),
                "may_resume": Out(1),
                "lost": In(1),
                "told": In(1),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:  # noqa: PLR0915 (one machine, state by state)
        m = Module()
        params, memory = self._params, self._params.memory
        flit, op = self.requests.payload, self.operations.payload
        whole = self._whole(m)

        # The command in hand: its flits, and what follows from them.
        parts = params.flits(COMMAND_BYTES)
        words = Signal(data.ArrayLayout(8 * memory.beat_bytes, parts))
        command = Signal(COMMAND)
        part = Signal(range(parts))
        ring, tag = Signal.like(flit.ring), Signal.like(flit.tag)
        ended, short = Signal(), Signal()
        item = Signal(ITEM_BITS)
        left = Signal(range((1 << 32) // memory.segment_bytes + 1))
        m.d.comb += command.eq(words.as_value()[: COMMAND.size])
        decode(m, params, command, op)
        lookup, write = command.opcode == Opcode.LOOKUP, command.opcode == Opcode.WRITE
        no_keys = short | ended | (command.count == 0) | (command.count > params.tables.lookup_keys)
        data_bits = exact_log2(memory.segment_bytes)
        total = command.length[data_bits:] + command.length[:data_bits].any()
        segment = Signal(ITEM_BITS + 1)
        m.d.comb += [
            segment.eq(command.segment + item),
            op.stamp.port.eq(self.port),
            op.stamp.ring.eq(ring),
            op.tag.eq(tag),
            op.item.eq(item),
            op.last.eq(1),
        ]

        # The key in hand, of a LOOKUP.
        lanes = memory.beat_bytes // KEY_BYTES
        lane = Signal(range(lanes))
        last_lane, last_key = Signal(), Signal()
        m.d.comb += [
            last_lane.eq((lane == lanes - 1) | (flit.last & ((lane + 1) * KEY_BYTES >= flit.count))),
            last_key.eq((item + 1 == command.count) | (last_lane & flit.last)),
        ]

        taken, answered = Signal(), Signal()
        awaited = self.verdict.kind.matches(Kind.LOOKUP, Kind.WRITE)
        with m.If(self.verdict_valid & awaited & self.verdict.complete):
            m.d.sync += answered.eq(1)
        reading = Signal(range(memory.waiting_reads + 1))
        may_read = (command.opcode != Opcode.READ) | (reading != memory.waiting_reads)
        arrived, move = self.segments.payload, self.moves.payload
        m.d.comb += [
            taken.eq(self.operations.valid & self.operations.ready),
            move.frame.eq(command.subject.handle.frame),
            move.segment.eq(segment),
            move.crc.eq(arrived.crc),
        ]
        self._count_reads(m, reading, taken & (command.opcode == Opcode.READ))
        refusal = self.refusals.payload
        m.d.comb += [
            refusal.ring.eq(ring),
            refusal.tag.eq(tag),
            refusal.response.status.eq(Status.UNAVAILABLE),
            refusal.response.complete.eq(1),
            refusal.response.outcome.eq(Status.UNAVAILABLE),
        ]

        def end() -> None:
            """The command is done with; what is left of its packet is skipped."""
            m.next = "HEAD"
            with m.If(~ended):
                m.next = "SKIP"

        def drop(*, then: str) -> None:
            """The next segment of write data is dropped when it is here."""
            m.d.comb += [self.moves.valid.eq(self.segments.valid), self.segments.ready.eq(self.moves.ready)]
            with m.If(self.segments.valid & self.moves.ready):
                m.d.sync += left.eq(left - 1)
                with m.If(left == 1):
                    if then == "end":
                        end()
                    else:
                        m.next = then

        with m.FSM() as machine:
            with m.State("HEAD"), m.If(self.requests.valid & whole & ~self.lost):
                m.d.comb += self.requests.ready.eq(1)
                m.d.sync += [
                    words[part].eq(flit.data),
                    part.eq(part + 1),
                    ended.eq(flit.last),
                    short.eq(part != parts - 1),
                    item.eq(0),
                    lane.eq(0),
                ]
                with m.If(part == 0):
                    m.d.sync += [ring.eq(flit.ring), tag.eq(flit.tag)]
                with m.If(flit.last | (part == parts - 1)):
                    m.d.sync += part.eq(0)
                    m.next = "COMMAND"

            with m.State("COMMAND"):
                m.d.sync += [left.eq(total), answered.eq(0)]
                with m.If(self.lost):
                    m.next = "HEAD"
                with m.Elif(write & ~short & (command.length != 0)):
                    m.next = "SEGMENT"
                with m.Elif(lookup & ~no_keys & (self.room < command.count)):
                    m.next = "COMMAND"
                with m.Elif(lookup & ~no_keys):
                    m.next = "KEYS"
                with m.Else():
                    m.d.comb += self.operations.valid.eq((self.room != 0) & may_read)
                    with m.If(short | lookup):
                        m.d.comb += op.malformed.eq(1)
                    with m.If(taken):
                        end()
                        with m.If(lookup | write):
                            m.next = "ANSWERED"
                        with m.If(self.expired):
                            m.next = "REFUSE"

            with m.State("KEYS"):
                m.d.comb += [
                    self.operations.valid.eq(~self.lost | (item != 0)),
                    op.key.eq(flit.data.word_select(lane, KEY_BITS)),
                    op.last.eq(last_key),
                ]
                with m.If(taken):
                    m.d.sync += [item.eq(item + 1), lane.eq(Mux(last_lane, 0, lane + 1))]
                    with m.If(last_lane | last_key):
                        m.d.comb += self.requests.ready.eq(1)
                        m.d.sync += ended.eq(flit.last)
                    with m.If(last_key):
                        m.next = "ANSWERED"
                    with m.If(self.expired & (item == 0)):
                        m.next = "REFUSE"
                with m.If(self.lost & (item == 0)):
                    m.next = "HEAD"

            with m.State("ANSWERED"), m.If(answered):
                end()

            with m.State("SEGMENT"):
                with m.If(self.lost):
                    m.d.comb += self.operations.valid.eq((item != 0) & self.told & (self.room != 0))
                    with m.If(item == 0):
                        m.next = "HEAD"
                with m.Else():
                    m.d.comb += [
                        self.operations.valid.eq(self.segments.valid & self.moves.ready & (self.room != 0)),
                        op.segment.eq(segment),
                        op.malformed.eq(segment[ITEM_BITS:].any()),
                        op.length.eq(arrived.length),
                        op.crc.eq(arrived.crc),
                        op.last.eq(left == 1),
                    ]
                with m.If(taken):
                    m.next = "VERDICT"
                    with m.If(self.expired):
                        m.next = "EXPIRED"

            with m.State("VERDICT"), m.If(self.verdict_valid & (self.verdict.kind == Kind.WRITE)):
                m.d.comb += [
                    move.keep.eq(self.verdict.status == Status.OK),
                    self.moves.valid.eq(move.keep | ~self.lost),
                    self.segments.ready.eq(move.keep | ~self.lost),
                ]
                m.d.sync += [left.eq(left - 1), item.eq(item + 1)]
                with m.If(left == 1):
                    end()
                with m.Elif(self.verdict.complete):
                    m.next = "DROP"
                with m.Else():
                    m.next = "SEGMENT"

            with m.State("DROP"):
                with m.If(self.lost):
                    m.next = "HEAD"
                with m.Else():
                    drop(then="end")

            with m.State("EXPIRED"):
                with m.If(self.lost):
                    m.next = "REFUSE"
                with m.Else():
                    drop(then="REFUSE")

            with m.State("REFUSE"):
                m.d.comb += self.refusals.valid.eq(1)
                with m.If(self.refusals.ready):
                    end()

            with m.State("SKIP"):
                m.d.comb += self.requests.ready.eq(1)
                with m.If((self.requests.valid & flit.last) | self.lost):
                    m.next = "HEAD"
        m.d.comb += self.idle.eq(machine.ongoing("HEAD") & (reading == 0))

        # A ring that this port does not have must not be taken for one of the next port.
        with m.If(ring >= params.tables.rings_per_port):
            m.d.comb += op.malformed.eq(1)
        self._expire(m, ring, taken & (item == 0))
        return m

    def _whole(self, m: Module) -> Signal:
        """Return whether all of the first request is in the buffer, or as much as can be of one that is too long."""
        size = to_node_buffers(self._params)[Channel.REQUEST]
        packets, flits = Signal(range(size + 1)), Signal(range(size + 1))
        whole = Signal()
        leaves = self.requests.valid & self.requests.ready
        m.d.sync += [
            packets.eq(packets + (self.arriving & self.arriving_last) - (leaves & self.requests.payload.last)),
            flits.eq(flits + self.arriving - leaves),
        ]
        m.d.comb += whole.eq((packets != 0) | (flits == size))
        return whole

    def _count_reads(self, m: Module, reading: Signal, asked: Value) -> None:
        """Keep the number of READs that are under way; a READ ends when it is refused, parked or done.

        One that goes on begins again: never in the cycle in which another is asked for, so that both count in time.
        """
        kind = self.verdict.kind
        stopped = (kind == Kind.READ) & (self.verdict.complete | self.verdict.parked)
        ends = self.verdict_valid & (stopped | (kind == Kind.READ_DONE))
        m.d.comb += self.may_resume.eq(reading != self._params.memory.waiting_reads)
        m.d.sync += reading.eq(reading + ((asked & ~self.expired) | self.resumed) - ends - self.stays)

    def _expire(self, m: Module, ring: Signal, begins: Value) -> None:
        """Count the commands of each ring that wait here, and those of them that came before it was bound anew."""
        most = to_node_buffers(self._params)[Channel.REQUEST] + 1
        first = Signal(init=1)
        with m.If(self.arriving):
            m.d.sync += first.eq(self.arriving_last)
        for number in range(self._params.tables.rings_per_port):
            waiting, old, now = (Signal(range(most + 1), name=f"{name}_{number}") for name in ("waiting", "old", "now"))
            leaves = begins & (ring == number)
            m.d.comb += now.eq(waiting + (self.arriving & first & (self.arriving_ring == number)) - leaves)
            m.d.sync += waiting.eq(now)
            with m.If(self.rebound[number]):
                m.d.sync += old.eq(now)
            with m.Elif(leaves & (old != 0)):
                m.d.sync += old.eq(old - 1)
            with m.If(ring == number):
                m.d.comb += self.expired.eq(old != 0)
