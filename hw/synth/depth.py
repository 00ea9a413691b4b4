"""Logic depth of a mapped netlist."""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from types import MappingProxyType
from typing import Any

from hw.params import KvnodeError

NONE: Mapping[str, Set[str]] = MappingProxyType({})


@dataclass(frozen=True, kw_only=True)
class Path:
    """A longest combinational path: its levels, and the nets where it starts and ends."""

    levels: int
    start: str
    end: str


def longest_path(
    module: Mapping[str, Any], clocked: Set[str], free: Mapping[str, Set[str]], sampled: Mapping[str, Set[str]] = NONE
) -> Path:
    """Return a path of most levels through `module`, as `write_json` gives it.

    A level is a cell that is entered over general routing; inputs in `free`, by type of cell, cost nothing. Paths start
    at inputs of the module and outputs of cells of the types in `clocked`, and end at their counterparts, and at the
    inputs in `sampled`, by type of cell. Raises KvnodeError for a combinational loop.
    """
    names = _names(module)
    cells = {name: cell for name, cell in module["cells"].items() if cell["type"] not in clocked}
    driver = {bit: name for name, cell in cells.items() for bit in _bits(cell, "output")}
    passed = {
        name: [
            pin
            for pin, towards in cell["port_directions"].items()
            if towards == "input" and pin not in sampled.get(cell["type"], ())
        ]
        for name, cell in cells.items()
    }
    order = TopologicalSorter(
        {name: {driver[bit] for bit in _nets(cell, passed[name]) if bit in driver} for name, cell in cells.items()}
    )
    arrival: dict[Any, tuple[int, Any]] = {}
    try:
        for name in order.static_order():
            cell = cells[name]
            reached = max(
                (
                    _step(arrival, bit, cost=pin not in free.get(cell["type"], ()))
                    for pin in passed[name]
                    for bit in _nets(cell, [pin])
                ),
                key=lambda step: step[0],
                default=None,
            )
            if reached:
                arrival |= dict.fromkeys(_bits(cell, "output"), reached)
    except CycleError as error:
        raise KvnodeError(f"combinational loop through {', '.join(map(str, error.args[1]))}") from None

    ends: list[tuple[int, Any, str]] = [
        (*_step(arrival, bit, cost=False), names.get(bit, "?"))
        for port in module["ports"].values()
        if port["direction"] == "output"
        for bit in port["bits"]
        if not isinstance(bit, str)
    ]
    for name, cell in module["cells"].items():
        target = next((names[bit] for bit in _bits(cell, "output") if bit in names), name)
        if cell["type"] in clocked:
            ends += [(*_step(arrival, bit, cost=False), target) for bit in _bits(cell, "input")]
        elif cell["type"] in sampled:
            ends += [(*_step(arrival, bit, cost=True), target) for bit in _nets(cell, sampled[cell["type"]])]
    if not ends:
        return Path(levels=0, start="nothing", end="nothing")
    levels, first, end = max(ends, key=lambda item: item[0])
    return Path(levels=levels, start=names.get(first, "?"), end=end)


def _step(arrival: Mapping[Any, tuple[int, Any]], bit: Any, *, cost: bool) -> tuple[int, Any]:
    levels, start = arrival.get(bit, (0, bit))
    return levels + cost, start


def _bits(cell: Mapping[str, Any], direction: str) -> list[int]:
    return _nets(cell, (pin for pin, towards in cell["port_directions"].items() if towards == direction))


def _nets(cell: Mapping[str, Any], pins: Iterable[str]) -> list[int]:
    return [bit for pin in pins for bit in cell["connections"].get(pin, ()) if not isinstance(bit, str)]


def _names(module: Mapping[str, Any]) -> dict[int, str]:
    """A name for every net, one from the source if it has any."""
    names: dict[int, str] = {}
    for name, net in sorted(module["netnames"].items(), key=lambda item: (item[1]["hide_name"], len(item[0]))):
        for i, bit in enumerate(net["bits"]):
            names.setdefault(bit, f"{name}[{i}]" if len(net["bits"]) > 1 else name)
    return names
