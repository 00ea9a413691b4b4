"""Parameters from a TOML file and from ``--set a.b=c`` overrides."""

import difflib
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from hw.params.errors import ParameterError
from hw.params.params import PRESETS, Params, PoolParams
from hw.params.section import Section


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
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _read(config: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(config.read_text(encoding="utf-8"))
    except OSError as error:
        raise ParameterError(f"{config}: cannot be read ({error.strerror}), expected a TOML parameter file") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0]
        raise ParameterError(f"{config}: not a TOML parameter file ({reason})") from error


def _flatten(where: str, tree: Any, prefix: str = "") -> Iterator[tuple[str, str, Any]]:
    """(place, dotted name, value) for every leaf of a parameter file; arrays of tables are numbered."""
    if isinstance(tree, dict):
        items: Iterator[tuple[Any, Any]] | Any = tree.items()
    elif isinstance(tree, list) and all(isinstance(item, dict) for item in tree):
        items = enumerate(tree)
    else:
        yield where, prefix, tree
        return
    for name, value in items:
        yield from _flatten(where, value, f"{prefix}.{name}" if prefix else str(name))


def _assign(tree: dict[str, Any], where: str, name: str, value: Any) -> None:
    """Set the leaf ``name`` of ``tree``; the first pool number beyond those there adds a pool."""
    *path, leaf = name.split(".")
    node: Any = tree
    for part in path:
        if isinstance(node, list) and part.isdecimal() and int(part) <= len(node):
            if int(part) == len(node):
                node.append(asdict(PoolParams()))
            node = node[int(part)]
        elif isinstance(node, dict) and part in node:
            node = node[part]
        else:
            raise _unknown(name, where)
    if not isinstance(node, dict) or leaf not in node or isinstance(node[leaf], dict | list):
        raise _unknown(name, where)
    node[leaf] = value


def load_params(config: Path | None = None, overrides: Sequence[str] = ()) -> Params:
    """The parameters of ``config`` (default: preset DEFAULT), changed by ``overrides`` of the form ``a.b=c``.

    ``preset`` (TINY, DEFAULT, LARGE) names the values that the others start from; pools are numbered from 0, and the
    first number beyond the preset's adds a pool. Raises ParameterError, in one line, for a file that cannot be read,
    an unknown name (with the nearest known one), a value out of range and a contradiction.
    """
    given = [] if config is None else list(_flatten(str(config), _read(config)))
    for text in overrides:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise ParameterError(f"--set {text}: expected NAME=VALUE, for example replay.seed=7")
        given.append((f"--set {text}", name.strip(), _value(value)))

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
