"""Parameters, statuses, commands and identifiers: plain Python, imported by all, importing nothing else."""

from hw.params.errors import InputError, KvnodeError, ParameterError
from hw.params.load import load_params
from hw.params.params import DEFAULT, LARGE, PRESETS, TINY, Params

__all__ = [
    "DEFAULT",
    "LARGE",
    "PRESETS",
    "TINY",
    "InputError",
    "KvnodeError",
    "ParameterError",
    "Params",
    "load_params",
]
