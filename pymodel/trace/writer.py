"""Writes traces, all or nothing."""

import gzip
import os
import tempfile
from collections.abc import Iterable
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
    target = Path(path)
    if not target.name or target.is_dir():
        raise InputError(f"{path or '(empty path)'}: not a file name, expected where to write the trace")
    encode = msgspec.json.Encoder().encode
    count = 0
    try:
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as raw:
            try:
                packed = target.suffix == ".gz"
                out = gzip.GzipFile("", "wb", compresslevel=6, fileobj=raw, mtime=0) if packed else raw
                for count, request in enumerate(requests, 1):  # noqa: B007 (the count is the result)
                    out.write(encode(request))
                    out.write(b"\n")
                if packed:
                    out.close()
                raw.close()
                os.chmod(raw.name, 0o666 & ~_umask())
                os.replace(raw.name, target)
            except BaseException:
                os.unlink(raw.name)
                raise
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}, expected a writable folder and enough room") from None
    return count


def _umask() -> int:
    """The process's file mode mask, which temporary files do not follow."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
