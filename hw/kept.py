"""Results that are kept on disk, as JSON: a file is whole, or it is not there."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any


def keep(file: Path, result: dict[str, Any]) -> None:
    """Write a result; whoever reads meanwhile, or after a kill, finds all of it or what was there before."""
    file.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=file.name)
    with os.fdopen(descriptor, "w") as stream:
        json.dump(result, stream)
    os.replace(name, file)


def kept(file: Path) -> dict[str, Any] | None:
    """Return what was kept; None if nothing was, or if the file is not what `keep` writes."""
    try:
        found = json.loads(file.read_text())
    except (FileNotFoundError, ValueError):
        return None
    return found if isinstance(found, dict) else None
