"""What blocks are called and what is in them: both follow from the trace, the seed and the number of the store."""

from hashlib import blake2b, shake_128

from hw.params.protocol import KEY_BITS


def _fields(tag: bytes, *numbers: int) -> bytes:
    """Tag and numbers, each behind its length: no two different lists give the same bytes."""
    parts = [tag, *(number.to_bytes(16, "little") for number in numbers)]
    return b"".join([len(part).to_bytes(1, "little") + part for part in parts])


def _number(data: bytes) -> int:
    return int.from_bytes(blake2b(data, digest_size=KEY_BITS // 8).digest(), "little")


def prompt_key(block_id: int) -> int:
    """The content key of a block of the trace."""
    return _number(_fields(b"prompt", block_id))


def output_key(request: int, block: int) -> int:
    """The content key of a block that a request's output appends: no other request has it."""
    return _number(_fields(b"output", request, block))


def conversation(block_ids: list[int]) -> int:
    """A number for the conversation of a prompt: from its second block, as all may share the first."""
    return _number(_fields(b"conversation", *block_ids[:2][-1:]))


def payload(seed: int, block: tuple[int, int, int], nonce: int, length: int) -> bytes:
    """The bytes of a block (partition, model, key); ``nonce`` is the number of its store: no two stores are equal."""
    return shake_128(_fields(b"payload", seed, *block, nonce)).digest(length)
