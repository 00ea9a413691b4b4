"""The core of a slice among stand-ins for its big parts, and surroundings that keep their rules."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from amaranth import Module, Mux, Signal, Value
from amaranth.hdl import Assert, Assume
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In

from hw.formal.internals import open_up
from hw.formal.node.choosers import AnyReplacement
from hw.formal.node.free import anything, opened
from hw.formal.node.memory import OpenMemory
from hw.formal.node.small import small, small_params
from hw.formal.node.stand_ins import AnyCam, AnyFences, AnyParking, AnyQueue, AnySlots, AnyTable
from hw.formal.story import Step
from hw.params.protocol import Status
from hw.rtl.node import replacement, scopes
from hw.rtl.node.core import Core, core, emission, tables
from hw.rtl.node.layouts import Kind, State, limits_layout, operation_layout
from hw.rtl.node.scopes import scope_layout

COMMANDS = (
    Kind.LOOKUP,
    Kind.ALLOC,
    Kind.WRITE,
    Kind.SEAL,
    Kind.ABORT,
    Kind.READ,
    Kind.UNPIN,
    Kind.DROP,
    Kind.OPEN_SESSION,
    Kind.CLOSE_SESSION,
    Kind.MIGRATE,
    Kind.ANSWER_FENCE,
    Kind.BIND,
    Kind.SET_PARTITION,
    Kind.DROP_PARTITION,
    Kind.SET_MODEL,
    Kind.RETIRE,
    Kind.SET_EPOCH,
)
MEMORY = (Kind.LANDED, Kind.READ_DONE)

PATIENCE = 4
"""Cycles in which whatever follows an operation has begun."""

CHOOSING = ("CHOOSE", "VICTIM", "EVICT", "REACH", "OLD", "REPLACE", "FETCH", "CLAIM")
"""States in which an ALLOC comes to its frame."""

KINDS_IN = {
    ("STREAM", "PROBE"): (Kind.LOOKUP,),
    ("CAM",): (Kind.LOOKUP, Kind.ALLOC, Kind.DROP),
    CHOOSING: (Kind.ALLOC,),
    ("PARKED",): (Kind.STEP_PARKED, Kind.EXPIRED_READ),
    ("PIN",): (Kind.UNPIN, Kind.STEP_PINS),
    ("ADVANCE", "APPEND"): (Kind.WRITE,),
    ("ADMIT",): (*COMMANDS, *MEMORY, Kind.LOST),
}
"""The operations that may be in hand in a state."""

Parts = Mapping[str, Any]
"""Stand-ins by the name by which `hw.rtl.node.core.tables` or `hw.rtl.node.replacement` have what they stand in for."""

STAND_INS: Parts = {
    "Cam": AnyCam,
    "Fences": AnyFences,
    "Parking": AnyParking,
    "Replacement": AnyReplacement,
    "SlotTables": AnySlots,
    "Table": AnyTable,
}


@contextmanager
def among(parts: Parts) -> Iterator[tuple[list[Any], list[Any]]]:
    """Let a core be built of `parts`; yields its tables and its emission, once there are any."""
    kept: tuple[list[Any], list[Any]] = ([], [])

    def keeping(made: list[Any], target: Callable[..., Any]) -> Callable[..., Any]:
        def make(*arguments: Any, **named: Any) -> Any:
            made.append(target(*arguments, **named))
            return made[-1]

        return make

    with ExitStack() as stack:
        stack.enter_context(small())
        for name, part in parts.items():
            stack.enter_context(patch.object(tables if hasattr(tables, name) else replacement, name, part))
        stack.enter_context(patch.object(tables.Tables, "product", staticmethod(lambda matrix, vector: vector)))
        stack.enter_context(patch.object(emission, "Queue", AnyQueue))
        stack.enter_context(patch.object(scopes, "memory", SimpleNamespace(Memory=OpenMemory)))
        for made, name in zip(kept, ("Tables", "Emission"), strict=True):
            stack.enter_context(patch.object(core, name, keeping(made, getattr(core, name))))
        yield kept


class CoreBench(wiring.Component):
    """A core, any operations that keep the rules of `Core`, and what its stand-ins leave open, as inputs.

    A subclass adds claims in `claim`, and rules that only some operations have to keep in `require`.

    Parameters
    ----------
    parts
        Stand-ins, beside or instead of `STAND_INS`.

    Attributes
    ----------
    t, e
        The tables and the emission of the core.
    row
        The row of `frame`, which is any one frame.
    """

    def __init__(self, parts: Parts | None = None):
        self.params = small_params()
        opened()
        with among({**STAND_INS, **(parts or {})}) as (made, emissions):
            self.core = Core(self.params)
            self._fragment, self.registers = open_up(self.core)
            operation = operation_layout(self.params)
            self.limits = limits_layout(self.params)
            self.t, self.e = made[0], emissions[0]
        self.own_inputs()
        self._open = opened()
        self.fsm = self.registers["fsm_state"]
        self.codes = codes(self.fsm)
        members = {f"free_{name}": In(signal.shape()) for name, signal in self._open.items()}
        super().__init__({"operation_valid": In(1), "operation": In(operation)} | members)

    def own_inputs(self) -> None:
        """Open what the claims choose, with `anything`."""
        self.frame_choice = anything(2, "frame_choice")
        self.may_resume = anything(self.params.tables.ports, "may_resume")

    def state(self, *names: str) -> Value:
        """Whether the core is in one of these states."""
        return self.fsm.matches(*(self.codes[name] for name in names))

    def scopes(self, of: str) -> data.View:
        """The scopes of partitions or of models."""
        rows = self.registers[f"{of}_scopes.table.rows"]
        tables = self.params.tables
        scope = scope_layout(tables.stamp_bits, self.params.frames)
        return data.View(data.ArrayLayout(scope, len(rows) // scope.size), rows)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.core = self._fragment
        m.d.comb += [signal.eq(getattr(self, f"free_{name}")) for name, signal in self._open.items()]
        stream = self.core.operations
        m.d.comb += [stream.valid.eq(self.operation_valid), stream.payload.eq(self.operation)]
        m.d.comb += self.core.may_resume.eq(self.may_resume)
        self.taken = Signal()
        m.d.comb += self.taken.eq(stream.valid & stream.ready)
        self._require(m)
        self.claim(m)
        return m

    async def follow(self, ctx: Any, step: Step) -> None:
        """Offer the operation that `step` names until it is taken, and wait until it is done; for NONE, wait."""
        for name in self._open:
            port = getattr(self, f"free_{name}")
            ctx.set(Value.cast(port), 0)
            if name in step.open:
                ctx.set(port, step.open[name])
        if step.name == "NONE":
            for _ in range(PATIENCE * PATIENCE):
                await ctx.tick()
            return
        ctx.set(self.operation, dict(step.fields) | {"kind": Kind[step.name]})
        ctx.set(self.operation_valid, 1)
        while not ctx.get(self.taken):
            await ctx.tick()
        await ctx.tick()
        if step.at_once:
            return
        ctx.set(self.operation_valid, 0)
        for _ in range(PATIENCE):
            await ctx.tick()
        while ctx.get(self.fsm):
            await ctx.tick()

    def _require(self, m: Module) -> None:
        """The rules of `Core`: known kinds, existing rings, and the keys of one LOOKUP together."""
        op, tables = self.operation, self.params.tables
        self.within, before = Signal(), Signal.like(op)
        with m.If(self.taken):
            m.d.sync += [self.within.eq((op.kind == Kind.LOOKUP) & ~op.last), before.eq(op)]
        same = ("stamp", "tag", "malformed", "model", "pin", "run")
        with m.If(self.operation_valid):
            m.d.comb += [
                Assume(op.kind.matches(*COMMANDS, *MEMORY, Kind.LOST)),
                Assume((op.stamp.port < tables.ports) & (op.stamp.ring < tables.rings_per_port)),
                Assume((op.kind != Kind.WRITE) | (op.length <= self.params.memory.segment_bytes)),
            ]
            with m.If(self.within):
                m.d.comb += [Assume((op.kind == Kind.LOOKUP) & (op.item == before.item + 1))]
                m.d.comb += [Assume(Value.cast(op[name]) == Value.cast(before[name])) for name in same]
            with m.Elif(op.kind == Kind.LOOKUP):
                m.d.comb += Assume(op.item == 0)

    def claim(self, m: Module) -> None:
        """Say what is claimed."""
        raise NotImplementedError


def codes(machine: Signal) -> dict[str, int]:
    """The states of a machine by name, by its state register."""
    found: dict[str, int] = {}
    while True:
        try:
            found[machine._decoder(len(found)).split("/")[0]] = len(found)
        except KeyError:
            return found


def claim_kinds(m: Module, bench: CoreBench) -> None:
    """What an induction has to know of the core's states, and of what waits in them."""
    t, e, op, state = bench.t, bench.e, bench.t.op, bench.state
    m.d.comb += [
        Assert(bench.fsm <= max(bench.codes.values())),
        Assert(~t.failed),
        Assert(~e._chained | (e._chain.matches(Kind.SEALED, Kind.DRAINED) & state("FETCH", "CLAIM", "EMIT"))),
        Assert(state("STREAM") | (bench.registers["busy"] == 0)),
        Assert(~state("ADVANCE", "APPEND") | (t.index == op.handle.frame)),
    ]
    m.d.comb += [Assert(~state(*names) | op.kind.matches(*kinds)) for names, kinds in KINDS_IN.items()]
    with m.If(state("STREAM")):
        m.d.comb += Assert(Mux(t.first_key, op.last, t.asked_all) == ~bench.within)
    with m.If(state("PROBE", "CAM", "OWNER", "JUDGE") & (op.kind == Kind.LOOKUP)):
        m.d.comb += Assert(t.pins.offers & (t.pins.offered == t.ring_number))


def claim_rows(m: Module, bench: CoreBench) -> None:
    """What it has to know of the rows of all frames: of what follows the operation in hand, and of a short segment."""
    t, e, op, state = bench.t, bench.e, bench.t.op, bench.state
    rows = t.frames.rows
    follows = e._chained | state("OWNER", "JUDGE")
    frame = Mux(e._chained, e._chain_frame, op.handle.frame)
    kind = Mux(e._chained, e._chain, op.kind)
    with m.If(follows & (kind == Kind.SEALED)):
        m.d.comb += Assert(rows[frame].state == State.WRITING)
    with m.If(follows & (kind == Kind.DRAINED)):
        m.d.comb += Assert(rows[frame].state == State.DRAINING)
    with m.If(state("ADVANCE", "APPEND")):
        row = rows[t.index].as_value()
        m.d.comb += Assert((t.frame.as_value() == row) & (t.frames.content == row) & t.frames.known)


def require_rows(m: Module, bench: CoreBench) -> None:
    """What `core_frames` shows of any frame: of the one that is chosen, and of one that a WRITE appends to."""
    t, e, choice, rows = bench.t, bench.e, bench.t.replacement, bench.t.frames.rows
    with m.If(bench.state("CHOOSE") & choice.done & choice.found):
        chosen = rows[choice.frame].state
        m.d.comb += Assume(Mux(choice.evict, chosen == State.SEALED, chosen == State.FREE))
    appends = e._answers & (t.op.kind == Kind.WRITE) & (e._status == Status.OK)
    with m.If(appends | bench.state("ADVANCE", "APPEND")):
        m.d.comb += Assume(rows[t.index].state == State.WRITING)
