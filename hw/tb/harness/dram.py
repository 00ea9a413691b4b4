"""The memory channel of the compiled harness by itself: what it gives to a requester that always asks."""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hw.params import InputError
from hw.params.dram import MemoryChannel
from hw.tb.harness.build import HERE
from hw.tb.harness.models import load_models


class Kind(IntEnum):
    """Commands to a device."""

    ACTIVATE = 0
    PRECHARGE = 1
    READ = 2
    WRITE = 3
    PRECHARGE_ALL = 4
    REFRESH_ALL = 5
    REFRESH_BANK = 6


class Request(NamedTuple):
    """A burst of whole or partial accesses; of a channel alone, asked for at a clock or later."""

    address: int
    bytes: int
    write: bool = False
    at: int = 0


class DramStatistics(NamedTuple):
    """What a channel has counted; times in clocks of the device.

    - `reads`, `writes`: accesses on the data bus; `hits`: those of them that found their row open. `forwarded`: reads
      of what still waited to be written.
    - `activations`, `conflicts`: rows opened, and rows closed for another. `turnarounds`: changes between reads and
      writes.
    - `refreshes`, and `refresh_clocks`: clocks in which all banks were refreshed, or waited for it.
    - `longest_wait`: of an access in the queue. `clocks`: the end of the last data.
    """

    reads: int
    writes: int
    hits: int
    forwarded: int
    activations: int
    conflicts: int
    turnarounds: int
    refreshes: int
    refresh_clocks: int
    longest_wait: int
    clocks: int


COMMAND = np.dtype([("clock", "u8"), ("kind", "u4"), ("bank", "u4"), ("row", "u4"), ("column", "u4")])
"""A command as it is recorded; banks are numbered over all groups, those of a group together."""


@dataclass(frozen=True)
class Run:
    """What became of a list of requests.

    - `fraction`: of the peak, from the first clock to the end of the last data.
    - `ends`: for each request the clock at which it had its data, or a place for it.
    - `commands`: an array of `COMMAND`, if it was asked for.
    """

    fraction: float
    statistics: DramStatistics
    ends: np.ndarray
    commands: np.ndarray


class CDramStatistics(ctypes.Structure):
    """`DramStatistics` of the models."""

    _fields_ = [(name, ctypes.c_uint64) for name in DramStatistics._fields]

    def told(self) -> DramStatistics:
        """Return them as Python has them."""
        return DramStatistics(*(getattr(self, name) for name in DramStatistics._fields))


class Settings(ctypes.Structure):
    """`DramSettings` of the models."""

    _NAMES = (
        *("clocks", "access_shift", "group_shift", "bank_shift", "row_shift", "column_shift"),
        *("group_bits", "bank_bits", "row_bits", "column_bits"),
        *("bl", "cl", "cwl", "gap", "rcd_read", "rcd_write", "rp", "ras", "rc"),
        *("ccd_s", "ccd_l", "ccd_l_write", "rrd_s", "rrd_l", "faw", "wtr_s", "wtr_l", "wr", "rtp"),
        *("refi", "rfc", "rfc_bank", "rrefd", "refresh_banks", "queue", "high", "low", "batch", "patience", "close"),
    )
    _fields_ = [(name, ctypes.c_uint32) for name in _NAMES]


def settings(channel: MemoryChannel, beat_bytes: int) -> Settings:
    """Return what the models know of a channel, for a data path with beats of that size."""
    dram, controller = channel.dram, channel.controller
    values = {name: getattr(dram, name) for name in Settings._NAMES if hasattr(dram, name)}
    values |= {name: getattr(controller, name) for name in Settings._NAMES if hasattr(controller, name)}
    for field in channel.map:
        values |= {f"{field}_shift": channel.shift(field), f"{field}_bits": dram.bits(field)}
    values |= {"clocks": dram.clocks_per_cycle(beat_bytes), "access_shift": dram.access_bytes.bit_length() - 1}
    return Settings(**values, refresh_banks=dram.refresh == "bank")


def bursts(requests: Sequence[Request], outstanding: int) -> np.ndarray:
    """Return `DramRequest`s of the models, one a row. Raises InputError where nothing can be asked for."""
    if not requests:
        raise InputError("no requests, expected one at least")
    if outstanding < 1:
        raise InputError(f"outstanding = {outstanding}, expected 1 or more")
    for number, each in enumerate(requests):
        if each.bytes < 1 or each.address < 0 or each.at < 0:
            raise InputError(f"request {number}: {each}, expected 1 byte or more, and an address and a clock from 0")
    return np.array([(r.address, r.bytes, r.write, r.at) for r in requests], dtype="u8")


def request(
    channel: MemoryChannel,
    requests: Sequence[Request],
    *,
    outstanding: int = 16,
    record: bool = False,
    sources: Path = HERE,
) -> Run:
    """Give bursts to a channel in their order, always `outstanding` of them at a time, and tell what came of it.

    `record`: with all commands. `sources`: the directory of the models, if they are not these. Raises InputError for no
    requests, for one that asks for nothing, and for none outstanding.
    """
    asked = bursts(requests, outstanding)
    ends = np.zeros(len(requests), dtype="u8")
    accesses = int(np.sum(asked[:, 1])) // channel.dram.access_bytes + 2 * len(requests)
    counts = CDramStatistics()
    run = load_models("requester.cpp", sources=sources).dram_request
    pointer, number = ctypes.c_void_p, ctypes.c_uint64
    run.argtypes = (pointer, pointer, number, number, pointer, pointer, pointer, number)
    run.restype = number

    def recorded(room: int) -> tuple[np.ndarray, int]:
        commands = np.zeros(room, dtype=COMMAND)
        told = run(
            ctypes.byref(settings(channel, 128)),
            *(asked.ctypes.data, len(requests), outstanding, ends.ctypes.data, ctypes.byref(counts)),
            *(commands.ctypes.data, room),
        )
        return commands, told

    commands, told = recorded(4 * accesses + 1000 if record else 0)
    if told > len(commands):  # refreshes while nothing is asked for; equal requests give equal commands
        commands, told = recorded(told)
    statistics = counts.told()
    moved = (statistics.reads + statistics.writes) * channel.dram.bl
    return Run(moved / max(1, statistics.clocks), statistics, ends, commands[:told])
