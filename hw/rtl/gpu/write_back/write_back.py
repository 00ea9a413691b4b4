"""The write-back buffer of a requester."""

from typing import Any

from amaranth import Module, Mux, Signal, Value
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.params import Params, crc32c
from hw.params.protocol import ITEM_BITS, STATUS_BITS, EngineOpcode, Status
from hw.rtl.arbiter import merge
from hw.rtl.gpu.layouts import COUNTED_PUTS, answer_layout, ended_layout, start_layout, task_layout
from hw.rtl.gpu.write_back.admission import Admission
from hw.rtl.gpu.write_back.checksum import Checksum
from hw.rtl.gpu.write_back.flushes import Flushes
from hw.rtl.gpu.write_back.gate import Gate
from hw.rtl.gpu.write_back.issuer import Issuer
from hw.rtl.gpu.write_back.layouts import GIVEN, Phase, hook, seen_layout
from hw.rtl.gpu.write_back.reporter import Reporter
from hw.rtl.gpu.write_back.slots import Slots


class WriteBack(wiring.Component):
    """Takes PUTs into slots, and drains them in the background: ALLOC, WRITE and SEAL of each, and a completion.

    Parameters
    ----------
    params
        Section `requester`; the widths of everything.

    Interface
    ---------
    tasks, starts, ended, answers, running, cutting, urgent, idle : as of `Engines`
    seen : In, `seen_layout(params)`
        What happens around it.
    sessions : Out, `hook(params)`
        What the manager of sessions asks.
    counted : Out, `COUNTED_PUTS`
        What is to be counted in this cycle.

    Latency and throughput
    ----------------------
    A PUT a cycle into slots; it begins within as many cycles as there are slots. While the data of a block is sent, the
    next ones are allocated and those before sealed.

    Ordering and stalls
    -------------------
    PUTs begin when their fences let them, in turn; blocks are written one after the other. A descriptor waits for a
    slot; nothing else does.

    Reset and errors
    ----------------
    Reset forgets everything; the node has to be reset too. A PUT that fails behind its ALLOC gives its block up
    (ABORT), and tells the first failure. What is of a ring that does not run, or is under way when the link is cut
    off, ends UNAVAILABLE once its command has ended.

    Invariants
    ----------
    Part of 2, 9 and 10, as its parts.

    Counters
    --------
    None here: `counted` is to be counted.
    """

    def __init__(self, params: Params):
        self._params = params
        super().__init__(
            {
                "tasks": In(stream.Signature(task_layout(params))),
                "starts": Out(stream.Signature(start_layout(params))),
                "ended": In(stream.Signature(ended_layout(params))),
                "answers": Out(stream.Signature(answer_layout(params))),
                "running": In(params.tables.rings_per_port),
                "cutting": In(1),
                "seen": In(seen_layout(params)),
                "sessions": Out(hook(params)),
                "urgent": Out(1),
                "counted": Out(COUNTED_PUTS),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m, params = Module(), self._params
        self._admission, self._slots, self._gate = Admission(params), Slots(params), Gate(params)
        self._issuer, self._reporter, self._checksum = Issuer(params), Reporter(params), Checksum(params)
        admission, slots, gate = self._admission, self._slots, self._gate
        issuer, reporter, checksum = self._issuer, self._reporter, self._checksum
        m.submodules.admission = admission
        m.submodules.flushes = flushes = Flushes(params)
        m.submodules.slots = slots
        m.submodules.gate = gate
        m.submodules.issuer = issuer
        m.submodules.reporter = reporter
        m.submodules.checksum = checksum
        wiring.connect(m, wiring.flipped(self.tasks), admission.tasks)
        wiring.connect(m, issuer.starts, wiring.flipped(self.starts))
        merge(m, (reporter.answers, admission.dropped), self.answers)
        wiring.connect(m, reporter.wrote, wiring.flipped(self.sessions.wrote))
        for part in (admission, flushes, gate, issuer, reporter):
            m.d.comb += part.phases.eq(slots.phases)
        for part in (gate, issuer):
            m.d.comb += part.cutting.eq(self.cutting)
        for part in (admission, gate, issuer):
            m.d.comb += part.running.eq(self.running)
        for part in (admission, gate):
            m.d.comb += [part.fences.eq(self.seen.fences), part.halt.eq(self.sessions.halt)]
        ended = self.ended.payload
        m.d.comb += [
            self.ended.ready.eq(1),
            admission.free.eq(slots.free),
            admission.turn.eq(gate.turn),
            flushes.take.eq(admission.take),
            flushes.slot.eq(slots.next),
            flushes.before.eq(Mux(admission.new.flush, admission.before, 0)),
            slots.take.eq(admission.take),
            slots.new.eq(admission.new),
            slots.over.eq(flushes.over),
            slots.passed.eq(gate.passed),
            slots.stale.eq(gate.stale),
            slots.started.eq(issuer.started),
            slots.answered.eq(reporter.answered),
            slots.ended.valid.eq(self.ended.valid),
            slots.ended.slot.eq(ended.job),
            slots.ended.status.eq(ended.outcome.status),
            slots.summed.valid.eq(checksum.sums.valid),
            slots.summed.slot.eq(checksum.sums.payload.slot),
            slots.released.eq(self.seen.released),
            slots.context.eq(self.seen.context),
            self.sessions.drained.eq(gate.drained),
            gate.early.eq(admission.early),
            gate.late.eq(admission.late),
            gate.take.eq(admission.take),
            gate.next.eq(slots.next),
            issuer.next_tag.eq(self.seen.next_tag),
            checksum.begins.eq(issuer.writing),
            checksum.sent.eq(self.seen.sent),
            issuer.mover_free.eq(self.seen.mover_free),
            issuer.arrived.eq(self.seen.moved),
            issuer.moved.eq((slots.moved >> issuer.slot)[0]),
            reporter.status.eq(slots.status),
            reporter.moved.eq(slots.moved),
        ]
        self._keep(m)
        self._watch(m)
        return m

    def _keep(self, m: Module) -> None:
        """What slots have: their descriptors, what their ALLOCs were given, and what there is of their blocks."""
        slots, ended, sums = self._slots, self.ended, self._checksum.sums
        admission, issuer, reporter, checksum = self._admission, self._issuer, self._reporter, self._checksum
        descriptor = admission.task.descriptor
        phase = Signal(Phase)
        m.d.comb += phase.eq(slots.phases[slots.ended.slot])

        def table(name: str, shape: Any, write: tuple[Value, Value, Any], *reads: tuple[Value, Any]) -> None:
            """A memory that is written when, where and with what `write` says; who reads where, and gets what."""
            m.submodules[name] = rows = memory.Memory(shape=shape, depth=self._params.requester.slots, init=[])
            port = rows.write_port()
            m.d.comb += [wire.eq(value) for wire, value in zip((port.en, port.addr, port.data), write, strict=True)]
            for slot, target in reads:
                read = rows.read_port(domain="comb")
                m.d.comb += [read.addr.eq(slot), target.eq(read.data)]

        row = Signal(task_layout(self._params))
        m.d.comb += [self._gate.row.eq(row), admission.row.eq(row)]
        table(
            "rows",
            task_layout(self._params),
            (admission.take, slots.next, admission.task),
            (self._gate.turn, row),
            (issuer.slot, issuer.row),
            (reporter.slot, reporter.row),
        )
        table(
            "befores",
            crc32c.WIDTH,
            (admission.take, slots.next, Mux(descriptor.flags.engine.put.appended, descriptor.crc, 0)),
            (checksum.slot, checksum.before),
        )
        given = Signal(GIVEN)
        m.d.comb += [given.named.eq(ended.payload.outcome.named), given.handle.eq(ended.payload.outcome.handle)]
        table(
            "given",
            GIVEN,
            (ended.valid & (phase == Phase.ALLOC), slots.ended.slot, given),
            (issuer.slot, issuer.given),
            (reporter.slot, reporter.given),
        )
        table(
            "sums",
            crc32c.WIDTH,
            (sums.valid, sums.payload.slot, sums.payload.crc),
            (issuer.slot, issuer.crc),
            (reporter.slot, reporter.crc),
        )
        table(
            "segments",
            ITEM_BITS,
            (ended.valid & (phase == Phase.WRITE), slots.ended.slot, ended.payload.outcome.count),
            (reporter.slot, reporter.segments),
        )

    def _watch(self, m: Module) -> None:
        """How full it is, and what is counted."""
        slots, admission, reporter = self._slots, self._admission, self._reporter
        requester, status, put = self._params.requester, Signal(STATUS_BITS), Signal()
        used = Signal(range(requester.slots + 1))
        m.d.comb += [
            status.eq(slots.status[reporter.slot]),
            put.eq(reporter.answered.valid & (reporter.row.descriptor.opcode == EngineOpcode.PUT)),
            used.eq(sum(phase != Phase.FREE for phase in slots.phases)),
            self.idle.eq(~admission.waiting & (used == 0)),
            self.counted.taken.eq(admission.take & ~admission.new.flush),
            self.counted.full.eq(admission.waiting & ~slots.free),
            self.counted.existed.eq(put & (status == Status.EXISTS)),
            self.counted.sealed.eq(put & (status == Status.OK) & ~reporter.row.descriptor.flags.engine.put.open),
            self.counted.failed.eq(put & (status != Status.EXISTS) & (status != Status.OK)),
        ]
        with m.If(used >= requester.high_mark):
            m.d.sync += self.urgent.eq(1)
        with m.Elif(used < requester.low_mark):
            m.d.sync += self.urgent.eq(0)
