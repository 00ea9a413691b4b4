"""All properties and guards: every module of `hw.formal.properties` lists its own in `PROPERTIES`, and every module of
`hw.formal.guards` in `GUARDS`."""

import difflib
import importlib
import pkgutil
from collections.abc import Iterator, Sequence
from types import ModuleType

from hw.formal import guards, properties
from hw.formal.guard import Guard
from hw.formal.property import Property
from hw.params import InputError


def all_properties() -> dict[str, Property]:
    """Return every property by name."""
    return {p.name: p for module in _modules(properties) for p in module.PROPERTIES}


def all_guards() -> list[Guard]:
    """Return every guard."""
    return [guard for module in _modules(guards) for guard in module.GUARDS]


def choose(names: Sequence[str]) -> list[Property]:
    """Return the properties called `names`, where a group stands for all its own; all if there are none.

    Raises InputError for an unknown name, with the nearest known one.
    """
    known = all_properties()
    groups = {name.split(".")[0] for name in known}
    for name in names:
        if name not in known and name not in groups:
            near = difflib.get_close_matches(name, [*known, *groups], n=1, cutoff=0.0)[0]
            raise InputError(f"no property {name!r}, did you mean {near!r}?")
    return [p for name, p in known.items() if not names or name in names or name.split(".")[0] in names]


def _modules(package: ModuleType) -> Iterator[ModuleType]:
    names = sorted(module.name for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."))
    return (importlib.import_module(name) for name in names)
