"""Builds the shared library: the slice under Verilator, and the models with what they must know of it."""

import fcntl
import hashlib
import json
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version
from pathlib import Path

from hw.params import Params
from hw.params.striping import Striping
from hw.rtl.emit import Emission, emit
from hw.rtl.fabric import Channel
from hw.rtl.fabric.layouts import from_node_buffers, to_node_buffers
from hw.rtl.node.slice import Slice
from hw.tb.objcache import objcache_environment
from hw.tb.runner import BUILD
from hw.tb.scoreboard import CheckError
from hw.tb.verilator import find_verilator

HERE = Path(__file__).resolve().parent
HW = HERE.parent.parent
MODELS = sorted([*HERE.glob("*.h"), *HERE.glob("*.cpp")])
GROUPS = {"links": "Link", "memory": "Memory", "axi": "Axi", "log": "Log"}
"""Bundles of ports that a model has; the first two are arrays."""


@cache
def emit_slice(params: Params) -> Emission:
    """Return the slice as Verilog; what equal sources gave before is read back, for it takes long."""
    sources = [file for tree in ("params", "rdl", "rtl") for file in sorted((HW / tree).rglob("*")) if file.is_file()]
    texts = [file.read_bytes() for file in sources if file.suffix in (".py", ".rdl", ".v")]
    key = b"".join([version("amaranth").encode(), version("pyosys").encode(), params.hash.encode(), *texts])
    directory = BUILD / f"emitted-{hashlib.sha256(key).hexdigest()[:16]}"
    verilog, ports = directory / "slice.v", directory / "slice.json"
    with _locked(directory):
        if not ports.exists():
            emit(Slice(params), "slice").write(directory)
        return Emission(name="slice", verilog=verilog.read_text(), ports=json.loads(ports.read_text())["ports"])


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Make a directory, and keep other processes from filling it at the same time."""
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def build_library(params: Params, emission: Emission, *, waves: bool) -> Path:
    """Return the library of a slice with its models; builds it unless one of equal content is there.

    Raises CheckError with the end of the compiler's output.
    """
    verilator = find_verilator()
    header = describe_ports(params, emission, waves=waves)
    flags = (*FLAGS, "-MAKEFLAGS", f"OPT_FAST={'-O3' if len(emission.verilog) < BIG else '-O1'}")
    tools = f"{verilator.program} {verilator.program.stat().st_mtime_ns} {flags}"
    parts = [tools, header, emission.verilog, *(file.read_text() for file in MODELS)]
    directory = BUILD / f"{emission.name}-{hashlib.sha256(''.join(parts).encode()).hexdigest()[:16]}"
    library = directory / "libslice.so"
    with _locked(directory):
        if not library.exists():
            source, _ = emission.write(directory)
            (directory / "slice_ports.h").write_text(header)
            command = [  # -Wno-fatal: warnings are the lint test's business
                *(str(verilator.program), "--cc", "--exe", "--build", "-j", "2", "-O3", "-Wno-fatal"),
                *("--x-initial", "unique"),
                *("--prefix", "Vslice", "--Mdir", str(directory), "-o", "partial.so", *flags),
                *(["--trace", "--trace-structs"] if waves else []),
                *("-CFLAGS", f"-I{directory} -I{HERE}", str(source), str(HERE / "harness.cpp")),
            ]
            environment = os.environ | verilator.environment | objcache_environment(BUILD / "objects")
            result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
            (directory / "build.log").write_text(result.stdout + result.stderr)
            if result.returncode:
                errors = [line for line in result.stderr.splitlines() if not line.startswith("%Warning")][-40:]
                raise CheckError("\n".join([*errors, f"{emission.name} did not build: {directory / 'build.log'}"]))
            (directory / "partial.so").rename(library)
    return library


FLAGS = (
    *("-CFLAGS", "-std=c++17 -fPIC -fvisibility=hidden -fno-gnu-unique"),
    *("-LDFLAGS", "-shared -Wl,-Bsymbolic"),
)
"""How it is compiled: libraries of different slices must not share anything in one process."""

BIG = 3_000_000
"""Characters of Verilog from which on -O3 takes too long for what it saves."""


def describe_ports(params: Params, emission: Emission, *, waves: bool) -> str:
    """Return what the models must know of the slice, as C++."""
    flit = emission.ports["links__0__to_node__flit"]
    channel = flit["shape"]["fields"]["channel"]
    log = emission.ports["log__payload"]
    numbers = {
        "WAVES": int(waves),
        "PORTS": params.tables.ports,
        "CHANNELS": params.memory.channels,
        "BEAT_BYTES": params.memory.beat_bytes,
        "SEGMENT_BYTES": params.memory.segment_bytes,
        "VIRTUAL_CHANNELS": len(Channel),
        "FLIT_BITS": flit["width"],
        "LOG_BITS": log["width"],
    }
    lines = ["#pragma once", '#include "Vslice.h"', '#include "bits.h"']
    lines += [f"#define {name} {value}u" for name, value in numbers.items()]
    lines += [f"constexpr std::uint64_t CHANNEL_BYTES = {Striping(params).channel_bytes}ull;"]
    lines += [f"constexpr Field FLIT_CHANNEL{{{channel['offset']}, {channel['width']}}};"]
    for name, buffers in {"TO_NODE": to_node_buffers(params), "FROM_NODE": from_node_buffers(params)}.items():
        sizes = ", ".join(str(buffers.get(each, 0)) for each in Channel)
        lines += [f"constexpr unsigned {name}_BUFFERS[] = {{{sizes}}};"]
    for group, name in GROUPS.items():
        lines += _accessors(group, name, list(emission.ports))
    return "\n".join(lines) + "\n"


def _accessors(group: str, name: str, ports: list[str]) -> list[str]:
    """Return a structure of references to the ports of a bundle, and the function that makes it of a slice."""
    pattern = re.compile(rf"{group}__(?:(\d+)__)?(\w+)")
    bundles: dict[str, list[tuple[str, str]]] = {}
    for match in filter(None, map(pattern.fullmatch, ports)):
        port = match[0]
        bundles.setdefault(match[1] or "", []).append((match[2].replace("__", "_"), port.replace("__", "___05F")))
    first = next(iter(bundles.values()))
    lines = [f"struct {name}Ports {{"]
    lines += [f"    decltype(Vslice::{port}) {member};" for member, port in first]
    lines += ["};"]
    function = f"{group.removesuffix('s')}_ports"
    values = {index: ", ".join(f"top.{port}" for _, port in members) for index, members in bundles.items()}
    if "" in values:
        return [*lines, f"inline {name}Ports {function}(Vslice& top) {{ return {{{values['']}}}; }}"]
    lines += [f"inline {name}Ports {function}(Vslice& top, unsigned number) {{", "    switch (number) {"]
    lines += [f"        case {index}: return {{{value}}};" for index, value in values.items() if index != "0"]
    lines += [f"        default: return {{{values['0']}}};", "    }", "}"]
    return lines
