"""An output folder that appears under its name only when everything in it is written."""

import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Callable, Collection
from pathlib import Path
from types import TracebackType

from hw.params import InputError

_LONGEST = 40
"""Characters of the folder's name in the name of the folder beside it: that must not become too long."""
_OF_A_FILE_SYSTEM = "lost+found"
"""What a freshly made volume has in it."""


class OutputFolder:
    """A context: gives an empty folder to write to, and puts it in the place of ``path`` at the end, or removes it.

    ``names`` are the files that may come to be in it. What is at ``path`` is replaced only if it is an empty folder,
    or has nothing else and ``is_result`` says that it is of an earlier run. A folder that cannot be renamed (a mounted
    volume, or one whose parent may not be written) keeps its place: its files are replaced one by one.

    What a run that was killed left behind is removed at the end of the next one.

    Raises InputError, before anything is done, for a path that cannot be written or must not be replaced.
    """

    def __init__(self, path: Path, names: Collection[str], is_result: Callable[[Path], bool]) -> None:
        self.path = path
        self._names = names
        self._target = Path(os.path.realpath(path))
        try:
            self._look(is_result)
            self._inside = self._target.exists() and (
                os.path.ismount(self._target) or not os.access(self._target.parent, os.W_OK | os.X_OK)
            )
            room = self._target if self._inside else self._target.parent
            room.mkdir(parents=True, exist_ok=True)
            self._stem = f".{self._target.name[:_LONGEST]}."
            self._work = room / f"{self._stem}{secrets.token_hex(4)}"
            self._work.mkdir()
            self._lock = _lock(self._work)
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}, expected a folder that can be written") from None

    def _look(self, is_result: Callable[[Path], bool]) -> None:
        """Refuse what must not be replaced."""
        nearest = next(parent for parent in self._target.parents if os.path.lexists(parent))
        if not nearest.is_dir():
            raise InputError(f"{self.path}: {nearest} is no folder, expected a folder that can be written")
        try:
            os.stat(self._target)
        except FileNotFoundError:
            return
        if not self._target.is_dir():
            raise InputError(f"{self.path}: is a file, expected a folder to write to")
        found = {entry.name for entry in self._target.iterdir() if not _hidden(entry.name)}
        others = sorted(found - set(self._names))
        if not others and found and not is_result(self._target):
            others = sorted(found)
        if others:
            raise InputError(
                f"{self.path}: has other files ({others[0]}), expected a new folder or one of an earlier run"
            )

    def __enter__(self) -> Path:
        return self._work

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        try:
            if kind is None:
                self._put()
                self._clean()
        finally:
            shutil.rmtree(self._work, ignore_errors=True)
            os.close(self._lock)

    def _put(self) -> None:
        """What was written, to its place."""
        if not self._inside:
            old = self._work.with_name(f"{self._work.name}.old")
            if self._target.exists():
                self._target.rename(old)
            self._work.rename(self._target)
            shutil.rmtree(old, ignore_errors=True)
            return
        for name in self._names:
            if (self._work / name).exists():
                (self._work / name).replace(self._target / name)
            else:
                (self._target / name).unlink(missing_ok=True)

    def _clean(self) -> None:
        """Remove what killed runs left: folders with such a name, only such files, and nobody who has them locked."""
        name = re.compile(re.escape(self._stem) + r"[0-9a-f]{8}(\.old)?")
        room = self._target if self._inside else self._target.parent
        for folder in room.iterdir():
            if folder == self._work or not name.fullmatch(folder.name) or not folder.is_dir() or folder.is_symlink():
                continue
            if {entry.name for entry in folder.iterdir()} - set(self._names):
                continue
            try:
                lock = _lock(folder)
            except OSError:
                continue
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)


def _lock(folder: Path) -> int:
    """Hold a folder as long as the file descriptor is open. Raises OSError when another process does."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _hidden(name: str) -> bool:
    """Of a file system, or of a run inside a volume."""
    return name == _OF_A_FILE_SYSTEM or re.fullmatch(r"\..{1,40}\.[0-9a-f]{8}", name) is not None
