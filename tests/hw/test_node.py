"""Two slices behind one set of ports: each is what its specification says, and what they share they share."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from hw.params import commands as c
from hw.params.protocol import REGISTERS, Handle, LookupMode, ModelState, RingId, Status
from hw.rtl.emit import Emission, emit
from hw.rtl.fabric import Channel
from hw.rtl.node.core import control, core, notices, streaming
from hw.rtl.node.core import emission as emissions
from hw.rtl.node.node import Node
from hw.tb.core.world import Script, Story
from hw.tb.harness import Harness, Links, Memory
from hw.tb.mutate import mutate
from hw.tb.node.compiled import NodeWorlds, small_node
from hw.tb.node.one_slice import views
from hw.tb.scoreboard import CheckError
from hw.tb.slice.orders import REGISTER_MAP
from hw.tb.slice.packets import Packets
from hw.tb.slice.software import Software
from tests.hw.corebench import kept, play, small

LATE = Memory(latency=30, jitter=20, reorder=True, interleave=True, answer_willing=0.8, data_willing=0.8)
SLOW = Links(idle=0.2, backpressure=0.3, latency=3)
FIRST, SECOND = RingId(0, 0), RingId(1, 0)
STEP = 50


def follow(seed: int, commands: int) -> None:
    """Worlds around a node in a hurry, and around one with everything late."""
    print(f"seed {seed}; again: KVNODE_SEED={seed} .venv/bin/pytest tests/hw/test_node.py")
    placed: Counter[int] = Counter()
    compared: Counter[int] = Counter()
    for i, around in enumerate(({}, {"memory": LATE, "links": SLOW})):
        node = NodeWorlds(small_node(), seed + 2 * i, **around)
        node.play(commands)
        node.harness.close()
        for number, world in enumerate(node.worlds):
            placed[number] += world.world.placed
            compared[number] += world.world.compared
    assert all(placed[number] for number in range(2)), "no block was looked for in memory"
    assert all(compared[number] for number in range(2)), "no bytes were compared"


@pytest.mark.nightly
def test_each_slice_equals_its_specification(seed: int) -> None:
    follow(seed, 1_500)


NUMBER = 5


def another_slice() -> Story:
    """A handle carries its slice; with the number of another it is none."""
    ring = RingId(0, 0)
    yield REGISTERS, c.SetEpoch(99)
    yield REGISTERS, c.SetPartition(0, quota=2)
    yield REGISTERS, c.SetModel(0, ModelState.LIVE)
    yield REGISTERS, c.Bind(ring, 0)
    handle = yield from kept(ring, 7)
    assert handle.slice == NUMBER
    found = yield ring, c.Lookup(0, [7], LookupMode.BITMAP, pin=True)
    assert found.handles == [handle]
    assert (yield ring, c.Read(handle, 0, 1)).status is Status.OK
    for other in (0, NUMBER + 1, NUMBER ^ 1 << 5):
        assert (yield ring, c.Read(handle._replace(slice=other), 0, 1)).status is Status.INVALID
    yield ring, c.Drop(0, 7)


def test_a_handle_is_one_of_its_slice() -> None:
    world = play(small(), script=Script(another_slice()), number=NUMBER)
    assert world.told_of == {"STORED": 1, "DROPPED": 1}, "with its handle"


MUTANTS: dict[str, tuple[Any, Callable[..., Any], str, str]] = {
    "handles of ALLOC": (core, emissions.Emission, "handle.slice.eq(self._t.number)", "handle.slice.eq(0)"),
    "handles of LOOKUP": (
        streaming,
        streaming._judge,
        "verdict.handle.slice.eq(Mux(named, t.number, 0))",
        "verdict.handle.slice.eq(0)",
    ),
    "handles of EVENT": (emissions, notices.Notices, "message.handle.slice.eq(t.number)", "message.handle.slice.eq(0)"),
    "handles that are taken": (control, control.malformed, "op.handle.slice != t.number", "op.handle.slice != 0"),
}


@pytest.mark.nightly
@pytest.mark.parametrize("name", MUTANTS)
def test_a_core_without_its_number_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, target, good, bad = MUTANTS[name]
    monkeypatch.setattr(where, target.__name__, mutate(target, good, bad))
    with pytest.raises((AssertionError, CheckError)):
        play(small(), script=Script(another_slice()), number=NUMBER)


class Pair:
    """A node with software at each of its slices."""

    def __init__(self, emission: Emission | None = None) -> None:
        self.params = small_node()
        self.node = Harness(self.params, emission=emission)
        self.slices = [Software(view, self.params) for view in views(self.node, self.params)]
        for software in self.slices:
            software.begin(FIRST, SECOND)

    def run(self, cycles: int) -> None:
        """Let time pass, and hear what has come for each slice."""
        for _ in range(0, cycles, STEP):
            self.node.run(STEP)
            for software in self.slices:
                software.run(0)

    def until(self, done: Callable[[], bool], what: str) -> None:
        """Let time pass until something is the case."""
        for _ in range(200):
            if done():
                return
            self.run(STEP)
        raise CheckError(f"never: {what}")

    def level(self, number: int, name: str) -> int:
        """What a register of a slice counts as in use."""
        register = next(each for each in REGISTER_MAP.values() if each.statistic == name)
        return self.node.read_register(register.offset, unit=number)[0]

    def bind(self, *numbers: int) -> None:
        """The rings have their partition again."""
        for number in numbers:
            for ring in (FIRST, SECOND):
                self.until(
                    lambda: self.slices[number].administer(c.Bind(ring, 0)) is Status.OK,  # noqa: B023 (called here)
                    f"{ring} is bound at slice {number}",
                )

    def stored(self) -> list[Handle]:
        """A sealed block at each slice, and behind it one that is being written."""
        handles = []
        for number, software in enumerate(self.slices):
            data = bytes([number + 1]) * self.params.memory.segment_bytes
            handles.append(software.store(FIRST, 7, data))
            software.allocate(FIRST, 8, len(data), software.session(FIRST))
            assert self.level(number, "frames_writing") == 1
        return handles

    def check(self, number: int, handle: Handle) -> None:
        """The sealed block of a slice is there, and the other is not."""
        software = self.slices[number]
        found = software.ask(SECOND, c.Lookup(0, [7, 8], LookupMode.BITMAP))
        statuses = [answer.status for answer in found.answers]
        if statuses != [Status.HIT, Status.MISS]:
            raise CheckError(f"slice {number} finds {statuses}")
        reply = software.ask(SECOND, c.Read(handle, 0, 1))
        if reply.data != bytes([number + 1]) * self.params.memory.segment_bytes:
            raise CheckError(f"slice {number} reads something else")

    def back(self, *ports: int) -> None:
        """These requesters reset their ends; wait until their ports are back."""
        for port in ports:
            self.node.renew(port)
        self.until(lambda: not any(self.node.down(port) for port in ports), "a port is back")


def silent(pair: Pair) -> None:
    """A requester falls silent, in the middle of what both slices send it."""
    handles = pair.stored()
    for software, handle in zip(pair.slices, handles, strict=True):
        software.send(FIRST, c.Read(handle, 0, 1))
    pair.node.run(STEP // 2)
    pair.node.fall_silent(FIRST.port)
    pair.until(lambda: pair.node.down(FIRST.port), "the port is lost")
    assert not pair.node.down(SECOND.port)
    pair.back(FIRST.port)
    pair.bind(0, 1)
    for number, handle in enumerate(handles):
        pair.until(lambda: not pair.level(number, "sessions_used"), "nothing is left")  # noqa: B023 (called here)
        pair.check(number, handle)
        assert pair.slices[number].ask(FIRST, c.Read(handle, 0, 1)).status is Status.OK


def restarted(pair: Pair) -> None:
    """A slice restarts: the other one keeps what is sealed."""
    kept_handle, lost_handle = pair.stored()
    control = REGISTER_MAP["CONTROL"]
    pair.node.write_register(control.offset, control.field("restart").mask, unit=1)
    pair.until(lambda: all(pair.node.down(port) for port in range(2)), "all ports are lost")
    pair.back(0, 1)
    pair.bind(0)
    pair.check(0, kept_handle)
    pair.slices[1].begin(FIRST, SECOND)
    assert pair.slices[1].ask(SECOND, c.Lookup(0, [7], LookupMode.BITMAP)).answers[0].status is Status.MISS
    assert pair.slices[1].ask(SECOND, c.Read(lost_handle, 0, 1)).status is Status.STALE
    assert pair.level(1, "frames_free") == pair.params.frames


def a_ring_is_lost(pair: Pair) -> None:
    """A requester says that a ring is lost: it is at both slices, and no other is."""
    handles = pair.stored()
    flits = (flit.to_bytes(pair.node.flit_bytes, "little") for flit in Packets(pair.params).loss(FIRST))
    pair.node.send(FIRST.port, Channel.MESSAGE, b"".join(flits))
    for number, handle in enumerate(handles):
        pair.until(lambda: not pair.level(number, "frames_writing"), "its block is gone")  # noqa: B023 (called here)
        assert pair.slices[number].ask(FIRST, c.Lookup(0, [7])).status is Status.UNAVAILABLE
        pair.check(number, handle)


def one_slice_alone(pair: Pair) -> None:
    """A requester talks to one slice for long: the other does not find it silent."""
    handles = pair.stored()
    assert pair.params.link.heartbeat_cycles > STEP, "there are no heartbeats, which every slice gets"
    for _ in range(3 * pair.params.link.silence_cycles // STEP):
        replies = [pair.slices[0].send(ring, c.Read(handles[0], 0, 1)) for ring in (FIRST, SECOND)]
        pair.run(STEP)
    pair.until(lambda: all(reply.ended for reply in replies), "the last READs end")
    if any(pair.node.down(port) for port in range(2)):
        raise CheckError("a port is lost whose requester was heard")


STORIES = (silent, restarted, a_ring_is_lost, one_slice_alone)


@pytest.mark.nightly
@pytest.mark.parametrize("story", STORIES)
def test_what_ends_at_one_slice_ends_as_it_should_at_the_other(story: Callable[[Pair], None]) -> None:
    story(Pair())


NODE_MUTANTS: dict[str, tuple[Callable[[Pair], None], str, str]] = {
    "a loss is told to nobody else": (restarted, "slice_.lose[p].eq(bond.lose[s]),", ""),
    "credits survive a reset": (silent, "reset(fan)", "fan"),
    "only one slice hears the requester": (one_slice_alone, "slice_.heard[p].eq(fan.heard),", ""),
}


@pytest.mark.nightly
@pytest.mark.parametrize("name", NODE_MUTANTS)
def test_a_node_that_does_not_hold_together_is_found(name: str) -> None:
    story, good, bad = NODE_MUTANTS[name]
    emission = emit(mutate(Node, good, bad)(small_node()), "node")
    with pytest.raises((AssertionError, CheckError)):
        story(Pair(emission))
