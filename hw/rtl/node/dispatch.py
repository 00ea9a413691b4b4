"""Which operation the core takes next."""

from amaranth import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.params import Params
from hw.params.protocol import RING_BITS
from hw.rtl.arbiter import next_in_turn
from hw.rtl.node.data.layouts import landed_layout, read_done_layout
from hw.rtl.node.layouts import Kind, operation_layout


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
    landed, done : In, streams of `landed_layout(params)` and `read_done_layout(params)`
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
                "hold": In(1),
                "landed": In(stream.Signature(landed_layout(params))),
                "done": In(stream.Signature(read_done_layout(params))),
                "losses": In(stream.Signature(RING_BITS)).array(ports),
                "commands": In(operations).array(ports + 1),
                "expired": In(ports),
                "operations": Out(operations),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        ports = self._params.tables.ports
        op, ready = self.operations.payload, self.operations.ready
        landed, done = self.landed.payload, self.done.payload

        asking = Signal(len(self.commands))
        last, held, source = (Signal(range(ports + 1), name=name) for name in ("last", "held", "source"))
        together = Signal()
        m.d.comb += [asking[i].eq(each.valid) for i, each in enumerate(self.commands)]
        turn = next_in_turn(m, asking, last)
        m.d.comb += source.eq(Mux(together, held, turn))

        losing, lost_last = Signal(ports), Signal(range(ports))
        losses_turn = Signal(init=1)
        m.d.comb += [losing[i].eq(each.valid) for i, each in enumerate(self.losses)]
        loser = next_in_turn(m, losing, lost_last)

        with m.If(self.hold):
            m.d.comb += [self.landed.ready.eq(1), self.done.ready.eq(1)]
            m.d.sync += together.eq(0)
        with m.Elif(self.landed.valid & ~together):
            m.d.comb += [
                self.operations.valid.eq(1),
                self.landed.ready.eq(ready),
                op.kind.eq(Kind.LANDED),
                op.handle.frame.eq(landed.frame),
                op.count.eq(landed.count),
                op.ok.eq(landed.ok),
            ]
        with m.Elif(self.done.valid & ~together):
            m.d.comb += [
                self.operations.valid.eq(1),
                self.done.ready.eq(ready),
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
                with m.If(commands.valid & (source == i)):
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
