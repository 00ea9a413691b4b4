"""Traffic of partitions that are isolated: what the promise of isolation leaves out does not happen in it."""

from collections.abc import Collection
from dataclasses import replace

from hw.params import commands as c
from hw.params.params import Params
from hw.params.protocol import REGISTERS
from pymodel.stimulus.traffic import Submit, Traffic

PUBLIC = 1


class Tenants(Traffic):
    """As ``Traffic``, but at most one partition is public, a ring stays its partition's, and memory damages nothing."""

    def __init__(self, params: Params, seed: int, *, without: Collection[str] = ()) -> None:
        super().__init__(params, seed, without={*without, "read_damaged"})

    def _partition(self, partition: int) -> c.SetPartition:
        return replace(super()._partition(partition), public=partition == PUBLIC and self._chance(0.9))

    def _bind(self) -> Submit:
        ring = self._any(sorted(self._lost)) or self._random.choice(self._rings)
        return self._submit(REGISTERS, c.Bind(ring, self._bindings[ring]))
