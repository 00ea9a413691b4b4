"""A slice of a memory node: the top of what is one clock domain, one index and one set of memory channels."""

from typing import Any

from amaranth import Cat, Module, Mux, ResetInserter, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.params import Params
from hw.params.protocol import SLICE_BITS
from hw.rtl.axi import axi4_lite
from hw.rtl.csr import SliceControl
from hw.rtl.csr.registers import ADDRESS_BITS
from hw.rtl.fabric import link
from hw.rtl.node.administrator import Administrator
from hw.rtl.node.core import Core
from hw.rtl.node.data import DataPath, memory_channel
from hw.rtl.node.dispatch import Dispatch
from hw.rtl.node.layouts import Kind, State, log_layout
from hw.rtl.node.port import Port
from hw.rtl.node.reports import Reports
from hw.rtl.node.restart import Restart
from hw.rtl.node.rota import Rota
from hw.rtl.shared import shared


@shared
class Slice(wiring.Component):
    """P ports, a core that decides, a data path over C memory channels, and the registers.

    Parameters
    ----------
    params
        Everything.

    Interface
    ---------
    number : In
        Of the slice in its node: what its handles carry. Constant.
    links : In, `link(params)`, one a port
        The requesters.
    axi, irq
        As of `SliceControl`.
    memory : Out, `axi4`, one a channel
        As of `DataPath`.
    log : Out, stream of `log_layout()`
        The order log.
    restarting : Out(1)
        The slice forgets everything; both ends of every link have to be reset as long as this is high.
    down : Out, a bit a port
        The port is lost; both ends of its link have to be reset as long as this is high.
    renewed : In, a bit a port
        The other end of the link is being reset. Without it a port stays `down`; a port in service is lost with it.
    heard, lose : In, a bit a port each
        Somebody has heard the requester; the port is lost elsewhere, and so here.
    rested : Out, a bit a port
        The port is `down` and waits for nothing but `renewed`.

    Latency and throughput
    ----------------------
    Those of its parts: a command of n flits takes n + 1 cycles from the link to the core, its answer two to the link; a
    flit a cycle on each link each way, a beat a cycle on each channel.

    Ordering and stalls
    -------------------
    All operations take effect in the order of `log`. Ports do not wait for each other, beyond their turn at the core;
    `log` that is not taken stops the slice. Nothing waits for messages: a requester that does not take them loses some.

    Reset and errors
    ----------------
    Reset forgets everything; links and memory have to be reset too. A restart, by register, waits until memory has
    answered all that was asked of it, keeps the registers, and resets the rest.

    Invariants
    ----------
    All; 12 where partitions are isolated, as long as `log` is always taken and memory keeps its guard.

    Counters
    --------
    As the registers say.
    """

    def __init__(self, params: Params):
        self._params = params
        super().__init__(
            {
                "number": In(SLICE_BITS),
                "links": In(link(params)).array(params.tables.ports),
                "axi": In(axi4_lite(address_bits=ADDRESS_BITS)),
                "irq": Out(1),
                "memory": Out(memory_channel(params)).array(params.memory.channels),
                "log": Out(stream.Signature(log_layout())),
                "restarting": Out(1),
                "down": Out(params.tables.ports),
                "renewed": In(params.tables.ports),
                "heard": In(params.tables.ports),
                "lose": In(params.tables.ports),
                "rested": Out(params.tables.ports),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        params = self._params
        reset = Signal()
        renew: Any = ResetInserter(reset)
        m.submodules.core = core = ResetInserter(self.restarting)(Core(params))
        m.submodules.data = path = renew(DataPath(params))
        m.submodules.dispatch = dispatch = renew(Dispatch(params))
        if params.strict:
            m.submodules.rota = rota = Rota(params)
            m.d.comb += [each.rota.eq(rota.turn) for each in (core, dispatch, path)]
        m.submodules.control = control = SliceControl(params)
        m.submodules.administrator = administrator = Administrator(params)
        m.submodules.reports = reports = Reports(params)
        ports = [Port(params) for _ in range(params.tables.ports)]
        for i, port in enumerate(ports):
            m.submodules[f"port_{i}"] = renew(port)
            wiring.connect(m, port.link, wiring.flipped(self.links[i]))
            wiring.connect(m, port.operations, dispatch.commands[i])
            wiring.connect(m, port.losses, dispatch.losses[i])
            wiring.connect(m, port.segments, path.segments[i])
            wiring.connect(m, port.beats, path.beats_in[i])
            wiring.connect(m, path.beats_out[i], port.read_beats)
            m.d.comb += [
                port.number.eq(i),
                dispatch.expired[i].eq(port.expired),
                port.resumed.eq(core.resumed[i]),
                port.stays.eq(core.stays[i]),
                core.may_resume[i].eq(port.may_resume),
                port.verdict.eq(core.verdicts.payload),
                port.drain.eq(self.restarting),
                port.renewed.eq(self.renewed[i]),
                port.heard.eq(self.heard[i]),
                port.lose.eq(self.lose[i]),
                self.down[i].eq(port.down),
                self.rested[i].eq(port.rested),
                reports.lost[i].eq(port.lost),
                port.notices.valid.eq(core.messages.valid & core.messages.payload.ports[i]),
                port.notices.payload.eq(core.messages.payload.notice),
            ]
            with m.If(core.rebound.valid & ~core.rebound.payload.registers & (core.rebound.payload.port == i)):
                m.d.comb += port.rebound.eq(1 << core.rebound.payload.ring)
        wiring.connect(m, administrator.operations, dispatch.commands[-1])
        wiring.connect(m, dispatch.operations, core.operations)
        for theirs, ours in zip((*path.landed, *path.done), (*dispatch.landed, *dispatch.done), strict=True):
            wiring.connect(m, theirs, ours)
        wiring.connect(m, core.discards, path.discards)
        wiring.connect(m, core.log, wiring.flipped(self.log))
        for ours, theirs in zip(path.memory, self.memory, strict=True):
            wiring.connect(m, ours, wiring.flipped(theirs))

        wiring.connect(m, control.axi, wiring.flipped(self.axi))
        wiring.connect(m, control.commands, administrator.commands)
        wiring.connect(m, administrator.statuses, control.statuses)
        wiring.connect(m, reports.errors, control.errors)
        m.d.comb += [
            self.irq.eq(control.irq),
            core.number.eq(self.number),
            core.diagonals.eq(control.diagonals),
            control.ready.eq(core.ready),
            control.started.eq(core.started),
            control.counts.eq(reports.counts),
            administrator.start.eq(control.start),
            administrator.epoch.eq(control.epoch),
            administrator.restart.eq(control.restart),
        ]
        self._route(m, core, path, ports, administrator)
        self._report(m, core, ports, reports, control)
        m.submodules.restart = restart = Restart(params)
        m.d.comb += [
            restart.begin.eq(control.restart),
            restart.written.eq(sum(segments.valid & segments.ready for segments in path.segments)),
            restart.landed.eq(sum(Mux(each.valid & each.ready, each.payload.count, 0) for each in path.landed)),
            restart.read.eq(path.reads.valid & path.reads.ready),
            restart.done.eq(sum(each.valid & each.ready for each in path.done)),
            restart.moving.eq(Cat(port.moving for port in ports).any()),
            reset.eq(restart.reset),
            self.restarting.eq(restart.restarting),
            dispatch.hold.eq(restart.restarting),
        ]
        return m

    def _route(self, m: Module, core: Core, path: DataPath, ports: list[Port], administrator: Administrator) -> None:
        """A verdict goes to the data path if it starts a READ, else to whose command it is of."""
        verdict, read = core.verdicts.payload, path.reads.payload
        starts = (verdict.kind == Kind.READ) & ~verdict.complete & ~verdict.parked
        m.d.comb += [
            path.reads.valid.eq(core.verdicts.valid & starts & ~self.restarting),
            core.verdicts.ready.eq(Mux(starts, path.reads.ready, 1)),
            *(read[name].eq(verdict[name]) for name in ("frame", "segment", "count", "length", "stamp", "tag")),
        ]
        told = core.verdicts.valid & ~starts & ~self.restarting
        m.d.comb += [
            administrator.verdict.eq(verdict),
            administrator.verdict_valid.eq(told & verdict.stamp.registers),
        ]
        for i, port in enumerate(ports):
            m.d.comb += port.verdict_valid.eq(told & ~verdict.stamp.registers & (verdict.stamp.port == i))

    def _report(self, m: Module, core: Core, ports: list[Port], reports: Reports, control: SliceControl) -> None:
        """What the registers count."""
        m.d.comb += [
            reports.quiet.eq(control.restart | self.restarting),
            reports.verdict_valid.eq(core.verdicts.valid & core.verdicts.ready),
            reports.verdict.eq(core.verdicts.payload),
            reports.entry_valid.eq(core.log.valid & core.log.ready),
            reports.entry.eq(core.log.payload),
            reports.cam_event_valid.eq(core.cam_events.valid),
            reports.cam_event.eq(core.cam_events.payload),
            reports.table_event_valid.eq(core.table_events.valid),
            reports.table_event.eq(core.table_events.payload),
            reports.happened.failed.eq(core.failed),
            reports.happened.evicted.eq(core.evicted),
            reports.happened.stalled.eq(core.stalled),
            reports.happened.no_place.eq(core.refused),
            reports.happened.refused.eq(sum(port.refused for port in ports)),
            control.levels.pins_used.eq(core.levels.pins),
            control.levels.sessions_used.eq(core.levels.sessions),
            control.levels.parked_used.eq(core.levels.parked),
        ]
        for state, count in zip(State, core.levels.frames, strict=True):
            m.d.comb += control.levels[f"frames_{state.name.lower()}"].eq(count)
