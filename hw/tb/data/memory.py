"""Memory behind AXI4 channels: late, out of order, interleaved, failing and lying, on request."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from hw.tb.axi import ChannelWatch
from hw.tb.bench import Bench
from hw.tb.pace import Pace, always
from hw.tb.scoreboard import CheckError

OKAY, SLVERR = 0, 2
PAGE = 4096
"""No burst may cross a multiple of this."""


@dataclass
class Burst:
    """A burst under way; `due` is the first cycle in which it may be answered."""

    id: int
    address: int
    beats: int
    due: int = 0
    done: int = 0


@dataclass
class Behaviour:
    """How memory behaves; all channels share it.

    - `latency`: cycles from the address of a read, or the last beat of a write, to the first answer; up to `jitter`
      more for each burst by itself.
    - `reorder`: answer bursts that are due in any order, else in that of their addresses.
    - `interleave`: mix the beats of different reads.
    - `address_pace`, `data_pace`, `answer_pace`: when addresses and write data are taken, and answers given.
    - `read_response`, `write_response`: response to a beat, or a burst, of (channel, address of the segment).
    - `turnaround`: with a number, reads and writes share the data bus, in the order of their addresses, and it rests
      for so many cycles between the two kinds.
    - `spoil`: what a read returns for a beat of (channel, address of the segment, beat, data, CRC).
    """

    latency: int = 10
    jitter: int = 0
    reorder: bool = False
    interleave: bool = False
    address_pace: Pace = always
    data_pace: Pace = always
    answer_pace: Pace = always
    read_response: Callable[[int, int], int] = lambda channel, address: OKAY
    write_response: Callable[[int, int], int] = lambda channel, address: OKAY
    turnaround: int | None = None
    spoil: Callable[[int, int, int, bytes, int], tuple[bytes, int]] = lambda channel, address, beat, data, crc: (
        data,
        crc,
    )


@dataclass
class Contents:
    """What a channel holds: bytes by address of the beat, and beside them a CRC by address of the segment.

    The CRC is a metadata bit as the data is: it is stored with the beat that brings it, if that has a strobe.
    """

    beat_bytes: int
    segment_bytes: int
    beats: dict[int, bytes] = field(default_factory=dict)
    crcs: dict[int, int] = field(default_factory=dict)

    def beat(self, address: int) -> bytes:
        """The bytes of a beat; what was never written is a pattern."""
        return self.beats.get(address, bytes([0xA5]) * self.beat_bytes)

    def segment(self, address: int, length: int) -> bytes:
        """The first bytes of a segment."""
        return b"".join(self.beat(address + i) for i in range(0, length, self.beat_bytes))[:length]

    def write(self, address: int, data: int, strobes: int) -> None:
        """Write the bytes that have a strobe."""
        old, new = self.beat(address), data.to_bytes(self.beat_bytes, "little")
        if strobes:
            chosen = (new[i] if strobes >> i & 1 else old[i] for i in range(self.beat_bytes))
            self.beats[address] = bytes(chosen)


class MemoryChannel:
    """The subordinate of one AXI4 channel; checks what a manager has to keep.

    - `busy_cycles`: cycles with a beat of read data.
    - `beats_written`: beats of write data. `turns`: how often a bus that is shared turned around.
    - `write_listeners`: called with segment address, beat, strobes and cycle of the first offer of each beat written.
    - `answer_listeners`: called with the segment address of each write that is answered.
    """

    def __init__(self, bench: Bench, name: str, number: int, contents: Contents, behaviour: Behaviour):
        self.bench, self.number, self.contents, self.behaviour = bench, number, contents, behaviour
        self.rng: Random = bench.rng(name)
        self.busy_cycles = self.beats_written = self.turns = 0
        self.write_listeners: list[Callable[[int, int, int, int], None]] = []
        self.answer_listeners: list[Callable[[int], None]] = []
        self._paces = [
            pace(self.rng)
            for pace in (behaviour.address_pace, behaviour.data_pace, behaviour.address_pace, behaviour.answer_pace)
        ]
        self._signals = {
            signal: getattr(bench.dut, f"{name}__{signal}")
            for channel, fields in FIELDS.items()
            for signal in (f"{channel}valid", f"{channel}ready", *(f"{channel}{each}" for each in fields))
        }
        self._shown: dict[str, int] = {}
        self.reset()
        bench.add(self)

    def reset(self) -> None:
        """Forget all bursts; what is stored stays."""
        self._watches = {channel: ChannelWatch(f"memory {self.number} {channel}") for channel in ("aw", "w", "ar")}
        self._addresses: list[Burst] = []
        self._data: list[tuple[dict[str, int], int]] = []
        self._writes: list[Burst] = []
        self._reads: list[Burst] = []
        self._reading: Burst | None = None
        self._answering: Burst | None = None
        self._offered_cycle = 0
        self._bus: list[tuple[str, Burst]] = []
        self._bus_kind = ""
        self._bus_free = 0

    def set_address_pace(self, pace: Pace) -> None:
        """Take the addresses of writes at another pace than the other channels."""
        self._paces[0] = pace(self.rng)

    def drive(self) -> None:
        """Be ready or not, and give the next answers."""
        aw, w, ar, answer = (next(pace) for pace in self._paces)
        owner = self._owner()
        self._show(awready=aw, wready=w and owner in ("", "aw"), arready=ar)
        if self._reading is None and answer and owner in ("", "ar"):
            self._reading = self._choose(self._reads, interleave=self.behaviour.interleave)
            if self._reading is not None:
                self._show_read(self._reading)
        if self._answering is None and answer:
            self._answering = self._choose(self._writes)
            if self._answering is not None:
                response = self.behaviour.write_response(self.number, self._answering.address)
                self._show(bid=self._answering.id, bresp=response)
        self._show(rvalid=self._reading is not None, bvalid=self._answering is not None)

    def sample(self) -> None:
        """Take addresses and data, and see whether answers are taken."""
        if self.bench.in_reset:
            return
        if offer := self._taken("ar"):
            self._reads.append(self._arrive(offer, "ar"))
        if offer := self._taken("aw"):
            self._addresses.append(self._arrive(offer, "aw"))
        if offer := self._taken("w"):
            self._data.append((offer, self._offered_cycle))
        self._store()
        if self._reading is not None:
            self.busy_cycles += 1
            if self._value("rready"):
                self._reading.done += 1
                if self._reading.done == self._reading.beats:
                    self._reads.remove(self._reading)
                    self._leave(self._reading)
                self._reading = None
        if self._answering is not None and self._value("bready"):
            self._writes.remove(self._answering)
            for listener in self.answer_listeners:
                listener(self._answering.address)
            self._answering = None

    def _choose(self, bursts: list[Burst], *, interleave: bool = False) -> Burst | None:
        """The burst to answer next: one that has been begun, unless interleaving; else one that is due."""
        begun = [burst for burst in bursts if burst.done]
        if begun and not interleave:
            return begun[0]
        due = [burst for burst in bursts if burst.due <= self.bench.cycle]
        if not self.behaviour.reorder:
            due = [burst for burst in bursts[:1] if burst in due]
        return self.rng.choice(due) if due else None

    def _show_read(self, burst: Burst) -> None:
        """Offer the next beat of a read."""
        beat, last = burst.done, burst.done == burst.beats - 1
        data = self.contents.beat(burst.address + beat * self.contents.beat_bytes)
        crc = self.contents.crcs.get(burst.address, 0) if last else self.rng.getrandbits(32)
        data, crc = self.behaviour.spoil(self.number, burst.address, beat, data, crc)
        self._show(
            rid=burst.id,
            rdata=int.from_bytes(data, "little"),
            rresp=self.behaviour.read_response(self.number, burst.address),
            rlast=last,
            ruser=crc,
        )

    def _store(self) -> None:
        """Write what has both address and data."""
        while self._addresses and self._data:
            burst, (beat, cycle) = self._addresses[0], self._data.pop(0)
            last = burst.done == burst.beats - 1
            if beat["last"] != last:
                raise CheckError(f"memory {self.number}: WLAST {beat['last']} in beat {burst.done} of {burst.beats}")
            self.contents.write(burst.address + burst.done * self.contents.beat_bytes, beat["data"], beat["strb"])
            for listener in self.write_listeners:
                listener(burst.address, burst.done, beat["strb"], cycle)
            burst.done += 1
            self.beats_written += 1
            if last:
                self._leave(burst)
                if beat["strb"]:
                    self.contents.crcs[burst.address] = beat["user"]
                burst.due = self._due()
                burst.done = 0
                self._writes.append(self._addresses.pop(0))

    def _burst(self, offer: dict[str, int], channel: str) -> Burst:
        """The burst that an address announces. Raises CheckError if it is not a segment's."""
        beat_bytes = self.contents.beat_bytes
        beats, address = offer["len"] + 1, offer["addr"]
        others = self._reads if channel == "ar" else [*self._addresses, *self._writes]
        wrong = [
            what
            for what, bad in {
                "is not aligned to a segment": address % self.contents.segment_bytes,
                "crosses a page": address // PAGE != (address + beats * beat_bytes - 1) // PAGE,
                "is longer than a segment": beats * beat_bytes > self.contents.segment_bytes,
                "has beats of another size": 1 << offer["size"] != beat_bytes,
                "does not increment": offer["burst"] != 1,
                "has the ID of one in flight": any(burst.id == offer["id"] for burst in others),
            }.items()
            if bad
        ]
        if wrong:
            raise CheckError(f"memory {self.number}: {channel} {offer} {', '.join(wrong)}")
        return Burst(offer["id"], address, beats, self._due())

    def _arrive(self, offer: dict[str, int], channel: str) -> Burst:
        """The burst that an address announces, behind all others on a bus that is shared."""
        burst = self._burst(offer, channel)
        if self.behaviour.turnaround is not None:
            self._bus.append((channel, burst))
        return burst

    def _leave(self, burst: Burst) -> None:
        """All beats of a burst have been moved."""
        self._bus = [(kind, other) for kind, other in self._bus if other is not burst]

    def _owner(self) -> str:
        """Whose data may move in this cycle on a bus that is shared: "ar", "aw", "none"; or "", of both."""
        if self.behaviour.turnaround is None:
            return ""
        kind = self._bus[0][0] if self._bus else "none"
        if kind not in ("none", self._bus_kind):
            self.turns += 1
            self._bus_kind, self._bus_free = kind, self.bench.cycle + self.behaviour.turnaround
        return kind if self.bench.cycle >= self._bus_free else "none"

    def _due(self) -> int:
        return self.bench.cycle + self.behaviour.latency + self.rng.randint(0, self.behaviour.jitter)

    def _taken(self, channel: str) -> dict[str, int] | None:
        """What is taken on a channel in this cycle."""
        valid = self._value(f"{channel}valid")
        offer = {name: self._value(f"{channel}{name}") for name in FIELDS[channel]} if valid else None
        new, taken = self._watches[channel].follow(offer, bool(self._shown[f"{channel}ready"]))
        if channel == "w" and new:
            self._offered_cycle = self.bench.cycle
        return offer if taken else None

    def _value(self, name: str) -> int:
        return int(self._signals[name].value)

    def _show(self, **values: Any) -> None:
        for name, value in values.items():
            if self._shown.get(name) != value:
                self._signals[name].value = int(value)
                self._shown[name] = value


FIELDS = {
    "aw": ("id", "addr", "len", "size", "burst"),
    "w": ("data", "strb", "last", "user"),
    "b": ("id", "resp"),
    "ar": ("id", "addr", "len", "size", "burst"),
    "r": ("id", "data", "resp", "last", "user"),
}
"""The channels of AXI4 that the data path uses, with the fields of each."""
