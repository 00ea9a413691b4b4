"""A million lookups in a second: the block CAM under a C++ harness, without Python in the loop."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from hw.params import KvnodeError, Params
from hw.params.toeplitz import diagonal_bits, diagonals, tag_bits
from hw.rtl.emit import Emission, emit
from hw.rtl.layouts import CamOp
from hw.rtl.node.cam import Cam
from hw.tb.verilator import find_verilator, run_whole

HARNESS = Path(__file__).with_suffix(".cpp")


class Throughput(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the harness counted.

    - `initialised`: cycles from reset to the first request.
    - `cycles`, `lookups`: cycles that the lookups took, half of them hits.
    - `wrong`, `missing`: responses that were not as expected, or that never came; both 0 on success.
    - `hit`, `miss`: least and most cycles from request to response.
    - `insert_slots`, `remove_slots`: requests that an insert and a removal took.
    - `refused`: inserts for which there was no place, while all frames were filled and random ones replaced.
    """

    initialised: int
    cycles: int
    lookups: int
    wrong: int
    missing: int
    hit: tuple[int, int]
    miss: tuple[int, int]
    insert_slots: float
    remove_slots: float
    refused: int


def measure(params: Params, *, lookups: int, stored: int, seed: int, replacements: int = 0) -> Throughput:
    """Run `lookups` on a CAM that holds `stored` tags, then `replacements` on one that holds a tag for every frame.

    Raises KvnodeError unless every response is right.
    """
    emission = emit(Cam(params), "cam")
    with tempfile.TemporaryDirectory() as directory:
        source, _ = emission.write(Path(directory))
        Path(directory, "ports.h").write_text(_header(params, emission))
        program = find_verilator().build(Path(directory), source, HARNESS, prefix="Vcam", output="throughput")
        arguments = [str(lookups), str(stored), str(seed), str(replacements), "+verilator+rand+reset+2"]
        run = run_whole([str(program), *arguments], os.environ)
        if run.returncode:
            raise KvnodeError(f"{program} failed: {' '.join((run.stdout + run.stderr).split()[-60:])}")
        result = msgspec.json.decode(run.stdout, type=Throughput)
    if result.wrong or result.missing:
        raise KvnodeError(f"block CAM: {result.wrong} wrong and {result.missing} missing responses, expected none")
    return result


def _header(params: Params, emission: Emission) -> str:
    """Return what the harness must know of the design, as C++."""
    names = {"requests": ("op", "tag", "frame", "valid", "place"), "responses": ("hit", "full", "frame", "place")}
    lines = ["#pragma once"]
    for port, fields in names.items():
        shape = emission.ports[f"{port}__payload"]["shape"]["fields"]
        for field in fields:
            place = f"{{{shape[field]['offset']}, {shape[field]['width']}}}"
            lines.append(f"#define {port[:-1].upper()}_{field.upper()} (Field{place})")
    width = diagonal_bits(params)
    bits = "".join(f"{diagonal:0{width}b}"[::-1] for diagonal in diagonals(params))
    operations: Any = CamOp
    lines += [f"#define OP_{operation.name} {operation.value}" for operation in operations]
    lines += [f"constexpr unsigned TAG_BITS = {tag_bits(params)};", f"constexpr unsigned FRAMES = {params.frames};"]
    lines += [f"constexpr char DIAGONALS[] = {json.dumps(bits)};"]
    return "\n".join(lines) + "\n"
