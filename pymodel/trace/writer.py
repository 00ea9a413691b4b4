"""Writes traces, all or nothing."""

import os
import tempfile
import zlib
from collections.abc import Iterable
from pathlib import Path

import msgspec

from hw.params.errors import InputError
from pymodel.trace.request import Request

_GZIP = 31
"""`wbits` of zlib for the largest window and a gzip header without time."""


def write_requests(path: str | os.PathLike[str], requests: Iterable[Request]) -> int:
    """Writes JSON lines, gzipped if the name ends in `.gz`, and returns how many.

    The file appears under its name only when complete: whatever interrupts the writing, or the making of `requests`,
    leaves neither a part of it nor a temporary file. Equal requests give equal bytes, gzipped too.

    Raises:
        InputError: the file cannot be written.
    """
    target = Path(os.path.realpath(path))
    if not os.fspath(path):
        raise InputError("(empty path): expected where to write the trace")
    try:
        if os.path.lexists(target) and not target.is_file():  # what is still a link leads in a circle
            raise InputError(f"{path}: not a regular file, expected where to write the trace")
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".kvnode-") as folder:
            finished = Path(folder, target.name)
            count = _write(finished, requests)
            os.replace(finished, target)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}, expected a writable folder and enough room") from None
    return count


def _write(path: Path, requests: Iterable[Request]) -> int:
    encode = msgspec.json.Encoder().encode
    packer = zlib.compressobj(6, wbits=_GZIP) if path.suffix == ".gz" else None  # GzipFile complains about a full disk
    count = 0
    with open(path, "wb") as out:
        for request in requests:
            line = encode(request) + b"\n"
            out.write(packer.compress(line) if packer else line)
            count += 1
        if packer:
            out.write(packer.flush())
    return count
