"""One request of a trace, in the Mooncake JSON-lines form."""

from typing import Annotated

import msgspec

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


def blocks_of(tokens: int, block_tokens: int = BLOCK_TOKENS) -> int:
    """Blocks that hold `tokens` tokens, the last one possibly partial."""
    return -(-tokens // block_tokens)
