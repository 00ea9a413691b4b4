"""Parameters by way of a bench's settings, which are plain data."""

from dataclasses import asdict
from typing import Any

from hw.params.params import Params
from hw.params.rota import RotaParams
from hw.params.sections import CamParams, LinkParams, MemoryParams, PoolParams, ReplayParams, TableParams


def settings_of(params: Params) -> dict[str, Any]:
    """The settings that `params_of` makes the parameters of."""
    return asdict(params)


def params_of(settings: dict[str, Any]) -> Params:
    """The parameters that were put into the settings."""
    return Params(
        memory=MemoryParams(**settings["memory"]),
        link=LinkParams(**settings["link"]),
        cam=CamParams(**settings["cam"]),
        pools=tuple(PoolParams(**pool) for pool in settings["pools"]),
        tables=TableParams(**settings["tables"]),
        rota=RotaParams(**settings["rota"]),
        replay=ReplayParams(**settings["replay"]),
    )
