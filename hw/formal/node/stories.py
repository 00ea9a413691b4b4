"""Stories of the core among its stand-ins: a block's whole life, and what may go wrong in it."""

from typing import Any

from hw.formal.story import Step
from hw.rtl.node.layouts import Bind

SEGMENT = 2048
RING, OTHER = {"port": 0, "ring": 0}, {"port": 1, "ring": 0}
REGISTERS = {"registers": 1}


def administer(name: str, **fields: Any) -> Step:
    """A command of the administrator."""
    return Step(name, {"stamp": REGISTERS, **fields}, {"usage_configured": 1})


def ask(name: str, *, ring: dict[str, int] = RING, open: dict[str, Any] | None = None, **fields: Any) -> Step:
    """A command of a ring."""
    return Step(name, {"stamp": ring, **fields}, open or {})


def named(generation: int, frame: int = 0) -> dict[str, int]:
    """A handle."""
    return {"epoch": 1, "generation": generation, "frame": frame}


def hit(frame: int = 0) -> dict[str, Any]:
    """What the CAM answers meanwhile; there is room for a pin, in slot 0."""
    return {"answer": {"hit": 1, "frame": frame}, "pin_free": 1}


def finds(frame: int, *, evict: int = 0) -> dict[str, Any]:
    """What the replacement answers meanwhile."""
    return {"choice_done": 1, "choice_found": 1, "choice_frame": frame, "choice_evict": evict}


BEGIN = (
    administer("SET_EPOCH", epoch=1),
    administer("SET_MODEL", model=0, live=1),
    administer("BIND", ring=RING, bind=Bind.PARTITION, partition=0),
    administer("BIND", ring=OTHER, bind=Bind.PARTITION, partition=0),
    ask("OPEN_SESSION", open={"session_free": 1}),
)
"""An epoch, a model, two rings of a partition, a session of the first."""

LIFE = (
    *BEGIN,
    ask("ALLOC", key=1, length=2 * SEGMENT, open=finds(0)),
    ask("WRITE", handle=named(1), segment=0, length=SEGMENT, last=1),
    Step("LANDED", {"handle": named(0), "count": 1, "ok": 1}),
    ask("READ", handle=named(1), segment=0, count=1),
    Step("READ_DONE", {"handle": named(0), "stamp": RING, "ok": 1}),
    ask("WRITE", handle=named(1), segment=1, length=1000, last=1),
    ask("WRITE", handle=named(2), segment=1, length=1000, last=1),
    Step("LANDED", {"handle": named(0), "count": 1, "ok": 1}),
    ask("SEAL", handle=named(1), length=SEGMENT + 1000),
    ask("LOOKUP", key=1, pin=1, last=1, open=hit()),
    administer("SET_PARTITION", partition=1, public=1),
    administer("SET_PARTITION", partition=0, read_mask=0b10),
    ask("LOOKUP", ring=OTHER, key=1, pin=1, last=1, open=hit()),
    ask("READ", handle=named(1), segment=0, count=2),
    Step("READ_DONE", {"handle": named(0), "stamp": RING, "ok": 1}),
    ask("READ", handle=named(2), segment=0, count=2),
    ask("UNPIN", slot={"slot": 0, "generation": 1}),
    ask("UNPIN", slot={"slot": 0, "generation": 0}),
    Step("LOST", {"ring": OTHER}),
    Step("NONE"),
    ask("ALLOC", key=2, length=SEGMENT, open=finds(0, evict=1)),
)
"""Frame 0 is claimed, written, read, sealed, found, pinned by two rings, given back by one, by a hand for the other,
and claimed again for another block."""


def stored(ring: dict[str, int], *, frame: int, key: int, session: int) -> tuple[Step, ...]:
    """A ring stores a block of one segment in a frame that has had none, at the place of the frame's number."""
    handle = named(1, frame)
    return (
        ask("ALLOC", ring=ring, key=key, length=SEGMENT, slot={"slot": session}, open=finds(frame) | {"place": frame}),
        ask("WRITE", ring=ring, handle=handle, segment=0, length=SEGMENT, last=1),
        Step("LANDED", {"handle": handle, "count": 1, "ok": 1}),
        ask("SEAL", ring=ring, handle=handle, length=SEGMENT),
    )


FOUND = (
    administer("SET_EPOCH", epoch=1),
    administer("SET_MODEL", model=0, live=1),
    administer("BIND", ring=RING, bind=Bind.PARTITION, partition=0),
    administer("BIND", ring=OTHER, bind=Bind.PARTITION, partition=1),
    ask("OPEN_SESSION", open={"session_free": 1}),
    ask("OPEN_SESSION", ring=OTHER, open={"session_free": 1, "session_slot": 1}),
    *stored(RING, frame=0, key=1, session=0),
    ask("LOOKUP", key=1, last=1, open={"place": 0}),
    *stored(OTHER, frame=1, key=2, session=1),
    administer("SET_PARTITION", partition=1, public=1),
    administer("SET_PARTITION", partition=0, read_mask=0b10),
    ask("LOOKUP", key=1, last=1, open={"place": 0}),
    ask("LOOKUP", key=2, last=1, open={"answer": {"full": 1}, "place": 1}),
    Step("DROP_PARTITION", {"stamp": REGISTERS, "partition": 0}, {"usage_configured": 1}, at_once=True),
    ask("ALLOC", key=1, length=SEGMENT, open=finds(2) | {"place": 0, "usage_configured": 1}),
    ask("ALLOC", key=3, length=SEGMENT, open=finds(1, evict=1) | {"place": 3}),
)
"""Blocks of two partitions are found, by the ring of one and by that of the other; one dies with its partition, and its
place is taken for the same key; one is evicted."""


def grown(ring: dict[str, int], *, frame: int, session: int = 0, victim: bool = False) -> tuple[Step, ...]:
    """A ring stores a block in the frame that it gets from the queue of FREE frames, or as a victim."""
    free = {"free_frame_any": 1, "free_frame": frame}
    found = {"search_ends": 1, "search_finds": 1, "search_victim": frame}
    handle = named(2 if victim else 1, frame)
    name = {"slot": session}
    return (
        ask("ALLOC", ring=ring, key=frame, length=SEGMENT, slot=name, open=found if victim else free),
        ask("WRITE", ring=ring, handle=handle, segment=0, length=SEGMENT, last=1),
        Step("LANDED", {"handle": handle, "count": 1, "ok": 1}),
        ask("SEAL", ring=ring, handle=handle, length=SEGMENT),
    )


QUOTA = (
    administer("SET_EPOCH", epoch=1),
    administer("SET_MODEL", model=0, live=1),
    administer("SET_PARTITION", partition=0, limits={"quota": 4, "guarantee": 1}),
    administer("SET_PARTITION", partition=1, limits={"quota": 2, "guarantee": 1}),
    administer("BIND", ring=RING, bind=Bind.PARTITION, partition=0),
    administer("BIND", ring=OTHER, bind=Bind.PARTITION, partition=1),
    ask("OPEN_SESSION", open={"session_free": 1}),
    ask("OPEN_SESSION", ring=OTHER, open={"session_free": 1, "session_slot": 1}),
    *grown(RING, frame=0),
    *grown(RING, frame=1),
    *grown(RING, frame=2),
    *grown(RING, frame=0, victim=True),
    *grown(OTHER, frame=3, session=1),
    *grown(OTHER, frame=1, session=1, victim=True),
    ask("ALLOC", ring=OTHER, key=3, length=SEGMENT, slot={"slot": 1}, open={"search_ends": 1}),
)
"""A partition borrows until only guarantees are left, and evicts its own; another takes its guarantee, then a victim of
the first, and is refused at its quota."""

LOSS = (
    *BEGIN,
    ask("ALLOC", key=1, length=SEGMENT, open=finds(0)),
    ask("WRITE", handle=named(1), segment=0, length=SEGMENT, last=1),
    Step("LANDED", {"handle": named(0), "count": 1, "ok": 1}),
    ask("SEAL", handle=named(1), length=SEGMENT),
    ask("LOOKUP", key=1, pin=1, last=1, open=hit()),
    ask("LOOKUP", key=1, pin=1, last=1, open=hit() | {"pin_slot": 1}),
    ask("ALLOC", key=2, length=SEGMENT, open=finds(1)),
    Step("LOST", {"ring": RING}),
    *(Step("NONE"),) * 4,
)
"""A ring has two pins on a block, and is writing another, when it is lost."""
