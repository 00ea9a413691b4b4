"""Which operation the core takes next."""

from amaranth import Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.params import Params
from hw.params.protocol import RING_BITS
from hw.rtl.arbiter import next_in_turn
from hw.rtl.node.data.layouts import landed_layout, read_done_layout
from hw.rtl.node.layouts import Kind, operation_layout
from hw.rtl.node.rota import Turn, rota_member


class Dispatch(wiring.Component):
    """Chooses among what memory has answered, what requesters have lost, and what they and the administrator ask.

    Parameters
    ----------
    params
        Ports, and the widths of everything.

    Interface
    ---------
    hold : In(1)
        The slice restarts: commands wait, and what memory answers is taken for nothing.
    rota : In, `turn_layout(params)`
        Only where partitions are isolated.
    landed, done : In, streams of `landed_layout(params)` and `read_done_layout(params)`, one a share
        Of the data path.
    losses : In, streams of ring numbers, one a port
    commands : In, streams of `operation_layout(params)`, one a port and one of the administrator
    expired : In, a bit a port
        What the port offers is to be taken, and given to nobody.
    operations : Out, stream of `operation_layout(params)`
        As `Core` takes them.

    Latency and throughput
    ----------------------
    Combinational; an operation a cycle. While `operations` is not taken, one that goes first may take its place, so
    whoever takes it looks at it in the cycle of the handshake only.

    Ordering and stalls
    -------------------
    The keys of a LOOKUP stay together. Else memory goes first, so that a done bit waits for nothing but the operation
    in hand; then losses and commands in turn, and among these the ports, and for commands the administrator, in turn.
    None starves: of memory's answers there is one for each segment and READ that a command has begun.

    Where partitions are isolated, all this holds among what is of the partition whose turn it is, and what is not
    sure to end in it waits for the next one; a LOOKUP may be interrupted so between two of its keys. The administrator
    has the turns of the house.

    Reset and errors
    ----------------
    Reset forgets whose turn it is.

    Invariants and counters
    -----------------------
    Part of 10. None.
    """

    def __init__(self, params: Params):
        self._params = params
        ports = params.tables.ports
        operations = stream.Signature(operation_layout(params))
        super().__init__(
            {
                **rota_member(params),
                "hold": In(1),
                "landed": In(stream.Signature(landed_layout(params))).array(params.shares),
                "done": In(stream.Signature(read_done_layout(params))).array(params.shares),
                "losses": In(stream.Signature(RING_BITS)).array(ports),
                "commands": In(operations).array(ports + 1),
                "expired": In(ports),
                "operations": Out(operations),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        ports, times = self._params.tables.ports, self._params.times
        op, ready = self.operations.payload, self.operations.ready
        turn = Turn(self._params, self)

        asking = Signal(len(self.commands))
        last, held = (turn.each(range(ports + 1), name=name) for name in ("last", "held"))
        together, source = turn.each(1, name="together"), Signal(range(ports + 1))
        for i, each in enumerate(self.commands):
            asks = turn.house(each.valid) if i == ports else turn.only(each.valid, i)
            m.d.comb += asking[i].eq(turn.lasts(asks, self._cycles(each.payload)))
        m.d.comb += source.eq(Mux(together, held, next_in_turn(m, asking, last)))

        losing, lost_last = Signal(ports), turn.each(range(ports), name="lost_last")
        losses_turn = turn.each(1, name="losses_turn", init=1)
        m.d.comb += [
            losing[i].eq(turn.lasts(turn.only(each.valid, i), times.other)) for i, each in enumerate(self.losses)
        ]
        loser = next_in_turn(m, losing, lost_last)

        with m.If(self.hold):
            m.d.comb += [each.ready.eq(1) for each in (*self.landed, *self.done)]
            m.d.sync += together.eq(0)
        for i, memory in enumerate(self.landed):
            landed = memory.payload
            with m.Elif(turn.lasts(turn.only(memory.valid, i), times.other) & ~together):
                m.d.comb += [
                    self.operations.valid.eq(1),
                    memory.ready.eq(ready),
                    op.kind.eq(Kind.LANDED),
                    op.handle.frame.eq(landed.frame),
                    op.count.eq(landed.count),
                    op.ok.eq(landed.ok),
                ]
        for i, memory in enumerate(self.done):
            done = memory.payload
            with m.Elif(turn.lasts(turn.only(memory.valid, i), times.other) & ~together):
                m.d.comb += [
                    self.operations.valid.eq(1),
                    memory.ready.eq(ready),
                    op.kind.eq(Kind.READ_DONE),
                    op.handle.frame.eq(done.frame),
                    op.stamp.eq(done.stamp),
                    op.tag.eq(done.tag),
                    op.ok.eq(done.ok),
                ]
        with m.Elif(losing.any() & ~together & (losses_turn | ~asking.any())):
            m.d.comb += [self.operations.valid.eq(1), op.kind.eq(Kind.LOST), op.ring.port.eq(loser)]
            with m.If(ready):
                m.d.sync += [lost_last.eq(loser), losses_turn.eq(0)]
            for i, loss in enumerate(self.losses):
                with m.If(loser == i):
                    m.d.comb += [op.ring.ring.eq(loss.payload), loss.ready.eq(ready)]
        with m.Else():
            for i, commands in enumerate(self.commands):
                expired = self.expired[i] if i < ports else 0
                with m.If(asking[i] & (source == i)):
                    m.d.comb += [
                        self.operations.valid.eq(~expired),
                        op.eq(commands.payload),
                        commands.ready.eq(ready | expired),
                    ]
                    with m.If(commands.ready):
                        m.d.sync += [
                            losses_turn.eq(1),
                            last.eq(i),
                            held.eq(i),
                            together.eq((op.kind == Kind.LOOKUP) & ~op.last & ~expired),
                        ]
        return m

    def _cycles(self, op: data.View) -> Value:
        """For how long a command may keep the core busy."""
        times = self._params.times
        lookup = Mux(op.item == 0, times.lookup, times.key)
        return Mux(op.kind == Kind.ALLOC, times.alloc, Mux(op.kind == Kind.LOOKUP, lookup, times.other))
