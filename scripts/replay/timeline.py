"""A replay as a timeline for Perfetto (https://ui.perfetto.dev), in Chrome's trace event format."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from hw.params.protocol import EngineOpcode, RingId
from scripts.replay.timing import Sample, Span, Timing, Visit, utilisation

MOST_COMMANDS = 50_000
"""Commands that a timeline has at most: those that began first. What is later than they is left out."""

MOST_POINTS = 2_000
"""Points of the counter of a memory channel."""

_LANES = 1_000
"""Tracks of a ring, one beside the other, at most: more than commands are in flight."""

Event = dict[str, Any]


def timeline(timing: Timing, visits: Sequence[Visit]) -> str:
    """The JSON text. Ports are processes, rings have as many tracks as commands in flight; a cycle is 1 ns.

    `otherData` says how many commands there were, and how many are shown.
    """
    spans = sorted(timing.spans, key=lambda span: (span.begin, span.end))
    shown = spans[:MOST_COMMANDS]
    end = max((span.end for span in shown), default=0)
    about = {"commands": len(spans), "commands shown": len(shown), "unit": "1 cycle is shown as 1 ns"}
    events = [
        *_commands(shown),
        *_requests(visit for visit in visits if visit.begin <= end),
        *_slots(shown),
        *_channels(timing, [sample for sample in timing.samples if sample.cycle <= end]),
    ]
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ns", "otherData": about}) + "\n"


def _time(cycle: int | float) -> float:
    """Microseconds."""
    return cycle / 1000


def _commands(spans: Iterable[Span]) -> Iterator[Event]:
    """Commands as slices; those of a ring that overlap are in tracks of their own."""
    tracks: dict[RingId, list[int]] = {}
    for span in spans:
        busy = tracks.setdefault(span.ring, [])
        lane = next((lane for lane, end in enumerate(busy) if end <= span.begin), len(busy))
        if lane == len(busy):
            busy.append(0)
        busy[lane] = span.end
        yield {
            "ph": "X",
            "name": span.opcode.name,
            "pid": 1 + span.ring.port,
            "tid": span.ring.ring * _LANES + lane,
            "ts": _time(span.begin),
            "dur": _time(span.cycles),
            "args": {"tag": span.tag, "status": span.status.name, "begin": span.begin, "end": span.end},
        }
    for port in sorted({ring.port for ring in tracks}):
        yield _name("process_name", f"port {port}", 1 + port)
    for ring, busy in tracks.items():
        for lane in range(len(busy)):
            yield _name("thread_name", f"ring {ring.ring}", 1 + ring.port, ring.ring * _LANES + lane)


def _requests(visits: Iterable[Visit]) -> Iterator[Event]:
    """Requests as asynchronous slices of their port."""
    for visit in visits:
        common = {"cat": "request", "id": visit.number, "name": f"request {visit.number}", "pid": 1 + visit.ring.port}
        yield common | {"ph": "b", "ts": _time(visit.begin), "args": {"partition": visit.ring.ring}}
        yield common | {"ph": "e", "ts": _time(visit.end)}


def _slots(spans: Iterable[Span]) -> Iterator[Event]:
    """How many PUTs software has under way at each port, over time."""
    changes: dict[int, list[tuple[int, int]]] = {}
    for span in spans:
        if span.opcode is EngineOpcode.PUT:
            changes.setdefault(span.ring.port, []).extend(((span.begin, 1), (span.end, -1)))
    for port, steps in changes.items():
        under_way = 0
        for cycle, change in sorted(steps):
            under_way += change
            event = {"ph": "C", "name": "PUTs under way", "pid": 1 + port, "ts": _time(cycle)}
            yield event | {"args": {"PUTs": under_way}}


def _channels(timing: Timing, samples: Sequence[Sample]) -> Iterator[Event]:
    """What part of the cycles each memory channel moves a beat in."""
    if len(samples) < 2:
        return
    edges, use = utilisation(samples, MOST_POINTS)
    yield _name("process_name", "memory channels", 0)
    for channel, values in enumerate(use):
        for at, value in zip(edges, values.tolist(), strict=False):
            event = {"ph": "C", "name": timing.channel(channel), "pid": 0, "ts": _time(float(at))}
            yield event | {"args": {"beats per cycle": round(value, 3)}}


def _name(kind: str, name: str, process: int, thread: int = 0) -> Event:
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": name}}
