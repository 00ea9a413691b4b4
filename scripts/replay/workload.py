"""The requests of a trace, as a node sees them: port, partition, model and keys."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hw.params import InputError, Params
from hw.params.protocol import FRAME_BITS
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
    output_blocks: int
    """Number of blocks that the output appends."""

    @property
    def root(self) -> int:
        """The key of the first block of its chain."""
        return self.keys[0] if self.keys else content.output_key(self.number, 0)


class Workload:
    """A trace spread over the ports, partitions and models that ``params.replay`` asks for.

    Raises InputError for a request whose list of blocks does not fit ``replay.block_tokens``, or whose output has more
    blocks than the largest node has frames.
    """

    def __init__(self, trace: Trace, params: Params) -> None:
        self.trace = trace
        self._params = params.replay
        self._ports = [
            [port for port in params.ports_of(partition) if port < params.replay.ports]
            for partition in range(params.replay.partitions)
        ]
        tokens = self._params.block_tokens
        missing = blocks_of(trace.input_lengths, tokens) - np.diff(trace.offsets)
        for number in np.flatnonzero(missing > 1)[:1].tolist():
            expected = blocks_of(int(trace.input_lengths[number]), tokens)
            raise InputError(
                f"request {number + 1}: {trace.offsets[number + 1] - trace.offsets[number]} hash_ids for input_length"
                f" {trace.input_lengths[number]} in blocks of {tokens} tokens, expected"
                f" {expected - 1} or {expected}: {self._fitting()}"
            )
        most = max(map(self._appended, range(len(trace))), default=0)
        if most > 1 << FRAME_BITS:
            number = next(number for number in range(len(trace)) if self._appended(number) == most)
            raise InputError(
                f"request {number + 1}: output_length {trace.output_lengths[number]} is {most:,} blocks of {tokens}"
                f" tokens, expected at most {1 << FRAME_BITS:,}; set replay.decode=false to store no outputs"
            )

    def _fitting(self) -> str:
        """What to set, so that every request lists its blocks, or all but the last."""
        inputs, listed = self.trace.input_lengths, np.diff(self.trace.offsets)
        least = max(1, int(blocks_of(inputs, listed + 1).max()))
        most = int(np.where(listed > 1, (inputs - 1) // np.maximum(listed - 1, 1), 65536).min())
        if least > most:
            return "no replay.block_tokens fits all requests of this trace"
        return f"set replay.block_tokens={512 if least <= 512 <= most else most}, which fits this trace"

    def _appended(self, number: int) -> int:
        """Blocks that the output of a request appends."""
        if not self._params.decode:
            return 0
        prompt, output = int(self.trace.input_lengths[number]), int(self.trace.output_lengths[number])
        return blocks_of(prompt + output, self._params.block_tokens) - blocks_of(prompt, self._params.block_tokens)

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
        """The requests in the order of the trace; ports, or those of the partition, take turns."""
        for number in range(len(self.trace)):
            ids = self._block_ids(number)
            partition, model = self._owner(ids)
            ports = self._ports[partition]
            yield Request(
                number,
                ports[number % len(ports)],
                partition,
                model,
                [content.prompt_key(block_id) for block_id in ids],
                self._appended(number),
            )

    def blocks(self, numbers: Sequence[int]) -> Trace:
        """The requests of these numbers, with ids that differ between partitions and models, as blocks of a node do."""
        ids = [self._block_ids(number) for number in numbers]
        owners = [self._owner(block_ids) for block_ids in ids]
        shares = np.array([partition * self._params.models + model for partition, model in owners], np.int64)
        lengths = np.array([len(block_ids) for block_ids in ids], np.int64)
        _, dense = np.unique(np.array([i for block_ids in ids for i in block_ids], np.int64), return_inverse=True)
        dense = dense.astype(np.int64) * (self._params.partitions * self._params.models) + np.repeat(shares, lengths)
        old, chosen = self.trace, np.array(numbers, np.int64)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        return Trace(dense, offsets, old.timestamps[chosen], old.input_lengths[chosen], old.output_lengths[chosen])
