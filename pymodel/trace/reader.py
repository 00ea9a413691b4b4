"""Reads traces: streaming for tools that walk through one, as flat arrays for kernels."""

import gzip
import os
import re
import sys
import zlib
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

import msgspec
import numpy as np
from numpy.typing import NDArray

from hw.params.errors import InputError
from pymodel.trace.request import BLOCK_TOKENS, Request, blocks_of

_GZIP_MAGIC = b"\x1f\x8b"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_FIELDS = ", ".join(Request.__struct_fields__)
_VIOLATION = re.compile(r"Expected (?P<want>[^,]+?)(?:, got `(?P<got>\w+)`)?(?: - at `\$\.?(?P<where>.*)`)?")


@dataclass(frozen=True, eq=False)
class Trace:
    """A whole trace in flat arrays; request `i` references `ids[offsets[i]:offsets[i + 1]]`, in order."""

    ids: NDArray[np.int64]  # [references]
    offsets: NDArray[np.int64]  # [requests + 1]
    timestamps: NDArray[np.int64]  # [requests], ms
    input_lengths: NDArray[np.int64]  # [requests], tokens
    output_lengths: NDArray[np.int64]  # [requests], tokens

    def __len__(self) -> int:
        """Number of requests."""
        return len(self.offsets) - 1

    @classmethod
    def of(cls, requests: Iterable[Request]) -> "Trace":
        """Flattens requests, keeping their order and none of the objects."""
        ids, offsets, timestamps, inputs, outputs = (array("q") for _ in range(5))
        offsets.append(0)
        for request in requests:
            ids.extend(request.hash_ids)
            offsets.append(len(ids))
            timestamps.append(request.timestamp)
            inputs.append(request.input_length)
            outputs.append(request.output_length)
        return cls(*(np.frombuffer(values, np.int64) for values in (ids, offsets, timestamps, inputs, outputs)))


def load_trace(path: str | os.PathLike[str], limit: int | None = None, *, block_tokens: int = BLOCK_TOKENS) -> Trace:
    """The first `limit` requests of a trace file (all by default); lines after them are not looked at.

    Raises:
        InputError: as `read_requests`, or `limit` is below 1 or above 2^63 - 1.
    """
    if limit is not None and not 1 <= limit <= sys.maxsize:
        raise InputError(f"limit is {limit}, expected 1 to {sys.maxsize} requests")
    return Trace.of(islice(read_requests(path, block_tokens=block_tokens), limit))


def read_requests(path: str | os.PathLike[str], *, block_tokens: int = BLOCK_TOKENS) -> Iterator[Request]:
    """The requests of a trace file one by one: JSON lines, plain or gzip (told by content, not by name).

    Blank lines and unknown fields are ignored. Timestamps may repeat but not decrease. A request may list fewer ids
    than its prompt has blocks (some tools leave out a partial last block): the rest is never cached. It may not list
    more.

    Raises:
        InputError: `FILE:LINE: what, expected what`, in one line, when the first bad request is reached.
    """
    name = os.fspath(path)
    decode = msgspec.json.Decoder(Request).decode
    number = latest = 0
    seen = False
    try:
        with open(name, "rb") as file:
            lines = gzip.GzipFile(fileobj=file) if file.peek(2)[:2] == _GZIP_MAGIC else file
            for number, line in enumerate(lines, 1):
                if line.isspace():
                    continue
                if not line.isascii():
                    if number == 1 and line.startswith(_BYTE_ORDER_MARK):
                        raise InputError(f"{name}:1: starts with a byte order mark, expected UTF-8 without one")
                    line.decode()
                request = decode(line)
                if request.timestamp < latest:
                    raise InputError(
                        f"{name}:{number}: timestamp {request.timestamp} goes back, expected at least {latest}"
                    )
                listed, allowed = len(request.hash_ids), blocks_of(request.input_length, block_tokens)
                if listed > allowed:
                    raise InputError(
                        f"{name}:{number}: {listed} hash_ids, expected at most {allowed} "
                        f"for input_length {request.input_length} in blocks of {block_tokens} tokens"
                    )
                latest = request.timestamp
                seen = True
                yield request
    except msgspec.ValidationError as error:
        raise InputError(f"{name}:{number}: {_explain(str(error))}") from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(f"{name}:{number}: not JSON ({error}), expected one object a line") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{name}:{number}: byte {error.start} is not UTF-8, expected UTF-8 JSON lines") from None
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise InputError(f"{name}:{number + 1}: broken gzip ({error}), expected a complete gzip file") from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"{name or '(empty path)'}: {reason}, expected a readable trace file") from None
    if not seen:
        raise InputError(f"{name}:{number + 1}: no request, expected at least one JSON line")


def _explain(violation: str) -> str:
    """msgspec's complaint in the form `what, expected what`."""
    match = _VIOLATION.fullmatch(violation)
    if match is None:  # a missing field
        return f"{violation[0].lower()}{violation[1:]}, expected the fields {_FIELDS}"
    return f"{match['where'] or 'the line'} is {match['got'] or 'out of range'}, expected {match['want']}"
