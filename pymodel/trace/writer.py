"""Writes traces, all or nothing."""

import gzip
import os
import tempfile
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path

import msgspec

from hw.params.errors import InputError
from pymodel.trace.request import Request


def write_requests(path: str | os.PathLike[str], requests: Iterable[Request]) -> int:
    """Writes JSON lines, gzipped if the name ends in `.gz`, and returns how many.

    The file appears under its name only when complete: whatever interrupts the writing, or the making of `requests`,
    leaves neither a part of it nor a temporary file. Equal requests give equal bytes, gzipped too.

    Raises:
        InputError: the file cannot be written.
    """
    target = Path(os.path.realpath(path))
    if not os.fspath(path) or (target.exists() and not target.is_file()):
        raise InputError(f"{path or '(empty path)'}: not a regular file, expected where to write the trace")
    try:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as folder:
            finished = Path(folder, target.name)
            count = _write(finished, requests)
            os.replace(finished, target)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}, expected a writable folder and enough room") from None
    return count


def _write(path: Path, requests: Iterable[Request]) -> int:
    encode = msgspec.json.Encoder().encode
    count = 0
    with (
        open(path, "wb") as raw,
        gzip.GzipFile("", "wb", 6, raw, mtime=0) if path.suffix == ".gz" else nullcontext(raw) as out,
    ):
        for request in requests:
            out.write(encode(request) + b"\n")
            count += 1
    return count
