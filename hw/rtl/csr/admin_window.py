"""Administrative commands that come through registers, one at a time."""

from amaranth import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.params.protocol import STATUS_BITS


class AdminWindow(wiring.Component):
    """Offers a command after the go pulse of a register, and keeps its status for reading.

    Interface
    ---------
    go : In, 1 bit
        Issue it. Not while `busy`.
    busy : Out, 1 bit
        From the cycle of `go` to that in which the status is taken.
    status : Out, 5 bits
        How the last command ended.
    ended : Out, 1 bit
        A command has ended, for one cycle; `status` is its status.
    valid, ready : Out and In, 1 bit
        The handshake of a stream whose payload is the command in the registers; their lock keeps it while `busy`.
    statuses : In, stream of 5 bits
        From the slice: one for each command, also across its restart.

    Latency and throughput
    ----------------------
    `valid` one cycle after `go`; `busy` falls one cycle after the status was taken.

    Ordering and stalls
    -------------------
    One command at a time; statuses are taken at once.

    Reset and errors
    ----------------
    Reset withdraws the command.

    Invariants
    ----------
    Part of invariant 10: one command for each `go`, one end for each command.

    Counters
    --------
    None.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "go": In(1),
                "busy": Out(1),
                "status": Out(STATUS_BITS),
                "ended": Out(1),
                "valid": Out(1),
                "ready": In(1),
                "statuses": In(stream.Signature(STATUS_BITS)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        under_way = Signal()
        m.d.comb += [
            self.busy.eq(under_way | self.go),
            self.statuses.ready.eq(1),
        ]
        m.d.sync += self.ended.eq(self.statuses.valid)
        with m.If(self.statuses.valid):
            m.d.sync += [under_way.eq(0), self.status.eq(self.statuses.payload)]
        with m.If(self.ready):
            m.d.sync += self.valid.eq(0)
        with m.If(self.go):
            m.d.sync += [under_way.eq(1), self.valid.eq(1)]
        return m
