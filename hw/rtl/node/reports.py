"""What a slice tells its registers: what happened in this cycle, and what is to be logged."""

from amaranth import Cat, Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from hw.params import Params
from hw.params.protocol import Status
from hw.params.registers import ErrorKind
from hw.rtl.arbiter import next_in_turn
from hw.rtl.csr.control import counts_layout
from hw.rtl.csr.layouts import ERROR_ENTRY
from hw.rtl.layouts import cam_event_layout
from hw.rtl.node.layouts import Kind, frame_event_layout, log_layout, verdict_layout
from hw.rtl.queue import Queue

WAITING = 4
"""Errors of one source that wait to be logged; more of them in a row are counted, not logged."""


def happened_layout(params: Params) -> data.StructLayout:
    """Return the layout of what happens besides verdicts.

    - `evicted`, `stalled`, `no_place`: events of one cycle; `refused`: commands that ports have refused.
    - `failed`: a table has lost a word; it stays so.
    """
    return data.StructLayout(
        {"evicted": 1, "stalled": 1, "no_place": 1, "refused": bits_for(params.tables.ports), "failed": 1}
    )


class Reports(wiring.Component):
    """Counts, and puts errors into words.

    Parameters
    ----------
    params
        Widths.

    Interface
    ---------
    verdict_valid, verdict : In, `verdict_layout()`
    entry_valid, entry : In, `log_layout()`
    cam_event_valid, cam_event : In, `cam_event_layout(params)`
    table_event_valid, table_event : In, `frame_event_layout(params)`
    happened : In, `happened_layout(params)`
        What the core has said in this cycle.
    lost : In, a bit a port
        The port is lost, in this cycle.
    quiet : In(1)
        The slice restarts: nothing is counted.
    counts : Out, `counts_layout()`
        As `SliceControl` takes them.
    errors : Out, stream of `ERROR_ENTRY`; always taken

    Latency and throughput
    ----------------------
    Counts one cycle, errors two.

    Ordering and stalls
    -------------------
    Errors of one source in order; sources take turns. A lost entry of the CAM is found in each round of its scrubber,
    but a bank is logged once until the slice restarts.

    Reset and errors
    ----------------
    Reset forgets what waits to be logged.

    Invariants and counters
    -----------------------
    None.
    """

    def __init__(self, params: Params):
        self._params = params
        super().__init__(
            {
                "verdict_valid": In(1),
                "verdict": In(verdict_layout()),
                "entry_valid": In(1),
                "entry": In(log_layout()),
                "cam_event_valid": In(1),
                "cam_event": In(cam_event_layout(params)),
                "table_event_valid": In(1),
                "table_event": In(frame_event_layout(params)),
                "happened": In(happened_layout(params)),
                "lost": In(params.tables.ports),
                "counts": Out(counts_layout()),
                "errors": Out(stream.Signature(ERROR_ENTRY)),
                "quiet": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        verdict, happened, counts = self.verdict, self.happened, self.counts
        events = ((self.cam_event_valid, self.cam_event), (self.table_event_valid, self.table_event))
        for status in Status:
            ended = self.verdict_valid & verdict.complete & (verdict.outcome == status)
            refused = happened.refused if status is Status.UNAVAILABLE else 0
            m.d.sync += counts[f"status_{status.name.lower()}"].eq(ended + refused)
        m.d.sync += [
            counts.evictions.eq(happened.evicted),
            counts.replacement_stall_steps.eq(happened.stalled),
            counts.cam_refusals.eq(happened.no_place),
            counts.ecc_corrected.eq(sum(valid & ~event.uncorrectable for valid, event in events)),
            counts.ecc_uncorrected.eq(sum(valid & event.uncorrectable for valid, event in events)),
        ]
        with m.If(self.quiet):
            m.d.sync += counts.as_value().eq(0)
        self._log(m)
        return m

    def _log(self, m: Module) -> None:
        """Sources, each with a queue: the order log, verdicts, the CAM, the frame table, all other tables, ports."""
        entry, verdict, place = self.entry, self.verdict, self.cam_event.place
        failed = self.entry_valid & ~entry.ok
        first, second, third, fourth, fifth, sixth = (Signal(ERROR_ENTRY, name=f"error_{i}") for i in range(6))
        lost = entry.kind == Kind.LOST
        m.d.comb += [
            first.frame.eq(entry.frame),
            first.port.eq(entry.stamp.port),
            first.ring.eq(entry.stamp.ring),
            second.kind.eq(ErrorKind.CRC),
            second.frame.eq(verdict.frame),
            second.port.eq(verdict.stamp.port),
            second.ring.eq(verdict.stamp.ring),
            third.kind.eq(ErrorKind.CAM_ECC),
            third.code.eq(place.bank),
            fourth.kind.eq(ErrorKind.FRAME_ECC),
            fourth.frame.eq(self.table_event.frame),
            fifth.kind.eq(ErrorKind.TABLE_ECC),
            sixth.kind.eq(ErrorKind.LINK),
        ]
        with m.Switch(entry.kind):
            with m.Case(Kind.LANDED):
                m.d.comb += first.kind.eq(ErrorKind.MEM_ERROR)
            with m.Case(Kind.READ_DONE):
                m.d.comb += first.kind.eq(ErrorKind.POISON)
            with m.Case(Kind.LOST):
                m.d.comb += [
                    first.kind.eq(ErrorKind.LOST),
                    first.port.eq(entry.ring.port),
                    first.ring.eq(entry.ring.ring),
                    first.frame.eq(0),
                ]
        crc = self.verdict_valid & (verdict.status == Status.CRC)
        entry_lost = self.cam_event_valid & self.cam_event.uncorrectable
        banks = Signal(self._params.cam.banks)  # of which a lost entry has been told
        with m.If(self.quiet):
            m.d.sync += banks.eq(0)
        with m.Elif(entry_lost):
            m.d.sync += banks.bit_select(place.bank, 1).eq(1)
        ports = Signal.like(self.lost)  # those whose loss is not in the queue yet
        m.d.sync += ports.eq(ports & (ports - 1) | self.lost)
        for i in reversed(range(len(ports))):
            with m.If(ports[i]):
                m.d.comb += sixth.port.eq(i)
        failed_before = Signal()
        m.d.sync += failed_before.eq(self.happened.failed)
        sources: list[tuple[Value, Signal]] = [
            (self.entry_valid & lost | failed & entry.kind.matches(Kind.LANDED, Kind.READ_DONE), first),
            (crc, second),
            (entry_lost & ~banks.bit_select(place.bank, 1), third),
            (self.table_event_valid & self.table_event.uncorrectable, fourth),
            (self.happened.failed & ~failed_before, fifth),
            (ports.any(), sixth),
        ]
        queues = []
        for i, (valid, error) in enumerate(sources):
            m.submodules[f"errors_{i}"] = queue = Queue(ERROR_ENTRY, depth=WAITING)
            m.d.comb += [queue.i.valid.eq(valid), queue.i.payload.eq(error)]
            queues.append(queue)
        asking, last = Cat(queue.o.valid for queue in queues), Signal(range(len(queues)))
        chosen = next_in_turn(m, asking, last)
        m.d.comb += self.errors.valid.eq(asking.any())
        m.d.sync += last.eq(chosen)
        for i, queue in enumerate(queues):
            with m.If(chosen == i):
                m.d.comb += [self.errors.payload.eq(queue.o.payload), queue.o.ready.eq(1)]
