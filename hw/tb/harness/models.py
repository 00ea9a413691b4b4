"""Builds models that need no design as a shared library."""

import ctypes
import hashlib
import shutil
import subprocess
from functools import cache
from pathlib import Path

from hw.tb.harness.build import HERE, locked
from hw.tb.scoreboard import CheckError
from hw.tb.verilator import BUILD


@cache
def load_models(program: str, *, ports: str = "", sources: Path = HERE) -> ctypes.CDLL:
    """Return `program` of the directory `sources` as a library, compiled unless equal text was compiled before.

    `ports` is what `top_ports.h` says, for models that include it. Raises CheckError with what the compiler says.
    """
    texts = [program, ports, *(file.read_text() for file in [sources / program, *sorted(sources.glob("*.h"))])]
    name = Path(program).stem
    directory = BUILD / f"{name}-{hashlib.sha256(''.join(texts).encode()).hexdigest()[:16]}"
    library = directory / f"lib{name}.so"
    with locked(directory):
        if not library.exists():
            if shutil.which("g++") is None:
                raise CheckError(f"{name} cannot be built: no g++ on PATH")
            (directory / "top_ports.h").write_text(ports)
            partial = directory / "partial.so"
            command = ["g++", "-std=c++17", "-O1", "-fPIC", "-shared", f"-I{directory}", f"-I{sources}"]
            result = subprocess.run(
                [*command, "-o", str(partial), str(sources / program)], capture_output=True, text=True, check=False
            )
            if result.returncode:
                raise CheckError(f"{result.stderr}\n{name} did not build")
            partial.rename(library)
    return ctypes.CDLL(str(library))
