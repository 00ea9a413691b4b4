"""Guards of the hardware: lines without which a property must not be provable any more."""

import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from amaranth.lib import wiring

from hw.formal.property import Property
from hw.formal.prove import BUILD, prove
from hw.formal.registry import all_properties
from hw.rtl.node import usage
from hw.rtl.node.core import allocation, blocks, control, internal, streaming, tables
from hw.tb.mutate import mutate

RTL = "hw.rtl."
"""What may hold the guarded class or function under its name."""


@dataclass(frozen=True)
class Guard:
    """A place in the source of `target`, which reads `text`; with `instead` in its place, `needs` is not proved.

    A method is a target of its own: stand-ins would not reach a class that is compiled anew.
    """

    name: str
    target: Any
    text: str
    instead: str
    needs: str


GUARDS = (
    Guard(
        "a READ waits for what has landed",
        blocks.reading,
        "(~t.sealed & ~(mine & (end <= frame.landed)), Status.PENDING)",
        "(0, Status.PENDING)",
        "core_frames.unsealed",
    ),
    Guard("only its own session reads what is being written", blocks.reading, " & t.owned", "", "core_frames.unsealed"),
    Guard(
        "the done bit waits for what has landed",
        internal._sealed,
        "with m.Elif(frame.landed != frame.accepted):",
        "with m.Elif(0):",
        "core_frames.final",
    ),
    Guard("a WRITE ends within the bound", blocks._write, "| (end > frame.bound)", "", "core_frames.final"),
    Guard(
        "a WRITE appends at accepted",
        blocks._write,
        "with m.Elif(op.segment != frame.accepted):",
        "with m.Elif(0):",
        "core_frames.final",
    ),
    Guard(
        "a frame with writes under way is not FREE",
        blocks.drained,
        " & (row.answered == row.accepted)",
        "",
        "core_frames.final",
    ),
    Guard(
        "what is read is no victim",
        tables.Tables.note_evictable,
        "(row.pins != 0) | (row.reads != 0)",
        "row.pins != 0",
        "core_frames.pins",
    ),
    Guard(
        "pins of one LOOKUP are forwarded",
        streaming._judge,
        "with m.If(earlier.valid & (earlier.index == index)):",
        "with m.If(0):",
        "core_frames.pins",
    ),
    Guard(
        "a pin is given back by its generation",
        blocks._unpin,
        "t.pins.used & (t.pins.generation == op.slot.generation)",
        "t.pins.used",
        "core_frames.pins",
    ),
    Guard(
        "a handle has the generation of its frame",
        tables.Tables._derive,
        "& (self.op.handle.generation == frame.generation)",
        "",
        "core_frames.handles",
    ),
    Guard(
        "a handle has the epoch",
        tables.Tables._derive,
        "(self.op.handle.epoch == self.epoch)",
        "Const(1)",
        "core_frames.handles",
    ),
    Guard(
        "a block dies with its model",
        tables.Tables._derive,
        "self.scopes_alive.eq(self.partition_scopes.alive & self.model_scopes.alive)",
        "self.scopes_alive.eq(self.partition_scopes.alive)",
        "core_frames.handles",
    ),
    Guard("what drains leaves the index", blocks.drain, "t.unlink()", "t.leave_scopes()", "core_tags.index"),
    Guard("a victim leaves the index", allocation.states, "t.unlink()", "t.leave_scopes()", "core_tags.index"),
    Guard(
        "the partition is that of the ring",
        control.admit,
        "t.look_up(ring.partition)",
        "t.look_up(op.partition)",
        "core_tags.hits",
    ),
    Guard(
        "only public partitions are asked",
        control.admit,
        "t.public & t.read_masks[ring.partition]",
        "t.read_masks[ring.partition]",
        "core_tags.hits",
    ),
    Guard(
        "a partition at its quota takes its own",
        usage.Usage,
        "used[self.query] >= asked.quota",
        "used[self.query] > asked.quota",
        "core_quota.use",
    ),
    Guard(
        "what is guaranteed is not lent",
        usage.Usage,
        "(borrowed[asked.pool] + promised[asked.pool] < serving[asked.pool])",
        "(borrowed[asked.pool] + promised[asked.pool] <= serving[asked.pool])",
        "core_quota.use",
    ),
    Guard("a victim's use is given back", allocation.states, "t.lose_use()", "pass", "core_quota.use"),
    Guard("a drained frame's use is given back", internal._drained, "t.lose_use()", "pass", "core_quota.use"),
    Guard("a lost ring is refused", control.admit, "(lost, Status.UNAVAILABLE),", "", "core_lost.ring"),
    Guard("a loss begins a sweep", internal._lost, "t.sweep()", "pass", "core_lost.ring"),
    Guard(
        "a LOOKUP ends when all keys are judged",
        streaming.states,
        "with m.If(t.ended & (busy == 0)):",
        "with m.If(0):",
        "core_time.bound",
    ),
)


@contextmanager
def removed(guard: Guard) -> Iterator[None]:
    """Let the hardware that is built be without `guard`."""
    target = guard.target
    *outer, name = target.__qualname__.split(".")
    mutant = mutate(target, guard.text, guard.instead)
    modules = [module for known, module in sys.modules.items() if known.startswith(RTL)]
    holders = [getattr(sys.modules[target.__module__], outer[0])] if outer else modules
    with ExitStack() as stack:
        for holder in holders:
            if getattr(holder, name, None) is target:
                stack.enter_context(patch.object(holder, name, mutant))
        yield


def survives(guard: Guard, *, build: Path = BUILD / "guards") -> bool:
    """Whether the property that needs `guard` is proved without it."""
    prop = all_properties()[guard.needs]
    return prove(replace(prop, design=_without(guard, prop), search=NEAR), build=build / _path(guard)).good


NEAR = 4
"""Cycles in which a failure is looked for: that the induction does not close is enough."""


def _without(guard: Guard, prop: Property) -> Any:
    def design() -> wiring.Component:
        with removed(guard):
            return prop.design()

    return design


def _path(guard: Guard) -> str:
    return re.sub(r"\W+", "-", guard.name)
