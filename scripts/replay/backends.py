"""What `kvnode replay` can put behind the driver."""

from collections.abc import Callable

from hw.params import InputError, Params
from sw.driver import SpecificationTransport, Transport

BACKENDS: dict[str, Callable[[Params, int], Transport]] = {"spec": SpecificationTransport}
"""Name on the command line to a function that makes the transport, of parameters and the seed of its schedule."""


def make_transport(name: str, params: Params) -> Transport:
    """The transport of backend ``name``; InputError when there is none."""
    if name not in BACKENDS:
        raise InputError(f"--backend {name}: no such backend, expected one of: {', '.join(BACKENDS)}")
    return BACKENDS[name](params, params.replay.seed)
