"""A counterexample as Python values, and its replay in the Amaranth simulator."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

from amaranth import ClockDomain, Module, Signal
from amaranth.hdl import Fragment, Value
from amaranth.hdl._ast import Property, Switch  # statements have no public way in
from amaranth.lib import wiring
from amaranth.lib.wiring import In
from amaranth.sim import Simulator
from vcd.reader import TokenKind, tokenize

Inputs: TypeAlias = dict[str, int]
"""The inputs of one cycle by name, reset as `rst`; a port in a structure is called `outer__inner`."""


def read_inputs(waves: Path, design: wiring.Component) -> list[Inputs]:
    """Return the inputs of `design` cycle by cycle, from the waves of a failed proof."""
    wanted = {"rst", *_ports(design)}
    names: dict[str, str] = {}
    values: Inputs = dict.fromkeys(sorted(wanted), 0)
    cycles: list[Inputs] = []
    depth, step = 0, False
    with waves.open("rb") as file:
        for token in tokenize(file):
            if token.kind is TokenKind.SCOPE:
                depth += 1
            elif token.kind is TokenKind.UPSCOPE:
                depth -= 1
            elif token.kind is TokenKind.VAR and depth < 2:
                names[token.var.id_code] = token.var.reference
            elif token.kind is TokenKind.CHANGE_TIME:
                if step:
                    cycles.append(dict(values))
                step = False
            elif token.kind in (TokenKind.CHANGE_SCALAR, TokenKind.CHANGE_VECTOR):
                change = token.scalar_change if token.kind is TokenKind.CHANGE_SCALAR else token.vector_change
                name = names.get(change.id_code)
                step |= name == "smt_step"
                if name in wanted:
                    values[name] = _number(change.value)
    return cycles  # the last step only marks the end


def replay(design: wiring.Component, inputs: list[Inputs]) -> dict[int, list[str]]:
    """Apply `inputs` to `design`, and return the false claims of each cycle that has some, by their places.

    As in a proof, claims and rules count from the cycle after the first. Registers that no reset reaches and memories
    begin with their initial values here, with anything in a proof: a failure that comes from their content may not
    show. Raises ValueError if the inputs break a rule of the surroundings and so are no counterexample.
    """
    ports = _ports(design)
    fragment = Fragment.get(design, None)
    found_checks = list(checks(fragment))
    m = Module()
    m.domains.sync = sync = ClockDomain()
    m.submodules.design = fragment
    found: dict[int, list[str]] = {}

    async def drive(ctx: Any) -> None:
        for cycle, values in enumerate(inputs):
            ctx.set(sync.rst, values["rst"])
            for name, port in ports.items():
                ctx.set(port, values[name])
            for kind, place, flag in found_checks:
                if cycle and not ctx.get(flag):
                    if kind is Property.Kind.Assume:
                        raise ValueError(f"cycle {cycle}: the inputs break the rule at {place}")
                    found.setdefault(cycle, []).append(place)
            await ctx.tick()

    simulator = Simulator(m)
    simulator.add_clock(1e-9)
    simulator.add_testbench(drive)
    simulator.run()
    return found


def _ports(design: wiring.Component) -> dict[str, Value]:
    """The inputs of `design`."""
    return {
        "__".join(map(str, path)): Value.cast(value)
        for path, member, value in design.signature.flatten(design)
        if member.flow is In
    }


def checks(fragment: Fragment, *, covers: bool = False) -> Iterator[tuple[Property.Kind, str, Signal]]:
    """Turn every claim and rule into a signal that tells whether it holds: only settled values are to count.

    With `covers`, every cover too; without, they are left out.
    """
    for submodule, _, _ in fragment.subfragments:
        yield from checks(submodule, covers=covers)
    for statements in fragment.statements.values():
        yield from _flags(statements, covers)


def _flags(statements: list, covers: bool) -> Iterator[tuple[Property.Kind, str, Signal]]:
    for statement in list(statements):
        if isinstance(statement, Switch):
            for _, inner, _ in statement.cases:
                yield from _flags(inner, covers)
        elif isinstance(statement, Property):
            where = statements.index(statement)
            if statement.kind is Property.Kind.Cover and not covers:
                del statements[where]
                continue
            flag = Signal(init=statement.kind is not Property.Kind.Cover, name="holds")
            statements[where] = flag.eq(statement.test.bool())
            file, line = statement.src_loc
            yield statement.kind, f"{Path(file).name}:{line}", flag


def _number(value: int | str) -> int:
    """Return a value of the waves; where a bit is undefined, as no claim depends on it, any will do."""
    return int(value.translate(str.maketrans("xzXZ", "0000")), 2) if isinstance(value, str) else value
