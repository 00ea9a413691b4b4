"""Builds the shared library: a top under Verilator, and the models with what they must know of it."""

import fcntl
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from amaranth.lib import wiring

from hw.params import Params
from hw.params.protocol import NoteKind
from hw.params.striping import Striping
from hw.rtl.emit import Emission, emit
from hw.rtl.fabric import Channel
from hw.rtl.fabric.layouts import NOTE, from_node_buffers, to_node_buffers
from hw.tb.objcache import objcache_environment
from hw.tb.scoreboard import CheckError
from hw.tb.verilator import BUILD, COMPILED, find_verilator, run_whole

HERE = Path(__file__).resolve().parent
HW = HERE.parent.parent
BUNDLES = ("axi", "hbm", "host", "issued", "link", "log", "memory")
"""Bundles of ports that models have, if the top has them: one, or an array whose name may have an `s` more."""

MODELS = {"node": "slice"}
"""Tops with the models of another: what differs is how many of them there are."""


@cache
def emit_top(top: Callable[[Params], wiring.Component], name: str, params: Params) -> Emission:
    """Return a top as Verilog; what equal sources gave before is read back, for it takes long."""
    sources = [file for tree in ("params", "rdl", "rtl") for file in sorted((HW / tree).rglob("*")) if file.is_file()]
    texts = [file.read_bytes() for file in sources if file.suffix in (".py", ".rdl", ".v")]
    key = b"".join(
        [name.encode(), version("amaranth").encode(), version("pyosys").encode(), params.hash.encode(), *texts]
    )
    directory = BUILD / f"emitted-{hashlib.sha256(key).hexdigest()[:16]}"
    verilog, ports = directory / f"{name}.v", directory / f"{name}.json"
    with locked(directory):
        if not ports.exists():
            emit(top(params), name).write(aside := directory / "aside")
            for file in (verilog, ports):  # the last one says that all are whole
                (aside / file.name).rename(file)
        return Emission(name=name, verilog=verilog.read_text(), ports=json.loads(ports.read_text())["ports"])


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Make a directory, and keep other processes from filling it at the same time."""
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def build_library(params: Params, emission: Emission, *, waves: bool) -> Path:
    """Return the library of a top with its models; builds it unless one of equal content is there.

    The models are those of the file with the top's name, unless `MODELS` says another. Raises CheckError with the end
    of the compiler's output, or that there is none.
    """
    verilator = find_verilator()
    sources = [HERE / "simulation.cpp", HERE / f"{MODELS.get(emission.name, emission.name)}.cpp"]
    models = [file.read_text() for file in [*sorted(HERE.glob("*.h")), *sources]]
    header = describe_ports(params, emission, waves=waves)
    tools = f"{verilator.program} {verilator.program.stat().st_mtime_ns} {FLAGS}"
    parts = [tools, header, emission.verilog, *models]
    directory = BUILD / f"{emission.name}-{hashlib.sha256(''.join(parts).encode()).hexdigest()[:16]}"
    library = directory / f"lib{emission.name}.so"
    with locked(directory):
        if not library.exists():
            for program in ("make", "g++"):
                if shutil.which(program) is None:
                    raise CheckError(f"{emission.name} cannot be built: no {program} on PATH")
            source, _ = emission.write(directory)
            (directory / "top_ports.h").write_text(header)
            command = [  # -Wno-fatal: warnings are the lint test's business
                *(str(verilator.program), "--cc", "--exe", "--build", "-j", "2", "-O3", "-Wno-fatal"),
                *("--x-initial", "unique"),
                *("--prefix", "Vtop", "--Mdir", str(directory), "-o", "partial.so", *FLAGS),
                *(["--trace", "--trace-structs"] if waves else []),
                *("-CFLAGS", f"-I{HERE}", str(source), *map(str, sources)),  # it is compiled in the directory
            ]
            environment = os.environ | verilator.environment | objcache_environment(BUILD / "objects")
            result = run_whole(command, environment)
            (directory / "build.log").write_text(result.stdout + result.stderr)
            if result.returncode:
                errors = [line for line in result.stderr.splitlines() if not line.startswith("%Warning")][-40:]
                raise CheckError("\n".join([*errors, f"{emission.name} did not build: {directory / 'build.log'}"]))
            (directory / "partial.so").rename(library)
    return library


FLAGS = (
    *("-CFLAGS", "-std=c++17 -fPIC -fvisibility=hidden -fno-gnu-unique"),
    *("-LDFLAGS", "-shared -Wl,-Bsymbolic"),
    *("-MAKEFLAGS", COMPILED),
)
"""How it is compiled: libraries of different tops must not share anything in one process."""


def describe_ports(params: Params, emission: Emission, *, waves: bool) -> str:
    """Return what the models must know of the top, as C++."""
    bundles = {name: _bundles(name, emission) for name in BUNDLES}
    numbers = {
        "WAVES": int(waves),
        "UNITS": len(bundles["axi"]),
        "PORTS": params.tables.ports,
        "SLICES": len(bundles["log"]),
        "CHANNELS": len(bundles["memory"]),
        "BEAT_BYTES": params.memory.beat_bytes,
        "SEGMENT_BYTES": params.memory.segment_bytes,
        "LOG_BITS": emission.ports[bundles["log"][0]["payload"]]["width"],
    }
    if bundles["issued"]:
        numbers["ISSUED_BITS"] = emission.ports[bundles["issued"][0]["payload"]]["width"]
    lines = ["#pragma once", '#include "Vtop.h"', '#include "bits.h"']
    lines += [f"#define {name} {value}u" for name, value in numbers.items()]
    lines += [f"constexpr std::uint64_t CHANNEL_BYTES = {Striping(params).channel_bytes}ull;"]
    if bundles["link"]:
        lines += _describe_flits(params, emission.ports[bundles["link"][0]["to_node_flit"]])
    for name, members in bundles.items():
        if members:
            lines += _accessors(name, members)
    modelled = {port for each in bundles.values() for members in each for port in members.values()}
    lines += _tie_off(port for port in emission.ports if port not in modelled and _is_input(emission, port))
    return "\n".join(lines) + "\n"


def _is_input(emission: Emission, port: str) -> bool:
    """Return whether a port is an input, and has bits."""
    return emission.ports[port]["direction"] == "in" and emission.ports[port]["width"] > 0


def _tie_off(inputs: Iterable[str]) -> list[str]:
    """Return the function that gives every input of the top that no bundle has its value for want of another: 0."""
    return [
        "inline void tie_off(Vtop& top) {",
        "    (void)top;",
        *(f"    top.{_verilated(name)} = 0;" for name in inputs),
        "}",
    ]


def _describe_flits(params: Params, flit: dict[str, Any]) -> list[str]:
    """Return the places of what a link's end looks at, and the buffers at both ends."""
    fields = flit["shape"]["fields"]
    channel, last, data = (fields[name] for name in ("channel", "last", "data"))
    lines = [f"#define FLIT_BITS {flit['width']}u", f"#define VIRTUAL_CHANNELS {len(Channel)}u"]
    lines += [f"constexpr Field FLIT_CHANNEL{{{channel['offset']}, {channel['width']}}};"]
    lines += [f"constexpr Field FLIT_LAST{{{last['offset']}, {last['width']}}};"]
    lines += [f"constexpr Field FLIT_NOTE{{{data['offset']}, {NOTE.size}}};"]
    lines += [f"constexpr unsigned MESSAGE_CHANNEL = {Channel.MESSAGE.value}, NOTE_HEARTBEAT = {NoteKind.HEARTBEAT};"]
    lines += [f"constexpr std::uint64_t HEARTBEAT_CYCLES = {params.link.heartbeat_cycles};"]
    for name, buffers in {"TO_NODE": to_node_buffers(params), "FROM_NODE": from_node_buffers(params)}.items():
        sizes = ", ".join(str(buffers.get(each, 0)) for each in Channel)
        lines += [f"constexpr unsigned {name}_BUFFERS[] = {{{sizes}}};"]
    return lines


def _bundles(name: str, emission: Emission) -> list[dict[str, str]]:
    """Return the ports of each bundle of a name, by their names in it, in order; there is no port without bits."""
    pattern = re.compile(rf"{name}s?__(?:(\d+)__)?(\w+)")
    bundles: dict[int, dict[str, str]] = {}
    for match in filter(None, map(pattern.fullmatch, emission.ports)):
        if emission.ports[match[0]]["width"]:
            bundles.setdefault(int(match[1] or 0), {})[match[2].replace("__", "_")] = match[0]
    return [bundles[number] for number in sorted(bundles)]


def _verilated(port: str) -> str:
    """Return the name that a port has in Verilator's model."""
    return port.replace("__", "___05F")


def _accessors(name: str, bundles: list[dict[str, str]]) -> list[str]:
    """Return a structure of references to the ports of a bundle, and the function that makes it of a top."""
    ports = [{member: _verilated(port) for member, port in bundle.items()} for bundle in bundles]
    kind = f"{name.capitalize()}Ports"
    lines = [f"struct {kind} {{"]
    lines += [f"    decltype(Vtop::{port}) {member};" for member, port in ports[0].items()]
    lines += ["};", f"inline {kind} {name}_ports(Vtop& top, unsigned number = 0) {{", "    switch (number) {"]
    values = [", ".join(f"top.{port}" for port in bundle.values()) for bundle in ports]
    lines += [f"        case {number}: return {{{value}}};" for number, value in enumerate(values) if number]
    lines += [f"        default: return {{{values[0]}}};", "    }", "}"]
    return lines
