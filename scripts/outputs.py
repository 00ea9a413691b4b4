"""Files that appear in a folder only when all of them are complete."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import click

from hw.params import InputError


class Folder(click.Path):
    """The type of an option that names a folder to write to; an empty name is refused."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not os.fspath(value):
            self.fail("an empty name, expected a folder to write to", param, ctx)
        return super().convert(value, param, ctx)


@contextmanager
def complete_files(folder: Path) -> Iterator[Path]:
    """Give an empty folder, and move the files in it into `folder` at the end; on any error, none of them.

    `folder` is made if need be, and not left behind empty by an error. Other files in it stay.

    Raises:
        InputError: `folder` cannot be written to, before anything else is done, or has too little room.
    """
    try:
        with _made(folder), tempfile.TemporaryDirectory(dir=folder, prefix=".kvnode-") as work:
            yield Path(work)
            files = sorted(Path(work).iterdir())
            for taken in (folder / file.name for file in files):
                if taken.is_dir():
                    raise InputError(f"{taken}: is a folder, expected where to write a file")
            for file in files:
                file.replace(folder / file.name)
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror or error}, expected a folder to write to, with room") from None


@contextmanager
def _made(folder: Path) -> Iterator[None]:
    new = not os.path.lexists(folder)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        if new:
            with suppress(OSError):
                folder.rmdir()
        raise
