"""The engines of a requester."""

from collections.abc import Callable
from typing import Any

from amaranth import Cat, Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from hw.params import Params
from hw.params.protocol import ITEM_BITS
from hw.rtl.gpu.layouts import (
    COUNTED_PUTS,
    COUNTED_SESSIONS,
    Owner,
    acknowledgement_layout,
    answer_layout,
    ended_layout,
    engine_owners,
    read_beat_layout,
    read_layout,
    start_layout,
    task_layout,
    write_beat_layout,
    write_layout,
)
from hw.rtl.gpu.prefetch import Prefetch
from hw.rtl.gpu.sessions import SessionManager, pins_layout, watched_layout
from hw.rtl.gpu.write_back import WriteBack, seen_layout

KINDS: dict[Owner, Callable[[Params], Any]] = {
    Owner.PREFETCH: Prefetch,
    Owner.WRITE_BACK: WriteBack,
    Owner.SESSIONS: SessionManager,
}
"""What each engine is."""


def host_owners(params: Params) -> tuple[Owner, ...]:
    """Return the engines that reach host memory by themselves: of those that there are, the first."""
    return tuple(owner for owner in engine_owners(params) if owner is Owner.PREFETCH)


class Engines(wiring.Component):
    """The engines that there are: clients of the data path of a requester.

    An engine is given descriptors (`tasks`), begins commands of its own (`starts`), hears of their ends (`ended`), and
    answers each task once (`answers`), after all of its own commands for it have ended. The manager of sessions has no
    tasks.

    Parameters
    ----------
    params
        Which engines there are.

    Interface
    ---------
    tasks : In, streams of `task_layout(params)`, one an engine
        What software asks of it. Is taken whatever else the engine waits for.
    starts : Out, streams of `start_layout(params)`, one an engine
        Commands to begin.
    ended : In, streams of `ended_layout(params)`, one an engine
        Its commands that have ended, in any order. Are taken whatever else the engine waits for.
    answers : Out, streams of `answer_layout(params)`, one an engine
        Ends of tasks: `complete` and `outcome`.
    bursts, beats : Out and In, as of clients of `HostReader`, one for each of `host_owners(params)`
    writes, write_beats, written : as of clients of `HostWriter`, the same
    consumed : as of `Prefetch`, if there is one
    running : In, a bit a ring
        Of any other ring nothing is written; its tasks end, with any status.
    cutting : In(1)
        The link is reset: nothing begins, commands under way end UNAVAILABLE by themselves, and so do tasks.
    urgent : Out(1)
        As of `Starter`.
    idle : Out(1)
        No engine has anything in hand.
    seen, counted : as of `WriteBack`, if there is one
    watched, managed, sessions, pins, counted_sessions : as of `SessionManager`, if there is one

    Latency and throughput, ordering and stalls, reset and errors, invariants, counters
    -----------------------------------------------------------------------------------
    Those of the engines.
    """

    def __init__(self, params: Params):
        self._params = params
        self._owners = engine_owners(params)
        rings = params.tables.rings_per_port
        streams = {
            "tasks": In(stream.Signature(task_layout(params))),
            "starts": Out(stream.Signature(start_layout(params))),
            "ended": In(stream.Signature(ended_layout(params))),
            "answers": Out(stream.Signature(answer_layout(params))),
        }
        memory = {
            "bursts": Out(stream.Signature(read_layout())),
            "beats": In(stream.Signature(read_beat_layout(params), always_ready=True)),
            "writes": Out(stream.Signature(write_layout(params))),
            "write_beats": Out(stream.Signature(write_beat_layout(params))),
            "written": In(stream.Signature(acknowledgement_layout(params), always_ready=True)),
        }
        write_back = {"seen": In(seen_layout(params)), "counted": Out(COUNTED_PUTS)}
        sessions = {
            "watched": In(watched_layout(params)),
            "managed": Out(1),
            "sessions": Out(bits_for(params.requester.sessions)),
            "pins": Out(pins_layout(params)),
            "counted_sessions": Out(COUNTED_SESSIONS),
        }
        self._streams, self._memory = tuple(streams), tuple(memory)
        super().__init__(
            {name: member.array(len(self._owners)) for name, member in streams.items()}
            | {name: member.array(len(host_owners(params))) for name, member in memory.items()}
            | (write_back if Owner.WRITE_BACK in self._owners else {})
            | (sessions if Owner.SESSIONS in self._owners else {})
            | {
                "running": In(rings),
                "cutting": In(1),
                "urgent": Out(1),
                "idle": Out(1),
            }
            | ({"consumed": In(data.ArrayLayout(ITEM_BITS, rings))} if params.requester.prefetches else {})
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        engines = {owner: KINDS[owner](self._params) for owner in self._owners}
        for i, (owner, engine) in enumerate(engines.items()):
            m.submodules[owner.name.lower()] = engine
            for name in (*self._streams, *(self._memory if owner in host_owners(self._params) else ())):
                if name in engine.signature.members:
                    ours, its = getattr(self, name)[i], getattr(engine, name)
                    wiring.connect(m, wiring.flipped(ours), its)
            m.d.comb += [engine.running.eq(self.running), engine.cutting.eq(self.cutting)]
        m.d.comb += self.idle.eq(Cat(engine.idle for engine in engines.values()).all())
        if Owner.PREFETCH in engines:
            m.d.comb += engines[Owner.PREFETCH].consumed.eq(self.consumed)
        if Owner.WRITE_BACK in engines:
            write_back = engines[Owner.WRITE_BACK]
            m.d.comb += [
                self.urgent.eq(write_back.urgent),
                self.counted.eq(write_back.counted),
                write_back.seen.eq(self.seen),
            ]
        if Owner.SESSIONS in engines:
            manager = engines[Owner.SESSIONS]
            wiring.connect(m, engines[Owner.WRITE_BACK].sessions, manager.buffer)
            m.d.comb += [
                manager.watched.eq(self.watched),
                *(getattr(self, name).eq(getattr(manager, name)) for name in ("managed", "sessions", "pins")),
                self.counted_sessions.eq(manager.counted),
            ]
        return m
