"""Links with replay for millions of cycles: both ends compiled, wires and users in C++."""

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path

import msgspec

from hw.params import Params
from hw.rtl.emit import Emission, emit
from hw.rtl.fabric import Channel, LinkEnd
from hw.tb.scoreboard import CheckError
from hw.tb.verilator import COMPILED, find_verilator

HERE = Path(__file__).resolve().parent
CHANNELS = (Channel.DATA, Channel.MESSAGE)
"""Those that the link is used with, both ways."""


@dataclass(frozen=True, kw_only=True)
class Course:
    """What happens on the way, as arguments of the program.

    - `cycles`: after them nothing goes wrong any more, and all has to come.
    - `latency`: of each wire.
    - `flip`, `lose`, `spell`, `length`: as of `hw.tb.link.wire.Trouble`.
    - `cut_every`, `cut_cycles`: how often one wire or both are cut, on average, and for how long at most; 0: never.
    - `reset_every`: how often an end is reset, or the user of the second held, on average; 0: never.
    - `moody`: users send and take now more, now less; else whatever they can.
    """

    cycles: int
    latency: int
    flip: float = 0.0
    lose: float = 0.0
    spell: float = 0.0
    length: int = 1
    cut_every: int = 0
    cut_cycles: int = 1
    reset_every: int = 0
    moody: bool = False


class Endurance(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What was counted.

    - `flits`, `cycles`: that came, both ways together; since the link was last up.
    - `hit`: pieces that were flipped or lost.
    - `ups`: how often the link came up. `failed`: how often an end gave it up. `lives`: of both users, by their resets.
    - `least`, `most`: cycles from lane to lane, to the first end.
    - `settled`: cycles until all had come.
    """

    flits: int
    cycles: int
    hit: int
    ups: int
    failed: int
    lives: int
    least: int
    most: int
    settled: int


@dataclass(frozen=True)
class Program:
    """The compiled link of some parameters."""

    path: Path

    def run(self, course: Course, *, seed: int) -> Endurance:
        """Run it. Raises CheckError if a rule is broken."""
        numbers = [str(int(value) if isinstance(value, bool) else value) for value in astuple(course)]
        command = [str(self.path), str(seed), *numbers, "+verilator+rand+reset+2"]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode:
            raise CheckError(f"link: {(result.stdout + result.stderr).strip()} (seed {seed}, {course})")
        return msgspec.json.decode(result.stdout, type=Endurance)


@contextmanager
def program(params: Params, *, credits: int) -> Iterator[Program]:
    """Compile a link with so many credits of each of `CHANNELS`, both ways."""
    buffers = {channel: credits for channel in CHANNELS}
    emission = emit(LinkEnd(params, sent=buffers, received=buffers), "link_end")
    with tempfile.TemporaryDirectory() as directory:
        source, _ = emission.write(Path(directory))
        Path(directory, "ports.h").write_text(_header(params, emission, credits))
        yield Program(
            find_verilator().build(
                Path(directory),
                source,
                HERE / "endurance.cpp",
                prefix="Vlink_end",
                output="endurance",
                options=("-MAKEFLAGS", COMPILED, "-CFLAGS", f"-I{HERE.parent / 'harness'}"),
            )
        )


def _header(params: Params, emission: Emission, credits: int) -> str:
    """Return what the program must know of the design, as C++."""
    flit = emission.ports["send__flit"]
    channel = flit["shape"]["fields"]["channel"]
    numbers = {
        "FLIT_BITS": flit["width"],
        "PIECE_BITS": emission.ports["outgoing__bits"]["width"],
        "CHANNELS": len(CHANNELS),
        "PATIENCE": 4 * (params.link.tries + 2) * params.link_timer,
    }
    lines = ["#pragma once", '#include "bits.h"', *(f"constexpr unsigned {name} = {n};" for name, n in numbers.items())]
    lines += [f"constexpr Field FLIT_CHANNEL{{{channel['offset']}, {channel['width']}}};"]
    lines += [f"constexpr unsigned CHANNEL[] = {{{', '.join(str(each.value) for each in CHANNELS)}}};"]
    lines += [f"constexpr unsigned BUFFERS[] = {{{', '.join(str(credits) for _ in CHANNELS)}}};"]
    return "\n".join(lines) + "\n"
