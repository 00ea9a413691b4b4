"""What every compiled top has, from Python: few calls, each of many cycles."""

import ctypes
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from hw.params import InputError, Params
from hw.params.dram import MemoryChannel
from hw.params.striping import Striping
from hw.rtl.emit import Emission
from hw.rtl.node.layouts import log_layout
from hw.tb.harness.build import build_library
from hw.tb.harness.dram import CDramStatistics, DramStatistics, settings
from hw.tb.scoreboard import CheckError

CHUNK = 10_000
"""Cycles that are run before Python may be interrupted."""

PATIENCE = 1_000
"""Cycles within which an access to a register has to end."""

EVERY = (1 << 64) - 1
"""In place of a beat's number: all beats."""

LONGEST = (1 << 31) - 1
"""Most cycles, beats or bursts of a `Memory`."""

STAMP_BYTES = 8
"""Bytes of the cycle, little-endian, before each flit received and each entry of the log."""


class HarnessError(CheckError):
    """The design broke a rule of an interface, or did not answer; the harness cannot be used any more."""


@dataclass(frozen=True, kw_only=True)
class Memory:
    """How memory behaves; all targets of a kind share it.

    - `latency`: cycles from the address of a read, or the last beat of a write, to the first answer; up to `jitter`
      more for each burst by itself.
    - `reorder`: answer bursts that are due in any order, those of one ID in that of their addresses; else all are.
      `interleave`: with that, mix the beats of different reads.
    - `outstanding`: reads, and likewise writes, that a target takes before it has answered the first.
    - `address_willing`, `data_willing`, `answer_willing`: probability, each cycle, that addresses and write data are
      taken, and that answers are given: the fraction of the bandwidth that there is. 0: never.
    - `shared`: reads and writes have one bus, which moves a beat a cycle, and none for `turnaround` cycles when it
      changes from one to the other: when the others wait and these do not, or have moved `batch` beats.
    - `channel`: what is behind each target, if not memory that is always as late; `latency` comes on top of what that
      takes. A write is answered once all of it has a place in the channel's queue. It has a bus of its own, so it is
      not `shared`, and stays while bursts are under way.

    Raises InputError for what none of this is.
    """

    latency: int = 10
    jitter: int = 0
    reorder: bool = False
    interleave: bool = False
    outstanding: int = 256
    address_willing: float = 1.0
    data_willing: float = 1.0
    answer_willing: float = 1.0
    shared: bool = False
    turnaround: int = 0
    batch: int = 64
    channel: MemoryChannel | None = None

    def __post_init__(self) -> None:
        least = {"latency": 0, "jitter": 0, "outstanding": 1, "turnaround": 0, "batch": 1}
        for name, low in least.items():
            if not low <= getattr(self, name) <= LONGEST:
                raise InputError(f"memory with {name} = {getattr(self, name)}, expected {low} to {LONGEST:,}")
        for name in ("address_willing", "data_willing", "answer_willing"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(f"memory with {name} = {getattr(self, name)}, expected a probability, 0 to 1")
        if self.turnaround and not self.shared:
            raise InputError(f"memory with turnaround = {self.turnaround} that is not shared, expected 0")
        if self.shared and self.channel is not None:
            raise InputError("memory that is shared and has a channel, expected one of them: a channel has one bus")


class TargetStatistics(NamedTuple):
    """What a target has counted: bursts, beats, cycles with a beat offered, and most bursts in flight.

    - `turns`: of a bus that is `shared`, from reads to writes or back.
    """

    read_bursts: int
    read_beats: int
    read_busy: int
    most_reads: int
    write_bursts: int
    write_beats: int
    write_busy: int
    most_writes: int
    turns: int


class Injected(NamedTuple):
    """Errors that memory has delivered: write and read bursts that failed, and reads with a flipped bit."""

    writes: int
    reads: int
    spoilt: int


class Simulation:
    """A design with memory and software around it, reset and in its first cycle.

    Everything random follows from `seed`: the values before reset, and what the models do. `targets` says how many
    there are of each kind of memory, that of the slice first; their behaviour is a `Memory`. `waves` is the VCD file
    to write, if any; `trace` limits it to some cycles.
    """

    _API: Mapping[str, tuple[Any, tuple[Any, ...]]]
    """The C interface of a top besides the common one: result and arguments of each `harness_NAME`."""

    def __init__(
        self, params: Params, emission: Emission, *, seed: int, targets: Mapping[str, int], waves: Path | None
    ):
        self._params = params
        self._targets: dict[str, range] = {}
        self._behaviours: dict[str, Memory] = {}
        first = 0
        for kind, count in targets.items():
            self._targets[kind] = range(first, first + count)
            first += count
        self._units = emission.ports["irq"]["width"]
        self._channel_bytes = Striping(params).channel_bytes
        self.log_bytes = -(-log_layout().size // 8)
        """Bytes of an entry of the order log, a packed `log_layout()`."""
        self._library = _load(build_library(params, emission, waves=waves is not None))
        _declare(self._library, self._API)
        self._pointer = ctypes.c_void_p(self._library.harness_new(seed & (1 << 64) - 1))
        self.log_willing = 1.0
        if waves is not None:
            self._library.harness_open_waves(self._harness, str(waves).encode())

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """End the simulation, and the waves."""
        if getattr(self, "_pointer", None):
            self._library.harness_delete(self._pointer)
            self._pointer = ctypes.c_void_p()

    @property
    def _harness(self) -> ctypes.c_void_p:
        if not self._pointer:
            raise HarnessError("the harness is closed, expected one that runs")
        return self._pointer

    @property
    def memory(self) -> Memory:
        """How the memory of the slice behaves from the next cycle on."""
        return self._behaviours["memory"]

    @memory.setter
    def memory(self, memory: Memory) -> None:
        self._behave("memory", memory)

    @property
    def log_willing(self) -> float:
        """Probability, each cycle, that an entry of the order log is taken."""
        return self._log_willing

    @log_willing.setter
    def log_willing(self, probability: float) -> None:
        self._log_willing = probability
        self._library.harness_set_log(self._harness, probability)

    @property
    def cycle(self) -> int:
        """Cycles since reset."""
        return int(self._library.harness_cycle(self._harness))

    @property
    def irq(self) -> int:
        """The interrupt lines, a bit a unit."""
        return int(self._library.harness_irq(self._harness))

    @property
    def restarting(self) -> bool:
        """The slice restarts: what is queued for the links is dropped, all credits are restored."""
        return bool(self._library.harness_restarting(self._harness))

    def run(self, cycles: int) -> int:
        """Run so many cycles and return their number. Raises HarnessError if the design breaks a rule."""
        left = cycles
        while left:
            left -= self._library.harness_run(self._harness, min(left, CHUNK))
            self._check()
        return cycles

    def run_until_interrupt(self, limit: int) -> int:
        """Run while no interrupt line is high, `limit` cycles at most; return how many it were. Raises HarnessError."""
        done = 0
        while done < limit and not self.irq:
            done += self._library.harness_run_until_interrupt(self._harness, min(limit - done, CHUNK))
            self._check()
        return done

    def run_alone(self, cycles: int) -> None:
        """Run the clock alone, no model taking part: for measurements, after which nothing else can be run."""
        self._library.harness_idle(self._harness, cycles)

    def log(self, slice_: int = 0) -> bytes:
        """Return the entries of a slice's order log since the last call, `STAMP_BYTES` of cycle before each."""
        return self._take("log", slice_)

    def write_register(self, offset: int, value: int, strobe: int = 15, *, unit: int = 0) -> int:
        """Write the bytes of a register that have a strobe; return BRESP. Raises HarnessError if there is none."""
        response = self._library.harness_write_register(
            self._harness, self._unit(unit), offset, value, strobe, PATIENCE
        )
        self._check()
        if response < 0:
            raise HarnessError(f"unit {unit}: no BVALID in {PATIENCE} cycles for {offset:#x} (cycle {self.cycle})")
        return int(response)

    def read_register(self, offset: int, *, unit: int = 0) -> tuple[int, int]:
        """Read a register; return value and RRESP. Raises HarnessError if there is no answer."""
        value = ctypes.c_uint32()
        response = self._library.harness_read_register(
            self._harness, self._unit(unit), offset, ctypes.byref(value), PATIENCE
        )
        self._check()
        if response < 0:
            raise HarnessError(f"unit {unit}: no RVALID in {PATIENCE} cycles for {offset:#x} (cycle {self.cycle})")
        return value.value, int(response)

    def fail_writes(self, number: int, count: int, *, of: str = "memory") -> None:
        """Let the next `count` write bursts of a target, one of a kind, be answered with SLVERR."""
        self._wrong(of, number, writes=count)

    def fail_reads(self, number: int, count: int, *, beat: int | None = None, of: str = "memory") -> None:
        """Let the next `count` read bursts of a target be answered with SLVERR, in every beat.

        With `beat`, in that one alone, if a burst has it; so are those that were to fail anyway.
        """
        self._library.harness_fail_beat(self._harness, self._target(of, number), EVERY if beat is None else beat)
        self._wrong(of, number, reads=count)

    def spoil(self, number: int, count: int, *, of: str = "memory") -> None:
        """Let the next `count` read bursts of a target that do not fail return one flipped bit each."""
        self._wrong(of, number, spoilt=count)

    def injected(self, *, of: str = "memory") -> Injected:
        """Return how many errors the design has been given, over all targets of a kind."""
        each = [self._read(_Faults, self._library.harness_injected, target) for target in self._targets[of]]
        return Injected(*(sum(getattr(faults, name) for faults in each) for name in Injected._fields))

    def memory_bytes(self, channel: int, address: int, length: int) -> bytes:
        """Return what a memory channel of the slice holds; what was never written reads 0xA5."""
        self._target("memory", channel)
        if address < 0 or length < 0 or address + length > self._channel_bytes:
            raise InputError(f"bytes {address} to {address + length} of a channel of {self._channel_bytes}")
        data = ctypes.create_string_buffer(length)
        self._library.harness_memory(self._harness, channel, address, length, data)
        return data.raw

    def statistics(self, *, of: str = "memory") -> list[TargetStatistics]:
        """Return what each target of a kind has counted since reset."""
        call = self._library.harness_statistics
        return [self._read(CStatistics, call, target).told() for target in self._targets[of]]

    def channel_statistics(self, *, of: str = "memory") -> list[DramStatistics]:
        """Return what the channel of each target of a kind has counted since it has it; zeros without one."""
        call = self._library.harness_dram_statistics
        return [self._read(CDramStatistics, call, target).told() for target in self._targets[of]]

    def trace(self, from_cycle: int, to_cycle: int) -> None:
        """Limit the waves to cycles from `from_cycle` to before `to_cycle`."""
        self._library.harness_trace(self._harness, from_cycle, to_cycle)

    def _behave(self, kind: str, memory: Memory) -> None:
        """Let all targets of a kind behave so. Raises InputError for another channel while bursts are under way."""
        behaviour = CBehaviour.of(memory)
        channel = memory.channel and ctypes.byref(settings(memory.channel, self._params.memory.beat_bytes))
        for target in self._targets[kind]:
            if not self._library.harness_equip(self._harness, target, channel):
                raise InputError(f"another channel for {kind}, expected the same while bursts are under way there")
            self._library.harness_set_target(self._harness, target, ctypes.byref(behaviour))
        self._behaviours[kind] = memory

    def _unit(self, unit: int) -> int:
        if not 0 <= unit < self._units:
            raise InputError(f"unit {unit} of registers, expected 0 to {self._units - 1}")
        return unit

    def _port(self, port: int) -> int:
        if not 0 <= port < self._params.tables.ports:
            raise InputError(f"port {port}, expected 0 to {self._params.tables.ports - 1}")
        return port

    def _target(self, kind: str, number: int) -> int:
        targets = self._targets[kind]
        if not 0 <= number < len(targets):
            raise InputError(f"{kind} {number}, expected 0 to {len(targets) - 1}")
        return targets[number]

    def _wrong(self, kind: str, number: int, **more: int) -> None:
        self._library.harness_wrong(self._harness, self._target(kind, number), ctypes.byref(_Faults(**more)))

    def _read(self, kind: type[Any], call: Callable[..., Any], target: int) -> Any:
        result = kind()
        call(self._harness, target, ctypes.byref(result))
        return result

    def _take(self, name: str, *number: int) -> bytes:
        """Return what a sink holds, and clear it."""
        size = ctypes.c_uint64()
        sink = getattr(self._library, f"harness_{name}")
        data = ctypes.string_at(sink(self._harness, *number, ctypes.byref(size)), size.value)
        getattr(self._library, f"harness_clear_{name}")(self._harness, *number)
        return data

    def _check(self) -> None:
        """Raise what a model has found."""
        error = self._library.harness_error(self._harness).decode()
        if error:
            raise HarnessError(f"{error} (cycle {self.cycle})")


class CBehaviour(ctypes.Structure):
    """`TargetBehaviour` of the models."""

    _fields_ = [
        ("latency", ctypes.c_uint32),
        ("jitter", ctypes.c_uint32),
        ("reorder", ctypes.c_uint32),
        ("interleave", ctypes.c_uint32),
        ("outstanding", ctypes.c_uint32),
        ("shared", ctypes.c_uint32),
        ("turnaround", ctypes.c_uint32),
        ("batch", ctypes.c_uint32),
        ("address_willing", ctypes.c_double),
        ("data_willing", ctypes.c_double),
        ("answer_willing", ctypes.c_double),
    ]

    @classmethod
    def of(cls, memory: Memory) -> "CBehaviour":
        """Return how memory behaves, but for its channel."""
        return cls(**{name: getattr(memory, name) for name, *_ in cls._fields_})


class _Faults(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in Injected._fields]


class CStatistics(ctypes.Structure):
    """`TargetStatistics` of the models."""

    _fields_ = [(name, ctypes.c_uint64) for name in TargetStatistics._fields]

    def told(self) -> TargetStatistics:
        """Return them as Python has them."""
        return TargetStatistics(*(getattr(self, name) for name in TargetStatistics._fields))


HANDLE, POINTER, NUMBER = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint
U32, U64 = ctypes.c_uint32, ctypes.c_uint64

_COMMON: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "new": (HANDLE, (U64,)),
    "delete": (None, (HANDLE,)),
    "error": (ctypes.c_char_p, (HANDLE,)),
    "cycle": (U64, (HANDLE,)),
    "irq": (U32, (HANDLE,)),
    "restarting": (ctypes.c_int, (HANDLE,)),
    "idle": (None, (HANDLE, U64)),
    "run": (U64, (HANDLE, U64)),
    "run_until_interrupt": (U64, (HANDLE, U64)),
    "log": (POINTER, (HANDLE, NUMBER, POINTER)),
    "clear_log": (None, (HANDLE, NUMBER)),
    "set_log": (None, (HANDLE, ctypes.c_double)),
    "write_register": (ctypes.c_int, (HANDLE, NUMBER, U32, U32, NUMBER, U64)),
    "read_register": (ctypes.c_int, (HANDLE, NUMBER, U32, POINTER, U64)),
    "set_target": (None, (HANDLE, NUMBER, POINTER)),
    "equip": (ctypes.c_int, (HANDLE, NUMBER, POINTER)),
    "dram_statistics": (None, (HANDLE, NUMBER, POINTER)),
    "wrong": (None, (HANDLE, NUMBER, POINTER)),
    "fail_beat": (None, (HANDLE, NUMBER, U64)),
    "injected": (None, (HANDLE, NUMBER, POINTER)),
    "statistics": (None, (HANDLE, NUMBER, POINTER)),
    "memory": (None, (HANDLE, NUMBER, U64, U64, POINTER)),
    "open_waves": (None, (HANDLE, ctypes.c_char_p)),
    "trace": (None, (HANDLE, U64, U64)),
}
"""The C interface of every top: result and arguments of each `harness_NAME`."""


def records(text: bytes, size: int) -> Iterator[tuple[int, int]]:
    """The cycle and the payload of each stamped record with a payload of so many bytes."""
    for at in range(0, len(text), STAMP_BYTES + size):
        cycle, payload = text[at : at + STAMP_BYTES], text[at + STAMP_BYTES : at + STAMP_BYTES + size]
        yield int.from_bytes(cycle, "little"), int.from_bytes(payload, "little")


@cache
def _load(library: Path) -> ctypes.CDLL:
    """Return the library with the types of the common functions declared."""
    loaded = ctypes.CDLL(str(library))
    _declare(loaded, _COMMON)
    return loaded


def _declare(library: ctypes.CDLL, functions: Mapping[str, tuple[Any, tuple[Any, ...]]]) -> None:
    for name, (result, arguments) in functions.items():
        function = getattr(library, f"harness_{name}")
        function.restype, function.argtypes = result, arguments
