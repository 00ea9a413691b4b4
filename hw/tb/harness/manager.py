"""A target of the compiled harness by itself: what it gives to an AXI4 manager that always asks."""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hw.tb.harness.build import HERE
from hw.tb.harness.dram import CDramStatistics, DramStatistics, Request, bursts, settings
from hw.tb.harness.models import load_models
from hw.tb.harness.simulation import CBehaviour, CStatistics, HarnessError, Memory, TargetStatistics

PORTS = """#pragma once
#include "bits.h"
#define BEAT_BYTES {beat_bytes}u
#define SEGMENT_BYTES 4096u
constexpr std::uint64_t CHANNEL_BYTES = 1ull << 48;
"""


@dataclass(frozen=True)
class Managed:
    """What became of a list of requests.

    - `cycles` to the last answer; `ends`: the cycle of the last answer to each request.
    - `together`: cycles with a beat each way. `least_turn`: from a beat to the next one the other way, at least.
    """

    cycles: int
    ends: np.ndarray
    together: int
    least_turn: int
    target: TargetStatistics
    channel: DramStatistics

    @property
    def rate(self) -> float:
        """Beats a cycle, both ways."""
        return (self.target.read_beats + self.target.write_beats) / self.cycles


def manage(
    memory: Memory,
    requests: Sequence[Request],
    *,
    beat_bytes: int = 64,
    outstanding: int = 16,
    seed: int = 0,
    sources: Path = HERE,
) -> Managed:
    """Make requests of whole beats in their order, `outstanding` of them at a time, 256 at most.

    What is read is compared with what was written, unless nothing was. `sources`: as in `dram.request`. Raises
    HarnessError if it is something else, or a rule of AXI4 is broken; InputError as `dram.request` does.
    """
    run = load_models("manager.cpp", ports=PORTS.format(beat_bytes=beat_bytes), sources=sources).manager_run
    pointer, number = ctypes.c_void_p, ctypes.c_uint64
    run.argtypes = (pointer, pointer, number, pointer, number, number, number, pointer, pointer)
    run.restype = ctypes.c_char_p
    asked = bursts(requests, outstanding)
    ends = np.zeros(len(requests), dtype="u8")
    result = _Result()
    channel = memory.channel and ctypes.byref(settings(memory.channel, beat_bytes))
    broken = run(
        *(ctypes.byref(CBehaviour.of(memory)), channel, seed, asked.ctypes.data, len(requests), outstanding),
        *(PATIENCE * len(requests), ends.ctypes.data, ctypes.byref(result)),
    )
    if broken:
        raise HarnessError(f"{broken.decode()} (cycle {result.cycles})")
    return Managed(result.cycles, ends, result.together, result.least_turn, result.target.told(), result.dram.told())


PATIENCE = 100_000
"""Cycles that a request may take."""


class _Result(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_uint64) for name in ("cycles", "together", "least_turn")),
        ("target", CStatistics),
        ("dram", CDramStatistics),
    ]
