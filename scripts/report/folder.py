"""An output folder that appears under its name only when everything in it is written."""

import os
import secrets
import shutil
from collections.abc import Collection
from pathlib import Path
from types import TracebackType

from hw.params import InputError


class OutputFolder:
    """A context: gives an empty folder beside ``path``, and puts it in its place at the end, or removes it.

    ``names`` are the files that may come to be in it. What is at ``path`` is replaced only if it has nothing else: an
    empty folder, or the result of an earlier run.

    Raises InputError, before anything is done, for a path that cannot be written or must not be replaced.
    """

    def __init__(self, path: Path, names: Collection[str]) -> None:
        self.path = path
        self._target = Path(os.path.realpath(path))
        if self._target.exists():
            if not self._target.is_dir():
                raise InputError(f"{path}: is a file, expected a folder to write to")
            others = sorted({entry.name for entry in self._target.iterdir()} - set(names))
            if others:
                raise InputError(
                    f"{path}: has other files ({others[0]}), expected a new folder or one of an earlier run"
                )
        self._work = self._target.with_name(f".{self._target.name}.{secrets.token_hex(4)}")
        try:
            self._target.parent.mkdir(parents=True, exist_ok=True)
            self._work.mkdir()
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}, expected a folder that can be written") from None

    def __enter__(self) -> Path:
        return self._work

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        old = self._work.with_name(f"{self._work.name}.old")
        try:
            if kind is None:
                if self._target.exists():
                    self._target.rename(old)
                self._work.rename(self._target)
        finally:
            shutil.rmtree(self._work, ignore_errors=True)
            shutil.rmtree(old, ignore_errors=True)
