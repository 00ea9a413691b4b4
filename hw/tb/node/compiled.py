"""The worlds around a compiled node: one for each slice, in the same cycles and over the same links."""

from hw.params import load_params
from hw.params.params import Params
from hw.rtl.emit import Emission
from hw.tb.core.world import NOT_OURS
from hw.tb.harness import Harness, Links, Memory
from hw.tb.node.one_slice import views
from hw.tb.slice.compiled import CompiledWorld
from hw.tb.slice.latency import LANE, Surroundings, bounds
from pymodel.stimulus.traffic import Traffic

CHANGES = (
    "preset=TINY",
    "node.slices=2",
    "memory.channels=1",
    "memory.waiting_reads=4",
    "tables.ports=2",
    "tables.park_cycles=150",
    "tables.fence_cycles=400",
)


def small_node() -> Params:
    """Return two of the smallest slices: each with half as many channels as there are ports, and no long waits."""
    return load_params(None, CHANGES)


SHARED = (*NOT_OURS, "lose_ring")
"""Moves that traffic of one slice cannot make alone: a ring that is lost is lost at all of them."""


class NodeWorlds:
    """Traffic on every slice of a compiled node at once, each judged by a specification that follows its log.

    - `worlds`: one a slice. `harness`: the node.
    """

    def __init__(
        self,
        params: Params,
        seed: int,
        *,
        memory: Memory | None = None,
        links: Links | None = None,
        emission: Emission | None = None,
    ) -> None:
        self.harness = Harness(params, seed=seed, memory=memory, links=links, emission=emission)
        self.worlds = [
            CompiledWorld(params, seed + i, script=Traffic(params, seed + i, without=SHARED), harness=view, number=i)
            for i, view in enumerate(views(self.harness, params))
        ]
        for world in self.worlds:
            self._allow(world, params)

    def _allow(self, world: CompiledWorld, params: Params) -> None:
        """A flit takes its turn once more, of all channels and slices; commands of all slices keep the credits."""
        alone, slices = world.world.around, params.node.slices
        around = Surroundings(flit=LANE * slices * alone.flit, memory=slices * alone.memory)
        world.world.around = around
        world.limits = {span: slices * cycles for span, cycles in bounds(params, around).items()}

    def play(self, commands: int) -> None:
        """Send so many commands to each slice, in turn, and wait for their ends. Raises CheckError."""
        playing = [world.steps(commands) for world in self.worlds]
        while playing:
            for steps in list(playing):
                if next(steps, None) is None:
                    playing.remove(steps)
