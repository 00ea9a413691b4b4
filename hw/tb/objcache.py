"""A compiler launcher for Verilator's make runs: compiles each file of Verilator's run time once, not once a block.

make calls it as `objcache.py COMPILER ARGUMENTS... -c -o OBJECT SOURCE`.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

DIRECTORY = "KVNODE_OBJECTS"
"""Environment variable with the directory of the compiled objects."""


def objcache_environment(directory: Path) -> dict[str, str]:
    """Return the variables that make a Verilator make run use this launcher."""
    return {"OBJCACHE": f"{sys.executable} -S {Path(__file__).resolve()}", DIRECTORY: str(directory)}


def main(command: list[str]) -> int:
    """Compile, or copy what an equal command has compiled; return the exit status."""
    source = Path(command[-1])
    if "-o" not in command or not source.name.startswith("verilated"):
        return subprocess.run(command, check=False).returncode
    output = Path(command[command.index("-o") + 1])
    compiler = Path(shutil.which(command[0]) or command[0]).resolve()
    key = [*command, *(f"{file} {file.stat().st_mtime_ns}" for file in (source, compiler))]
    cached = Path(os.environ[DIRECTORY], f"{hashlib.sha256(repr(key).encode()).hexdigest()}.o")
    if not cached.exists():
        status = subprocess.run(command, check=False).returncode
        if status:
            return status
        cached.parent.mkdir(parents=True, exist_ok=True)
        partial = cached.with_suffix(f".{os.getpid()}")
        shutil.copyfile(output, partial)
        partial.replace(cached)
    shutil.copyfile(cached, output)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
