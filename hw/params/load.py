"""Parameters from a TOML file and from ``--set a.b=c`` overrides."""

import difflib
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from hw.params.errors import ParameterError
from hw.params.params import PRESETS, Params
from hw.params.section import Section, check
from hw.params.sections import PoolParams


def names() -> Iterator[tuple[str, type[Section]]]:
    """Every parameter by its dotted name (pools with the index 0), with the section it belongs to."""
    for group in fields(Params):
        section = PoolParams if group.name == "pools" else type(getattr(PRESETS["DEFAULT"], group.name))
        prefix = "pools.0" if group.name == "pools" else group.name
        for f in fields(section):
            yield f"{prefix}.{f.name}", section


def _unknown(name: str, where: str) -> ParameterError:
    known = ["preset", *(known for known, _ in names())]
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.0)[0]
    return ParameterError(f"{where}: unknown parameter {name!r}, did you mean {near!r}?")


def _value(text: str) -> Any:
    """A TOML value, or else the text itself."""
    try:
        read = _toml(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return read["value"] if read.keys() == {"value"} else text


def _toml(text: str) -> dict[str, Any]:
    """What a TOML text says. ValueError or RecursionError for what messages could not show either."""
    read = tomllib.loads(text)
    repr(read)
    return read


def _line(text: str) -> str:
    """A text as one line of a message."""
    return text if text.isprintable() else repr(text)


def _read(config: Path) -> dict[str, Any]:
    try:
        return _toml(config.read_text(encoding="utf-8"))
    except OSError as error:
        raise ParameterError(
            f"{_line(str(config))}: cannot be read ({error.strerror}), expected a TOML parameter file"
        ) from error
    except (ValueError, RecursionError) as error:
        reason = str(error).splitlines()[0]
        raise ParameterError(f"{_line(str(config))}: not a TOML parameter file ({reason})") from error


def _flatten(where: str, tree: Any, prefix: str = "") -> Iterator[tuple[str, str, Any]]:
    """(place, dotted name, value) for every leaf of a parameter file; arrays of tables are numbered.

    Empty tables and arrays are leaves too.
    """
    items: Iterator[tuple[Any, Any]] | Any
    if isinstance(tree, dict) and (tree or not prefix):
        items = tree.items()
    elif isinstance(tree, list) and tree and all(isinstance(item, dict) for item in tree):
        items = enumerate(tree)
    else:
        yield where, prefix, tree
        return
    for name, value in items:
        yield from _flatten(where, value, f"{prefix}.{name}" if prefix else str(name))


def _within(node: Any, part: str) -> Any:
    """What is called ``part`` in a table or an array, or None; the first number beyond an array of pools adds one."""
    if isinstance(node, list) and part.isdecimal() and int(part) <= len(node):
        if int(part) == len(node):
            node.append(asdict(PoolParams()))
        return node[int(part)]
    return node.get(part) if isinstance(node, dict) else None


def _assign(tree: dict[str, Any], where: str, name: str, value: Any) -> None:
    """Set the leaf ``name`` of ``tree``. An empty table changes nothing in a section or pool."""
    *path, leaf = name.split(".")
    node: Any = tree
    for part in path:
        node = _within(node, part)
    present = _within(node, leaf)
    if present is None:
        raise _unknown(name, where)
    if isinstance(present, dict | list):
        if isinstance(present, list) or value != {}:
            example = next(known for known, section in names() if section.section == name.split(".", 1)[0])
            raise ParameterError(f"{where}: {name} = {value!r}, expected its parameters, for example {example}")
        return
    section = next(section for _, section in names() if section.section == path[0])
    try:
        check(name, next(f for f in fields(section) if f.name == leaf), value)
    except ParameterError as error:
        raise ParameterError(f"{where}: {error}") from None
    node[leaf] = value


def load_params(config: Path | None = None, overrides: Sequence[str] = ()) -> Params:
    """The parameters of ``config`` (default: preset DEFAULT), changed by ``overrides`` of the form ``a.b=c``.

    ``preset`` (TINY, DEFAULT, LARGE) names the values that the others start from; pools are numbered from 0, and the
    first number beyond the preset's adds a pool. Raises ParameterError, in one line, for a file that cannot be read,
    an unknown name (with the nearest known one), a value out of range and a contradiction.
    """
    given = [] if config is None else list(_flatten(_line(str(config)), _read(config)))
    for text in overrides:
        name, equals, value = text.partition("=")
        where = f"--set {_line(text)}"
        if not equals or not name:
            raise ParameterError(f"{where}: expected NAME=VALUE, for example replay.seed=7")
        given.append((where, name.strip(), _value(value)))

    preset = PRESETS["DEFAULT"]
    for where, name, value in given:
        if name == "preset":
            if not isinstance(value, str) or value not in PRESETS:
                raise ParameterError(f"{where}: preset = {value!r}, expected one of {', '.join(PRESETS)}")
            preset = PRESETS[value]

    tree = asdict(preset)
    tree["pools"] = list(tree["pools"])
    for where, name, value in given:
        if name != "preset":
            _assign(tree, where, name, value)
    sections = {
        group.name: type(getattr(preset, group.name))(**tree[group.name])
        for group in fields(Params)
        if group.name != "pools"
    }
    return Params(pools=tuple(PoolParams(**pool) for pool in tree["pools"]), **sections)
