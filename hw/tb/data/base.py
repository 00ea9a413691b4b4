"""What the benches of the data path share: a reference of blocks in frames, and all agents but the memory."""

from collections import Counter, defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import google_crc32c

from hw.params.striping import Striping
from hw.tb.bench import Bench
from hw.tb.core.settings import params_of
from hw.tb.pace import Pace, always
from hw.tb.scoreboard import CheckError, Scoreboard
from hw.tb.stream import Sink, Source


@dataclass
class Block:
    """A block in a frame: its bytes, and the segments of it that memory did not store."""

    frame: int
    data: bytes
    failed: set[int] = field(default_factory=set)


class DataBench(Bench):
    """Writes blocks and reads them back.

    Scoreboards: `landed`, one item a segment, by frame; `beats`, by port; `ends`, by port.

    - `first_taken`: (frame, segment) to the cycle in which the first beat of it was last taken.
    """

    def __init__(
        self,
        dut: Any,
        *,
        idle: Pace = always,
        backpressure: Pace = always,
        landed_pace: Pace = always,
        done_pace: Pace = always,
    ):
        super().__init__(dut)
        self.params = params_of(self.settings)
        self.stripes = Striping(self.params)
        self.random = self.rng("traffic")
        self.beat_bytes = self.params.memory.beat_bytes
        self.segment_bytes = self.params.memory.segment_bytes
        ports = range(self.params.tables.ports)
        self.segments = [Source(self, f"segments__{i}", idle) for i in ports]
        self.beats_in = [Source(self, f"beats_in__{i}", idle) for i in ports]
        self.discards = Source(self, "discards")
        self.reads = Source(self, "reads", idle)
        self.landed = Sink(self, "landed__0", landed_pace)
        self.done = Sink(self, "done__0", done_pace)
        self.beats_out = [Sink(self, f"beats_out__{i}", backpressure) for i in ports]
        self.landed_board = self.add_scoreboard(Scoreboard("landed", key=lambda segment: segment[0]))
        self.beats_board = self.add_scoreboard(Scoreboard("beats", key=lambda beat: beat["stamp"]["port"]))
        self.ends_board = self.add_scoreboard(Scoreboard("done", key=lambda end: end["stamp"]["port"]))
        self.first_taken: dict[tuple[int, int], int] = {}
        self._untaken: list[deque[tuple[int, int]]] = [deque() for _ in ports]
        self._unanswered: defaultdict[int, deque[int]] = defaultdict(deque)
        self._answered: Counter[tuple[int, int | None]] = Counter()
        self._ended: dict[int, int] = {}
        self._tag = 0
        self._beginning = [True for _ in ports]
        for port, source in enumerate(self.beats_in):
            source.monitor.listeners.append(partial(self._on_beat_in, port))
        self.landed.monitor.listeners.append(self._on_landed)
        self.done.monitor.listeners.append(self._on_done)
        for port, sink in enumerate(self.beats_out):
            sink.monitor.listeners.append(partial(self._on_beat, port))

    def length(self, frame: int) -> int:
        """A random length in bytes of a block in this frame: whole segments or not, long or short."""
        pool = max(i for i, first in enumerate(self.stripes.firsts) if first <= frame)
        longest = self.params.pools[pool].frame_bytes
        return self.random.choice(
            [
                self.random.randint(1, longest),
                self.random.randint(1, min(longest, 2 * self.segment_bytes)),
                self.random.randint(1, longest // self.segment_bytes) * self.segment_bytes,
            ]
        )

    def pieces(self, block: Block) -> list[bytes]:
        """The segments of a block."""
        return [block.data[i : i + self.segment_bytes] for i in range(0, len(block.data), self.segment_bytes)]

    def write(self, *blocks: Block, port: int | None = None) -> None:
        """Queue the writes of blocks, a segment of each in turn; each block at a port of its own choice, or at this."""
        chosen = [self.random.randrange(len(self.segments)) if port is None else port for _ in blocks]
        counts = [self.params.segments(len(block.data)) for block in blocks]
        for segment in range(max(counts)):
            for block, count, its_port in zip(blocks, counts, chosen, strict=True):
                if segment < count:
                    self.write_segment(block, segment, its_port)

    def write_segment(self, block: Block, segment: int, port: int) -> None:
        """Queue the write of one segment at a port."""
        data = block.data[segment * self.segment_bytes :][: self.segment_bytes]
        self.segments[port].send({"frame": block.frame, "segment": segment, "crc": google_crc32c.value(data)})
        for start in range(0, len(data), self.beat_bytes):
            beat = data[start : start + self.beat_bytes]
            noise = self.random.randbytes(self.beat_bytes - len(beat))
            self.beats_in[port].send(
                {
                    "data": int.from_bytes(beat + noise, "little"),
                    "count": len(beat),
                    "last": start + self.beat_bytes >= len(data),
                }
            )
        self.landed_board.expect((block.frame, segment not in block.failed))
        self._unanswered[block.frame].append(segment)
        self._untaken[port].append((block.frame, segment))

    def unanswered(self, frame: int) -> int:
        """How many segments of a frame have been asked for, and have not landed."""
        return len(self._unanswered[frame])

    def answered(self, channel: int, address: int) -> None:
        """Memory's answer to the write of a segment is taken in this cycle."""
        self._answered[self.stripes.segment_at(channel, address)] += 1

    def read(self, block: Block, first: int, count: int, port: int, bad: Mapping[int, bytes] | None = None) -> None:
        """Queue a READ of segments of a block; `bad` are those that are not `ok`, with what memory has for them."""
        bad = bad or {}
        self._tag = (self._tag + 1) & 0xFFFF
        stamp = {"ring": self.random.randrange(16), "port": port, "registers": 0}
        span = {"frame": block.frame, "segment": first, "count": count, "length": len(block.data)}
        self.reads.send(span | {"stamp": stamp, "tag": self._tag})
        for segment in range(first, first + count):
            data = bad.get(segment, self.pieces(block)[segment])
            for start in range(0, len(data), self.beat_bytes):
                last = start + self.beat_bytes >= len(data)
                self.beats_board.expect(
                    {
                        "data": data[start : start + self.beat_bytes],
                        "last": last,
                        "ok": last and segment not in bad,
                        "crc": google_crc32c.value(data) if last else 0,
                        "segment": segment,
                        "end": segment == first + count - 1,
                        "stamp": stamp,
                        "tag": self._tag,
                    }
                )
        ok = bad.keys().isdisjoint(range(first, first + count))
        self.ends_board.expect({"frame": block.frame, "stamp": stamp, "tag": self._tag, "ok": ok})

    async def settled(self, within: int = 40_000) -> None:
        """Wait until nothing is owed. Raises CheckError after `within` cycles."""
        boards = (self.landed_board, self.beats_board, self.ends_board)
        await self.until(lambda: not any(board.outstanding for board in boards), within=within)

    async def reset(self, cycles: int = 1) -> None:
        """Reset in traffic: what is under way belongs to nobody."""
        await super().reset(cycles)
        for segments in self._untaken:
            segments.clear()
        self._unanswered.clear()
        self._answered.clear()
        self._ended.clear()
        self._beginning = [True for _ in self._beginning]

    def _on_beat_in(self, port: int, beat: dict[str, int]) -> None:
        if self._beginning[port]:
            self.first_taken[self._untaken[port].popleft()] = self.cycle
        self._beginning[port] = bool(beat["last"])

    def _on_landed(self, entry: dict[str, int]) -> None:
        for i in range(entry["count"]):
            frame, segments = entry["frame"], self._unanswered[entry["frame"]]
            segment = (frame, segments.popleft() if segments else None)
            if not self._answered[segment]:
                raise CheckError(f"landed: {segment} has landed before memory answered")
            self._answered[segment] -= 1
            self.landed_board.observe((frame, bool(entry["ok"]) or i < entry["count"] - 1))
        if not entry["count"]:
            raise CheckError("landed: an entry of no segments")

    def _on_beat(self, port: int, beat: dict[str, Any]) -> None:
        if beat["stamp"]["port"] != port:
            raise CheckError(f"port {port}: beat for port {beat['stamp']['port']}")
        flags = {name: bool(beat[name]) for name in ("last", "ok", "end")}
        data = beat["data"].to_bytes(self.beat_bytes, "little")[: beat.pop("count")]
        self.beats_board.observe(beat | flags | {"data": data})
        if beat["last"] and beat["end"]:
            self._ended[port] = self._ended.get(port, 0) + 1

    def _on_done(self, end: dict[str, Any]) -> None:
        port = end["stamp"]["port"]
        if not self._ended.get(port):
            raise CheckError(f"done: READ {end['tag']} of port {port} has ended before its last beat was taken")
        self._ended[port] -= 1
        self.ends_board.observe(end | {"ok": bool(end["ok"])})
