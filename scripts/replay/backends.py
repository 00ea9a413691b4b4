"""What `kvnode replay` can put behind the driver."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hw.params import InputError, Params
from sw.driver import SpecificationTransport, Transport


@dataclass(frozen=True, slots=True)
class Waves:
    """Waves that are wanted: of the cycles from ``begin`` to before ``end``, in the file ``path``."""

    path: Path
    begin: int
    end: int


def _specification(params: Params, seed: int, waves: Waves | None) -> Transport:
    return SpecificationTransport(params, seed)


def _rtl(params: Params, seed: int, waves: Waves | None) -> Transport:
    from scripts.replay.rtl import RtlTransport  # noqa: PLC0415 (takes the HDL tools, and a second to import)

    return RtlTransport(params, seed, waves)


Make = Callable[[Params, int, Waves | None], Transport]

BACKENDS: dict[str, Make] = {"spec": _specification, "rtl": _rtl}
"""Name on the command line to a function that makes the transport: of parameters, the seed of its schedule, waves."""


WITHOUT_WAVES = frozenset({"spec"})
"""Backends that have no cycles."""


def check_backend(name: str, *, waves: bool) -> None:
    """InputError when there is no backend ``name``, or it cannot give the waves that are wanted."""
    if name not in BACKENDS:
        raise InputError(f"--backend {name}: no such backend, expected one of: {', '.join(BACKENDS)}")
    if waves and name in WITHOUT_WAVES:
        raise InputError(f"--waves: the backend {name} has no cycles, expected another backend")


def make_transport(name: str, params: Params, waves: Waves | None = None) -> Transport:
    """The transport of backend ``name``; InputError when there is none."""
    check_backend(name, waves=waves is not None)
    return BACKENDS[name](params, params.replay.seed, waves)
