"""Which revision of the code made a result."""

import subprocess
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent


def git_rev() -> str | None:
    """Full commit id of this tree, with `-dirty` if tracked files differ; None outside a git checkout of it."""
    if not (_ROOT / ".git").exists():
        return None
    try:
        command = ["git", "-C", str(_ROOT), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None
