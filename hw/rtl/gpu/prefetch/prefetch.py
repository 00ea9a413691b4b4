"""The prefetch engine."""

from amaranth import Array, Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.params import Params
from hw.params.protocol import ITEM_BITS, STATUS_BITS, EngineOpcode, Status
from hw.rtl.arbiter import merge, next_in_turn
from hw.rtl.gpu.layouts import (
    acknowledgement_layout,
    answer_layout,
    ended_layout,
    read_beat_layout,
    read_layout,
    start_layout,
    task_layout,
    write_beat_layout,
    write_layout,
)
from hw.rtl.gpu.page_walker import PageWalker
from hw.rtl.gpu.prefetch.fills import Fills
from hw.rtl.gpu.prefetch.issuer import Issuer
from hw.rtl.gpu.prefetch.job import Job
from hw.rtl.gpu.prefetch.layouts import ARRIVAL
from hw.rtl.gpu.prefetch.lister import Lister
from hw.rtl.gpu.record_writer import RecordWriter


class Prefetch(wiring.Component):
    """Brings blocks into the GPU's memory, several lists at once, and marks what has arrived.

    Parameters
    ----------
    params
        `requester.prefetches`, `fills`, `fill_segments` and `window_segments`.

    Interface
    ---------
    As of an engine among `Engines`, and:

    consumed : In, an array of numbers, one a ring
        CONSUMED: how many segments of a STAGED PREFETCH software has done with; wraps.

    Latency and throughput
    ----------------------
    As docs/prefetch.md says.

    Ordering and stalls
    -------------------
    Segments of a list are wanted, and marked, in order; lists take turns, a READ each.

    Reset and errors
    ----------------
    Reset forgets everything; the requester has to be reset too. A PREFETCH beyond `requester.prefetches` ends NO_SPACE,
    as does a second CANCEL of one; a CANCEL of none ends MISS.

    Invariants
    ----------
    Part of 10: every task is answered once, when all of its READs have ended.

    Counters
    --------
    None.
    """

    def __init__(self, params: Params):
        self._params = params
        super().__init__(
            {
                "tasks": In(stream.Signature(task_layout(params))),
                "starts": Out(stream.Signature(start_layout(params))),
                "ended": In(stream.Signature(ended_layout(params))),
                "answers": Out(stream.Signature(answer_layout(params))),
                "bursts": Out(stream.Signature(read_layout())),
                "beats": In(stream.Signature(read_beat_layout(params), always_ready=True)),
                "writes": Out(stream.Signature(write_layout(params))),
                "write_beats": Out(stream.Signature(write_beat_layout(params))),
                "written": In(stream.Signature(acknowledgement_layout(params), always_ready=True)),
                "consumed": In(data.ArrayLayout(ITEM_BITS, params.tables.rings_per_port)),
                "running": In(params.tables.rings_per_port),
                "cutting": In(1),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m, params = Module(), self._params
        jobs = [Job(params, number=i) for i in range(params.requester.prefetches)]
        for i, job in enumerate(jobs):
            m.submodules[f"job_{i}"] = job
        m.submodules.fills = fills = Fills(params)
        m.submodules.issuer = issuer = Issuer(params)
        m.submodules.lister = lister = Lister(params)
        m.submodules.walker = walker = PageWalker(params)
        m.submodules.writer = writer = RecordWriter(params, ARRIVAL)
        wiring.connect(m, fills.starts, wiring.flipped(self.starts))
        wiring.connect(m, issuer.walks, walker.walks)
        wiring.connect(m, walker.found, issuer.found)
        wiring.connect(m, writer.bursts, wiring.flipped(self.writes))
        wiring.connect(m, writer.beats, wiring.flipped(self.write_beats))
        m.d.comb += [
            self.ended.ready.eq(1),
            fills.ended.valid.eq(self.ended.valid),
            fills.ended.payload.eq(self.ended.payload),
            fills.ask.eq(issuer.ask),
            fills.read.eq(issuer.read),
            fills.tag.eq(issuer.tag),
            issuer.granted.eq(fills.granted),
            issuer.fill.eq(fills.fill),
            issuer.stopping.eq(Cat(job.stopping for job in jobs)),
        ]
        for i, job in enumerate(jobs):
            wiring.connect(m, job.wants, issuer.wants[i])
            m.d.comb += [
                job.running.eq(self.running),
                job.cutting.eq(self.cutting),
                job.consumed.eq(self.consumed[job.ring]),
                job.listed.valid.eq(lister.listed.valid),
                job.listed.payload.eq(lister.listed.payload),
                job.given.eq(issuer.given),
                job.over.eq(fills.over),
                job.fate.eq(fills.fate),
                job.marked.eq(self.written.valid & (self.written.payload.token == i)),
                job.mark_failed.eq(self.written.payload.error),
            ]
        merge(m, [job.lists for job in jobs], lister.lists)
        merge(m, [job.marks for job in jobs], writer.records)

        releasing = Cat(job.releases.valid for job in jobs)
        last = Signal(range(max(2, len(jobs))))
        turn = next_in_turn(m, releasing, last)
        m.d.comb += [
            fills.release.eq(releasing.any()),
            fills.releasing.eq(Array(job.releases.payload for job in jobs)[turn]),
        ]
        with m.If(fills.release):
            m.d.sync += last.eq(turn)
        for i, job in enumerate(jobs):
            m.d.comb += job.releases.ready.eq(turn == i)

        self._read(m, lister, walker)
        self._assign(m, jobs)
        return m

    def _read(self, m: Module, lister: Lister, walker: PageWalker) -> None:
        """Let lists of blocks and lists of pages read in turn, a burst at a time."""
        reading, pages = Signal(), Signal()
        chosen = Mux(lister.bursts.valid & walker.bursts.valid, ~pages, walker.bursts.valid)
        m.d.comb += [
            self.bursts.valid.eq(~reading & (lister.bursts.valid | walker.bursts.valid)),
            self.bursts.payload.eq(Mux(chosen, walker.bursts.payload.as_value(), lister.bursts.payload.as_value())),
            lister.bursts.ready.eq(self.bursts.ready & ~reading & ~chosen),
            walker.bursts.ready.eq(self.bursts.ready & ~reading & chosen),
            lister.beats.valid.eq(self.beats.valid & ~pages),
            lister.beats.payload.eq(self.beats.payload),
            walker.beats.valid.eq(self.beats.valid & pages),
            walker.beats.payload.eq(self.beats.payload),
        ]
        with m.If(self.bursts.valid & self.bursts.ready):
            m.d.sync += [reading.eq(1), pages.eq(chosen)]
        with m.If(self.beats.valid & self.beats.payload.last):
            m.d.sync += reading.eq(0)

    def _assign(self, m: Module, jobs: list[Job]) -> None:
        """Give each task to a job, or refuse it."""
        task, descriptor = self.tasks.payload, self.tasks.payload.descriptor
        free, its = Cat(job.tasks.ready for job in jobs), Signal(len(jobs))
        begins, refuses, status = Signal(), Signal(), Signal(STATUS_BITS)
        refusals = stream.Signature(answer_layout(self._params)).create(path=("refusals",))
        first, found = Signal(range(max(2, len(jobs)))), Signal(range(max(2, len(jobs))))
        for i in reversed(range(len(jobs))):
            with m.If(free[i]):
                m.d.comb += first.eq(i)
            with m.If(its[i]):
                m.d.comb += found.eq(i)
        m.d.comb += [
            its.eq(Cat(job.busy & (job.ring == task.ring) & (job.tag == descriptor.count) for job in jobs)),
            begins.eq(self.tasks.valid & (descriptor.opcode == EngineOpcode.PREFETCH) & free.any()),
        ]
        cancels = self.tasks.valid & (descriptor.opcode == EngineOpcode.CANCEL) & its.any()
        taken = Array(job.cancelled for job in jobs)[found]
        m.d.comb += [
            refuses.eq(self.tasks.valid & ~begins & ~(cancels & ~taken)),
            self.tasks.ready.eq(~refuses | ~refusals.valid),
            status.eq(Mux((descriptor.opcode == EngineOpcode.CANCEL) & ~its.any(), Status.MISS, Status.NO_SPACE)),
        ]
        for i, job in enumerate(jobs):
            m.d.comb += [
                job.tasks.valid.eq(begins & (first == i)),
                job.tasks.payload.eq(task),
                job.cancel.eq(cancels & ~taken & (found == i)),
                job.order.context.eq(task.context),
            ]
        with m.If(refusals.ready):
            m.d.sync += refusals.valid.eq(0)
        with m.If(refuses & ~refusals.valid):
            m.d.sync += [
                refusals.valid.eq(1),
                refusals.payload.context.eq(task.context),
                refusals.payload.complete.eq(1),
                refusals.payload.outcome.status.eq(status),
            ]
        merge(m, [*(job.answers for job in jobs), refusals], self.answers)
        in_hand = Cat(~free).any() | refusals.valid | self.answers.valid | self.tasks.valid
        m.d.comb += self.idle.eq(~in_hand)
