"""The administrator at the registers, as one more source of commands."""

from amaranth import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.params import Params
from hw.params.protocol import EPOCH_BITS, REGISTER_TAG, STATUS_BITS, ModelState, Opcode, Status
from hw.rtl.csr.layouts import ADMIN_COMMAND
from hw.rtl.fabric.layouts import COMMAND
from hw.rtl.node.layouts import operation_layout, verdict_layout
from hw.rtl.node.port.decode import decode


class Administrator(wiring.Component):
    """Makes operations of what the registers ask for, one at a time, and statuses of their verdicts.

    Parameters
    ----------
    params
        Widths.

    Interface
    ---------
    start, epoch : In
        Take `epoch` into use.
    commands, statuses : In and Out, streams of `ADMIN_COMMAND` and of 5 bits
        As of `SliceControl`.
    operations : Out, stream of `operation_layout(params)`
    verdict_valid, verdict : In, `verdict_layout()`
        What the core says of them; always taken.
    restart : In(1)
        The core forgets everything: a command under way ends UNAVAILABLE, an epoch that waits is not taken. No verdict
        comes after it that was asked for before.

    Latency and throughput
    ----------------------
    One cycle each way.

    Ordering and stalls
    -------------------
    One at a time; an epoch goes first.

    Reset and errors
    ----------------
    Not to be reset by a restart. Commands that are not the administrator's end INVALID, as do those that do not fit.

    Invariants and counters
    -----------------------
    Part of 10. None.
    """

    def __init__(self, params: Params):
        self._params = params
        super().__init__(
            {
                "start": In(1),
                "epoch": In(EPOCH_BITS),
                "commands": In(stream.Signature(ADMIN_COMMAND)),
                "statuses": Out(stream.Signature(STATUS_BITS)),
                "operations": Out(stream.Signature(operation_layout(params))),
                "verdict_valid": In(1),
                "verdict": In(verdict_layout()),
                "restart": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        asked, op = self.commands.payload, self.operations.payload
        starting, under_way, owed = Signal(), Signal(), Signal()
        taken = self.operations.valid & self.operations.ready
        command = Signal(COMMAND)
        settings = command.subject.settings
        m.d.comb += [
            command.opcode.eq(asked.opcode),
            command.model.eq(asked.model),
            command.flags.live.eq(asked.state == ModelState.LIVE),
            settings.partition.eq(asked.partition),
            settings.pool.eq(asked.pool),
            settings.public.eq(asked.public),
            settings.binding.eq(asked.binding),
            settings.port.eq(asked.port),
            settings.ring.eq(asked.ring),
            settings.quota.eq(asked.quota),
            settings.guarantee.eq(asked.guarantee),
            command.slot.read_mask.eq(asked.read_mask),
        ]
        with m.If(starting):
            m.d.comb += [command.opcode.eq(Opcode.SET_EPOCH), command.slot.epoch.eq(self.epoch)]
        decode(m, self._params, command, op)
        foreign = (asked.opcode < Opcode.BIND) | (asked.opcode >= Opcode.SET_EPOCH)
        known = (asked.state == ModelState.LIVE) | (asked.state == ModelState.READ_ONLY)
        with m.If(~starting & (foreign | ((asked.opcode == Opcode.SET_MODEL) & ~known))):
            m.d.comb += op.malformed.eq(1)
        m.d.comb += [
            op.stamp.registers.eq(1),
            op.tag.eq(REGISTER_TAG),
            op.last.eq(1),
            self.operations.valid.eq((starting | self.commands.valid) & ~under_way),
            self.commands.ready.eq((taken & ~starting) | self.restart),
        ]

        ended = self.verdict_valid & owed
        m.d.comb += [
            self.statuses.valid.eq(ended | (self.restart & (owed | self.commands.valid))),
            self.statuses.payload.eq(Mux(ended, self.verdict.status, Status.UNAVAILABLE)),
        ]
        with m.If(taken):
            m.d.sync += [under_way.eq(1), owed.eq(~starting), starting.eq(0)]
        with m.If(self.start):
            m.d.sync += starting.eq(1)
        with m.If(self.verdict_valid | self.restart):
            m.d.sync += [under_way.eq(0), owed.eq(0)]
        with m.If(self.restart):
            m.d.sync += starting.eq(0)
        return m
