"""The compiled slice from Python: few calls, each of many cycles."""

import ctypes
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from hw.params import InputError, Params
from hw.params.striping import Striping
from hw.rtl.emit import Emission
from hw.rtl.fabric import Channel
from hw.rtl.fabric.layouts import to_node_buffers
from hw.tb.harness.build import build_library, emit_slice
from hw.tb.scoreboard import CheckError

CHUNK = 10_000
"""Cycles that are run before Python may be interrupted."""

PATIENCE = 1_000
"""Cycles within which an access to a register has to end."""

STAMP_BYTES = 8
"""Bytes of the cycle, little-endian, before each flit received and each entry of the log."""


class HarnessError(CheckError):
    """The slice broke a rule of an interface, or did not answer; the harness cannot be used any more."""


@dataclass(frozen=True, kw_only=True)
class Memory:
    """How memory behaves; all channels share it.

    - `latency`: cycles from the address of a read, or the last beat of a write, to the first answer; up to `jitter`
      more for each burst by itself.
    - `reorder`: answer bursts that are due in any order, else in that of their addresses. `interleave`: with that, mix
      the beats of different reads.
    - `outstanding`: reads, and likewise writes, that a channel takes before it has answered the first.
    - `address_willing`, `data_willing`, `answer_willing`: probability, each cycle, that addresses and write data are
      taken, and that answers are given: the fraction of the bandwidth that there is.
    """

    latency: int = 10
    jitter: int = 0
    reorder: bool = False
    interleave: bool = False
    outstanding: int = 256
    address_willing: float = 1.0
    data_willing: float = 1.0
    answer_willing: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Links:
    """How the requesters' ends of the links behave; all share it.

    - `idle`: probability, each cycle, that nothing is sent although there is a flit and a credit.
    - `backpressure`: probability, each cycle, that a channel's next flit stays in its buffer, and gives no credit.
    - `latency`: cycles that a flit or a credit is under way, each way.
    """

    idle: float = 0.0
    backpressure: float = 0.0
    latency: int = 0


class ChannelStatistics(NamedTuple):
    """What a memory channel has counted: bursts, beats, cycles with a beat offered, and most bursts in flight."""

    read_bursts: int
    read_beats: int
    read_busy: int
    most_reads: int
    write_bursts: int
    write_beats: int
    write_busy: int
    most_writes: int


class Injected(NamedTuple):
    """Errors that memory has delivered: write and read bursts that failed, and reads with a flipped bit."""

    writes: int
    reads: int
    spoilt: int


class Harness:
    """A slice with memory, requesters and software around it, reset and in its first cycle.

    Everything random follows from `seed`: the values before reset, and what the models do.

    - `emission`: the slice, if it is not `Slice(params)`: a mutant.
    - `waves`: the VCD file to write; `trace` limits it to some cycles.
    """

    def __init__(
        self,
        params: Params,
        *,
        seed: int = 0,
        memory: Memory | None = None,
        links: Links | None = None,
        waves: Path | None = None,
        emission: Emission | None = None,
    ):
        emission = emission or emit_slice(params)
        self._params = params
        self._sent = to_node_buffers(params)
        self._channel_bytes = Striping(params).channel_bytes
        self.flit_bytes = -(-emission.ports["links__0__to_node__flit"]["width"] // 8)
        """Bytes of a flit; the header is in the low bits of the first."""
        self.log_bytes = -(-emission.ports["log__payload"]["width"] // 8)
        """Bytes of an entry of the order log, a packed `log_layout()`."""
        self._library = _load(build_library(params, emission, waves=waves is not None))
        self._harness = ctypes.c_void_p(self._library.harness_new(seed & (1 << 64) - 1))
        self.memory = memory or Memory()
        self.links = links or Links()
        self.log_willing = 1.0
        if waves is not None:
            self._library.harness_open_waves(self._harness, str(waves).encode())

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """End the simulation, and the waves."""
        if getattr(self, "_harness", None):
            self._library.harness_delete(self._harness)
            self._harness = ctypes.c_void_p()

    @property
    def memory(self) -> Memory:
        """How memory behaves from the next cycle on."""
        return self._memory

    @memory.setter
    def memory(self, memory: Memory) -> None:
        self._memory = memory
        self._library.harness_set_memory(self._harness, ctypes.byref(_MemoryBehaviour(**asdict(memory))))

    @property
    def links(self) -> Links:
        """How the ends of the links behave from the next cycle on."""
        return self._links

    @links.setter
    def links(self, links: Links) -> None:
        self._links = links
        self._library.harness_set_links(self._harness, ctypes.byref(_LinkBehaviour(**asdict(links))))

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
    def irq(self) -> bool:
        """The interrupt line."""
        return bool(self._library.harness_irq(self._harness))

    @property
    def restarting(self) -> bool:
        """The slice restarts: what is queued for the links is dropped, all credits are restored."""
        return bool(self._library.harness_restarting(self._harness))

    def run(self, cycles: int) -> int:
        """Run so many cycles and return their number. Raises HarnessError if the slice breaks a rule."""
        left = cycles
        while left:
            left -= self._library.harness_run(self._harness, min(left, CHUNK))
            self._check()
        return cycles

    def run_alone(self, cycles: int) -> None:
        """Run the clock alone, no model taking part: for measurements, after which nothing else can be run."""
        self._library.harness_idle(self._harness, cycles)

    def send(self, port: int, channel: Channel, flits: bytes) -> None:
        """Append packed flits, `flit_bytes` each, to what a requester sends; their field `channel` is set.

        Flits of a channel stay in order; channels that have one and a credit take turns, a flit a cycle. Raises
        InputError for a port or channel that there is not, or part of a flit.
        """
        self._port(port)
        if channel not in self._sent:
            raise InputError(f"channel {channel!r} is not sent to a node, expected {[c.name for c in self._sent]}")
        if len(flits) % self.flit_bytes:
            raise InputError(f"{len(flits)} bytes are no multiple of {self.flit_bytes}, the bytes of a flit")
        self._library.harness_send(self._harness, port, channel.value, flits, len(flits) // self.flit_bytes)

    def pending(self, port: int) -> int:
        """Return how many flits of a port have not reached the node."""
        return int(self._library.harness_pending(self._harness, self._port(port)))

    def received(self, port: int) -> bytes:
        """Return the flits that a requester took since the last call, `STAMP_BYTES` of cycle before each."""
        self._port(port)
        size = ctypes.c_uint64()
        data = ctypes.string_at(self._library.harness_received(self._harness, port, ctypes.byref(size)), size.value)
        self._library.harness_clear_received(self._harness, port)
        return data

    def log(self) -> bytes:
        """Return the entries of the order log since the last call, `STAMP_BYTES` of cycle before each."""
        size = ctypes.c_uint64()
        data = ctypes.string_at(self._library.harness_log(self._harness, ctypes.byref(size)), size.value)
        self._library.harness_clear_log(self._harness)
        return data

    def write_register(self, offset: int, value: int, strobe: int = 15) -> int:
        """Write the bytes of a register that have a strobe; return BRESP. Raises HarnessError if there is none."""
        response = self._library.harness_write_register(self._harness, offset, value, strobe, PATIENCE)
        self._check()
        if response < 0:
            raise HarnessError(f"axi: no BVALID in {PATIENCE} cycles for {offset:#x} (cycle {self.cycle})")
        return int(response)

    def read_register(self, offset: int) -> tuple[int, int]:
        """Read a register; return value and RRESP. Raises HarnessError if there is no answer."""
        value = ctypes.c_uint32()
        response = self._library.harness_read_register(self._harness, offset, ctypes.byref(value), PATIENCE)
        self._check()
        if response < 0:
            raise HarnessError(f"axi: no RVALID in {PATIENCE} cycles for {offset:#x} (cycle {self.cycle})")
        return value.value, int(response)

    def fail_writes(self, channel: int, count: int) -> None:
        """Let the next `count` write bursts of a memory channel be answered with SLVERR."""
        self._wrong(channel, writes=count)

    def fail_reads(self, channel: int, count: int) -> None:
        """Let the next `count` read bursts of a memory channel be answered with SLVERR, in every beat."""
        self._wrong(channel, reads=count)

    def spoil(self, channel: int, count: int) -> None:
        """Let the next `count` read bursts of a memory channel that do not fail return one flipped bit each."""
        self._wrong(channel, spoilt=count)

    def injected(self) -> Injected:
        """Return how many errors the slice has been given, over all channels."""
        each = [self._read(_Faults, self._library.harness_injected, channel) for channel in range(self._channels)]
        return Injected(*(sum(getattr(faults, name) for faults in each) for name in Injected._fields))

    def memory_bytes(self, channel: int, address: int, length: int) -> bytes:
        """Return what a memory channel holds; what was never written reads 0xA5."""
        self._channel(channel)
        if address < 0 or length < 0 or address + length > self._channel_bytes:
            raise InputError(f"bytes {address} to {address + length} of a channel of {self._channel_bytes}")
        data = ctypes.create_string_buffer(length)
        self._library.harness_memory(self._harness, channel, address, length, data)
        return data.raw

    def statistics(self) -> list[ChannelStatistics]:
        """Return what each memory channel has counted since reset."""
        each = (self._read(_Statistics, self._library.harness_statistics, i) for i in range(self._channels))
        return [ChannelStatistics(*(getattr(counts, name) for name in ChannelStatistics._fields)) for counts in each]

    def trace(self, from_cycle: int, to_cycle: int) -> None:
        """Limit the waves to cycles from `from_cycle` to before `to_cycle`."""
        self._library.harness_trace(self._harness, from_cycle, to_cycle)

    @property
    def _channels(self) -> int:
        return self._params.memory.channels

    def _port(self, port: int) -> int:
        if not 0 <= port < self._params.tables.ports:
            raise InputError(f"port {port}, expected 0 to {self._params.tables.ports - 1}")
        return port

    def _channel(self, channel: int) -> int:
        if not 0 <= channel < self._channels:
            raise InputError(f"memory channel {channel}, expected 0 to {self._channels - 1}")
        return channel

    def _wrong(self, channel: int, **more: int) -> None:
        self._library.harness_wrong(self._harness, self._channel(channel), ctypes.byref(_Faults(**more)))

    def _read(self, kind: type[Any], call: Callable[..., Any], channel: int) -> Any:
        result = kind()
        call(self._harness, channel, ctypes.byref(result))
        return result

    def _check(self) -> None:
        """Raise what a model has found."""
        error = self._library.harness_error(self._harness).decode()
        if error:
            raise HarnessError(f"{error} (cycle {self.cycle})")


class _MemoryBehaviour(ctypes.Structure):
    _fields_ = [
        ("latency", ctypes.c_uint32),
        ("jitter", ctypes.c_uint32),
        ("reorder", ctypes.c_uint32),
        ("interleave", ctypes.c_uint32),
        ("outstanding", ctypes.c_uint32),
        ("address_willing", ctypes.c_double),
        ("data_willing", ctypes.c_double),
        ("answer_willing", ctypes.c_double),
    ]


class _LinkBehaviour(ctypes.Structure):
    _fields_ = [("idle", ctypes.c_double), ("backpressure", ctypes.c_double), ("latency", ctypes.c_uint32)]


class _Faults(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in Injected._fields]


class _Statistics(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ChannelStatistics._fields]


_HANDLE, _U64, _U32, _POINTER = ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_void_p

_API: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "new": (_HANDLE, (_U64,)),
    "delete": (None, (_HANDLE,)),
    "error": (ctypes.c_char_p, (_HANDLE,)),
    "cycle": (_U64, (_HANDLE,)),
    "irq": (ctypes.c_int, (_HANDLE,)),
    "restarting": (ctypes.c_int, (_HANDLE,)),
    "idle": (None, (_HANDLE, _U64)),
    "run": (_U64, (_HANDLE, _U64)),
    "set_memory": (None, (_HANDLE, _POINTER)),
    "set_links": (None, (_HANDLE, _POINTER)),
    "set_log": (None, (_HANDLE, ctypes.c_double)),
    "send": (None, (_HANDLE, ctypes.c_uint, ctypes.c_uint, ctypes.c_char_p, _U64)),
    "pending": (_U64, (_HANDLE, ctypes.c_uint)),
    "received": (_POINTER, (_HANDLE, ctypes.c_uint, _POINTER)),
    "clear_received": (None, (_HANDLE, ctypes.c_uint)),
    "log": (_POINTER, (_HANDLE, _POINTER)),
    "clear_log": (None, (_HANDLE,)),
    "write_register": (ctypes.c_int, (_HANDLE, _U32, _U32, ctypes.c_uint, _U64)),
    "read_register": (ctypes.c_int, (_HANDLE, _U32, _POINTER, _U64)),
    "wrong": (None, (_HANDLE, ctypes.c_uint, _POINTER)),
    "injected": (None, (_HANDLE, ctypes.c_uint, _POINTER)),
    "memory": (None, (_HANDLE, ctypes.c_uint, _U64, _U64, _POINTER)),
    "statistics": (None, (_HANDLE, ctypes.c_uint, _POINTER)),
    "open_waves": (None, (_HANDLE, ctypes.c_char_p)),
    "trace": (None, (_HANDLE, _U64, _U64)),
}
"""The C interface: result and arguments of each `harness_NAME`."""


@cache
def _load(library: Path) -> ctypes.CDLL:
    """Return the library with the types of its functions declared."""
    loaded = ctypes.CDLL(str(library))
    for name, (result, arguments) in _API.items():
        function = getattr(loaded, f"harness_{name}")
        function.restype, function.argtypes = result, arguments
    return loaded
