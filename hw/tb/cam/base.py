"""What all benches of the block CAM share: requests in their serial order, and what is owed for each."""

from collections import deque
from typing import Any

from hw.params import load_params
from hw.params.toeplitz import diagonals, pack_tag
from hw.rtl.layouts import CamOp
from hw.tb.bench import Bench
from hw.tb.pace import Pace, always
from hw.tb.scoreboard import CheckError, Scoreboard
from hw.tb.stream import Source, StreamMonitor
from pymodel.spec.cam import BlockCam, Place, Tag

LOOKUP: Any = CamOp.LOOKUP
UPDATE: Any = CamOp.UPDATE
READ: Any = CamOp.READ

LATENCY = 4
"""Cycles from a LOOKUP taken to its response, hit or miss, and from a READ to its content."""


class CamBench(Bench):
    """Queues requests and keeps the reference in step with the queue: the order of requests is the order of effects.

    The settings give the parameters as `overrides`, in the form of `--set`.
    """

    def __init__(self, dut: Any, *, idle: Pace = always):
        super().__init__(dut)
        self.random = self.rng("traffic")
        self.params = load_params(None, self.settings["overrides"])
        self.source = Source(self, "requests", idle)
        self.responses = StreamMonitor(self, "responses")
        self.board = self.add_scoreboard(Scoreboard("responses"))
        self.contents = StreamMonitor(self, "contents")
        self.contents_board = self.add_scoreboard(Scoreboard("contents"))
        self.events = StreamMonitor(self, "events")
        self.cam = BlockCam(self.params)
        self.refused = 0
        self._due: dict[int, deque[int]] = {LOOKUP.value: deque(), READ.value: deque()}
        self.source.monitor.listeners.append(self._on_request)
        self.responses.listeners.append(self._on_response)
        self.contents.listeners.append(self._on_content)
        dut.clear.value = 0
        dut.diagonals.value = self.codec("diagonals").pack(diagonals(self.params))

    def tags(self, count: int) -> list[Tag]:
        """Return tags of which many differ in one bit of the key, or in partition or model only."""
        random, tables = self.random, self.params.tables
        tags = [self.tag()]
        while len(tags) < count:
            near = random.choice(tags)
            tags.append(
                random.choice(
                    [
                        self.tag(),
                        near._replace(key=near.key ^ 1 << random.randrange(128)),
                        near._replace(partition=random.randrange(tables.partitions)),
                        near._replace(model=random.randrange(tables.models)),
                    ]
                )
            )
            tags = list(dict.fromkeys(tags))
        return tags

    def tag(self) -> Tag:
        """Return a random tag."""
        random, tables = self.random, self.params.tables
        return Tag(random.randrange(tables.partitions), random.randrange(tables.models), random.getrandbits(128))

    def lookup(self, tag: Tag) -> None:
        """Queue a LOOKUP; what it must answer follows from all requests queued before."""
        self._send(op=LOOKUP, tag=tag)
        frame = self.cam.find(tag)
        place = self.cam.place(tag) if frame is None else self.cam.where(tag)
        full = place is None
        self.refused += full
        self.board.expect({"hit": frame is not None, "full": full, "frame": frame or 0, "place": place})

    def ask(self, place: Place) -> None:
        """Queue a READ, with whatever tag; what it must find follows from all requests queued before."""
        self._send(op=READ, tag=self.tag(), frame=self.random.randrange(self.params.frames), valid=True, place=place)
        tag = self.content(place)
        self.contents_board.expect(None if tag is None else pack_tag(self.params, *tag))

    def content(self, place: Place) -> Tag | None:
        """The tag that can be read at `place`."""
        return self.cam.at(place)

    def place(self) -> Place:
        """Return a random place."""
        random, cam = self.random, self.params.cam
        return Place(random.randrange(cam.banks), random.randrange(self.params.cam_sets), random.randrange(cam.ways))

    def update(self, place: Place, tag: Tag, frame: int, *, valid: bool) -> None:
        """Queue an UPDATE as it is; the reference is the caller's business."""
        self._send(op=UPDATE, tag=tag, frame=frame, valid=valid, place=place)

    def insert(self, tag: Tag) -> None:
        """Queue LOOKUP and UPDATE of a tag that is not stored, back to back; if there is no place, the LOOKUP only."""
        self.lookup(tag)
        place = self.cam.place(tag)
        if place is not None:
            frame = self.random.randrange(self.params.frames)
            self.cam.insert(tag, place, frame)
            self.update(place, tag, frame, valid=True)

    def rewrite(self, tag: Tag) -> None:
        """Queue the UPDATE that gives a stored tag another frame."""
        place = self.cam.remove(tag)
        frame = self.random.randrange(self.params.frames)
        self.cam.insert(tag, place, frame)
        self.update(place, tag, frame, valid=True)

    def remove(self, tag: Tag) -> None:
        """Queue the UPDATE that forgets a stored tag; what it carries besides does not matter."""
        noise = self.random.randrange(self.params.frames)
        self.update(self.cam.remove(tag), self.random.choice([tag, self.tag()]), noise, valid=False)

    async def sent(self) -> None:
        """Wait until all queued requests were taken."""
        await self.until(lambda: not self.source.pending)

    async def clear(self) -> None:
        """Pulse `clear` in the next cycle."""
        self.dut.clear.value = 1
        self.cam = BlockCam(self.params)
        await self.cycles(1)
        self.dut.clear.value = 0

    async def reset(self, cycles: int = 1) -> None:
        """Reset in traffic: all content and all requests under way are gone."""
        await super().reset(cycles)
        self.cam = BlockCam(self.params)
        for due in self._due.values():
            due.clear()

    def _send(self, op: Any, tag: Tag, frame: int = 0, valid: bool = False, place: Place | None = None) -> None:
        parts = place or Place(0, 0, 0)
        self.source.send(
            {
                "op": op.value,
                "tag": pack_tag(self.params, *tag),
                "frame": frame,
                "valid": valid,
                "place": parts._asdict(),
            }
        )

    def _on_request(self, request: dict[str, Any]) -> None:
        if request["op"] in self._due:
            self._due[request["op"]].append(self.cycle + LATENCY)

    def _check_due(self, op: Any) -> None:
        due = self._due[op.value].popleft() if self._due[op.value] else None
        if self.cycle != due:
            raise CheckError(f"the answer to a {op.name} in cycle {self.cycle}, expected it in {due}")

    def _on_content(self, content: dict[str, Any]) -> None:
        self._check_due(READ)
        self.contents_board.observe(content["tag"] if content["found"] else None)

    def _on_response(self, response: dict[str, Any]) -> None:
        self._check_due(LOOKUP)
        place = None if response["full"] else Place(**response["place"])
        self.board.observe(response | {"hit": bool(response["hit"]), "full": bool(response["full"]), "place": place})
