"""Sphinx extension: tables that are made from the code at build time, by ``{generated} NAME`` in a page."""

from __future__ import annotations

import ast
import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import Field, fields, is_dataclass
from functools import cached_property
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from hw.params import PRESETS, Params
from hw.params.dram import DRAMS, Dram
from hw.params.load import names
from hw.params.protocol import PRECEDENCE, Opcode, Status
from hw.params.registers import ErrorKind
from hw.params.section import Section
from hw.params.statistics import STATISTICS
from hw.rdl import Register, register_map
from hw.rdl.cheader import RECORDS
from hw.rdl.registers import REQUESTER
from pymodel.spec.slice import COMMANDS, INTERNAL

ROOT = Path(__file__).resolve().parent.parent
SPECIFICATION = ROOT / "pymodel" / "spec"
_SOURCES = [*SPECIFICATION.rglob("*.py"), *(ROOT / "hw" / "params").glob("*.py"), *(ROOT / "hw" / "rdl").iterdir()]
"""What the tables are made from: a page with one is read again when any of these has changed."""


def table(heads: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A Markdown table; a bar in a cell is escaped."""

    def line(cells: Iterable[object]) -> str:
        return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"

    heads = list(heads)
    return "\n".join([line(heads), line("---" for _ in heads), *map(line, rows)])


def _number(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:,}" if isinstance(value, int) else str(value)


def _parameter(name: str, f: Field[Any]) -> list[str]:
    path, _, leaf = name.replace("pools.0", "pools").rpartition(".")
    groups = (getattr(preset, path) for preset in PRESETS.values())
    values = (getattr(group[0] if path == "pools" else group, leaf) for group in groups)
    low, high, unit = (f.metadata[key] for key in ("low", "high", "unit"))
    span = "true, false" if low is None else f"{_number(low)} to {_number(high)}"
    if f.metadata["choices"]:
        span = ", ".join(f.metadata["choices"])
    if f.metadata["power_of_two"]:
        span += ", a power of two"
    return [f"`{name}`", *map(_number, values), span, unit, f.metadata["doc"]]


def parameters() -> str:
    """Every parameter: its value in each preset, range, unit and meaning; a section each."""
    sections: dict[type[Section], list[str]] = {}
    for name, section in names():
        sections.setdefault(section, []).append(name)
    parts = []
    for section, members in sections.items():
        declared = {f.name: f for f in fields(section)}
        rows = [_parameter(name, declared[name.rpartition(".")[2]]) for name in members]
        parts.append(f"## `{section.section}`\n\n{inspect.getdoc(section)}\n")
        parts.append(table(["parameter", *PRESETS, "range", "unit", "meaning"], rows) + "\n")
    return "\n".join(parts)


def derived() -> str:
    """What follows from the parameters of each preset, one value each."""
    every = {name: each for name, each in vars(Params).items() if isinstance(each, property | cached_property)}
    found = {name: each for name, each in every.items() if not is_dataclass(getattr(PRESETS["DEFAULT"], name))}
    rows = (
        [f"`{name}`", *(_number(getattr(preset, name)) for preset in PRESETS.values()), inspect.getdoc(made)]
        for name, made in found.items()
    )
    return table(["value", *PRESETS, "meaning"], rows)


def drams() -> str:
    """Every figure of the devices that memory channels are made of, and where they are from."""
    declared = {f.name: f for f in fields(Dram) if f.name != "source"}
    rows = [
        [f"`{name}`", *(_number(getattr(dram, name)) for dram in DRAMS.values()), f.metadata["unit"], f.metadata["doc"]]
        for name, f in declared.items()
    ]
    sources = [f"- {name}: {dram.source}." for name, dram in DRAMS.items()]
    return "\n".join([table(["figure", *DRAMS, "unit", "meaning"], rows), "", *sources])


def _fields(register: Register) -> Iterator[list[str]]:
    place = [f"`{register.offset:#04x}`", f"`{register.name}`"]
    for f in register.fields:
        bits = f"{f.low + f.width - 1}:{f.low}" if f.width > 1 else str(f.low)
        reset = f"`{f.reset:#x}`" if f.parameter is None else f"`{f.parameter}`"
        notes = [f.doc]
        if register.locked:
            notes.append(f"Locked by `{register.locked}`.")
        if f.enable:
            notes.append(f"Enabled by `{f.enable}`.")
        yield [*place, bits, f"`{f.name}`", f.kind.value, reset, " ".join(notes)]
        place = ["", ""]


def _registers(registers: Iterable[Register]) -> str:
    rows = (row for register in registers for row in _fields(register))
    return table(["offset", "register", "bits", "field", "kind", "reset", "meaning"], rows)


def registers() -> str:
    """Every field of every register of a slice."""
    return _registers(register_map().values())


def requester_registers() -> str:
    """Every field of every register of a requester; of the rings, the first."""
    return _registers(register for register in register_map(REQUESTER).values() if not register.index)


def records() -> str:
    """Every record in host memory: where each field is, and what it means."""
    parts = []
    for name, record in RECORDS.items():
        rows = ([f"`{at}`", f"`{f}`", record.fields[f]] for f, at in record.offsets.items())
        parts.append(f"## `{name}`, {record.size} bytes\n\n{record.doc}\n\n{table(['byte', 'field', 'bits'], rows)}\n")
    return "\n".join(parts)


def error_kinds() -> str:
    """Every kind of entry of the error log."""
    return table(["code", "kind", "meaning"], ([k.value, f"`{k.name}`", k.meaning] for k in ErrorKind))


def statuses() -> str:
    """Every status, with its code and meaning."""
    return table(["code", "status", "meaning"], ([s.value, f"`{s.name}`", s.meaning] for s in Status))


def precedence() -> str:
    """In which order refusals are given where several apply."""
    return ", ".join(f"`{s.name}`" for s in PRECEDENCE) + ", then any other."


def _where(function: Callable[..., Any]) -> str:
    return f"`{function.__module__.rpartition('.')[2]}.{function.__name__}`"


def opcodes() -> str:
    """Every command, its code, the function that is its specification, and what that says of itself."""
    rows = ([o.value, f"`{o.name}`", _where(COMMANDS[o]), inspect.getdoc(COMMANDS[o])] for o in Opcode)
    return table(["code", "command", "function", "effect"], rows)


def operations() -> str:
    """Every internal operation and the function that is its specification."""
    rows = ([f"`{kind.__name__}`", _where(made), inspect.getdoc(made)] for kind, made in INTERNAL.items())
    return table(["operation", "function", "effect"], rows)


def statistics() -> str:
    """Every field of a replay's ``stats.json``, in groups."""
    parts = []
    for group, members in groupby(STATISTICS, attrgetter("group")):
        rows = ([f"`{s.name}`", s.unit, s.definition] for s in members)
        parts.append(f"## {group}\n\n{table(['field', 'unit', 'meaning'], rows)}\n")
    return "\n".join(parts)


def invariants() -> str:
    """In which modules of the specification each invariant is checked, and at how many places."""
    found: dict[int, Counter[str]] = {}
    for source in sorted(SPECIFICATION.rglob("*.py")):
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "invariant":
                number = ast.literal_eval(node.args[0])
                found.setdefault(number, Counter())[source.name] += 1
    rows = ([n, ", ".join(f"`{name}` ({k})" for name, k in sorted(found[n].items()))] for n in sorted(found))
    return table(["invariant", "checked in (number of checks)"], rows)


TABLES: dict[str, Callable[[], str]] = {
    made.__name__: made
    for made in (
        parameters,
        derived,
        drams,
        registers,
        requester_registers,
        records,
        error_kinds,
        statuses,
        precedence,
        opcodes,
        operations,
        invariants,
        statistics,
    )
}


class Generated(SphinxDirective):
    """``{generated} NAME``: the table of that name."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        if name not in TABLES:
            raise self.error(f"no table {name!r}, expected one of {', '.join(TABLES)}")
        for source in _SOURCES:
            self.env.note_dependency(str(source))
        return self.parse_text_to_nodes(TABLES[name](), allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.add_directive("generated", Generated)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
