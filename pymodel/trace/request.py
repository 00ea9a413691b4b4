"""One request of a trace, in the Mooncake JSON-lines form."""

from typing import Annotated, overload

import msgspec
import numpy as np
from numpy.typing import NDArray

BLOCK_TOKENS = 512
"""Tokens of a block in the public Mooncake traces."""

Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Length = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]


class Request(msgspec.Struct, frozen=True, gc=False):
    """A request: when it arrived, how long it is, and which blocks its prompt consists of.

    Ids are chained: equal ids mean equal tokens in the block *and before it*, so a shared id is a shared prefix.
    """

    timestamp: Count  # ms since the start of the trace
    input_length: Length  # tokens
    output_length: Length  # tokens
    hash_ids: list[Count]  # one id per block of the prompt


@overload
def blocks_of(tokens: int, block_tokens: int = ...) -> int: ...


@overload
def blocks_of(tokens: NDArray[np.int64], block_tokens: int | NDArray[np.int64] = ...) -> NDArray[np.int64]: ...


def blocks_of(
    tokens: int | NDArray[np.int64], block_tokens: int | NDArray[np.int64] = BLOCK_TOKENS
) -> int | NDArray[np.int64]:
    """Blocks that hold `tokens` tokens, the last one possibly partial; arrays element by element."""
    return -(-tokens // block_tokens)
