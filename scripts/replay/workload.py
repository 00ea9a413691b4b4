"""The requests of a trace, as a node sees them: port, partition, model and keys."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hw.params import Params
from pymodel.trace import Trace, blocks_of
from scripts.replay import content


@dataclass(frozen=True, slots=True)
class Request:
    """One request; its ring is number ``partition`` of ``port``. ``number`` counts from 0."""

    number: int
    port: int
    partition: int
    model: int
    keys: list[int]
    """Of the prompt's blocks, in order."""
    output_keys: list[int]
    """Of the blocks that the output appends."""


class Workload:
    """A trace spread over the ports, partitions and models that ``params.replay`` asks for."""

    def __init__(self, trace: Trace, params: Params) -> None:
        self.trace = trace
        self._params = params.replay

    def __len__(self) -> int:
        return len(self.trace)

    def _owner(self, block_ids: list[int]) -> tuple[int, int]:
        """Partition and model of a conversation."""
        model, partition = divmod(content.conversation(block_ids), self._params.partitions)
        return partition, model % self._params.models

    def _block_ids(self, number: int) -> list[int]:
        begin, end = self.trace.offsets[number : number + 2]
        return self.trace.ids[begin:end].tolist()

    def __iter__(self) -> Iterator[Request]:
        """The requests in the order of the trace; ports take turns."""
        trace, params = self.trace, self._params
        for number in range(len(trace)):
            ids = self._block_ids(number)
            tokens = int(trace.input_lengths[number] + trace.output_lengths[number])
            appended = max(0, blocks_of(tokens, params.block_tokens) - len(ids)) if params.decode else 0
            yield Request(
                number,
                number % params.ports,
                *self._owner(ids),
                [content.prompt_key(block_id) for block_id in ids],
                [content.output_key(number, block) for block in range(appended)],
            )

    def blocks(self) -> Trace:
        """The trace with ids that differ between partitions and models, as the blocks of the node do."""
        owners = [self._owner(self._block_ids(number)) for number in range(len(self))]
        shares = np.array([partition * self._params.models + model for partition, model in owners], np.int64)
        of_reference = np.repeat(shares, np.diff(self.trace.offsets))
        _, dense = np.unique(self.trace.ids, return_inverse=True)
        ids = dense.astype(np.int64) * (self._params.partitions * self._params.models) + of_reference
        old = self.trace
        return Trace(ids, old.offsets, old.timestamps, old.input_lengths, old.output_lengths)
