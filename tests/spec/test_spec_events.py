"""EVENT: every block that was announced as stored is announced once as gone, unless its scope took it along."""

from collections.abc import Callable

import pytest
from specbench import A_FAR, SMALL, A, B, Bench, block_bytes, fuzz, seal, seed_bug

from hw.params import commands as c
from hw.params import orderlog as log
from hw.params.commands import Binding, Command, Event, Fate, Invalidate, Message
from hw.params.protocol import REGISTERS, Handle, RingId, Status
from pymodel.spec.core import Core


def told(bench: Bench) -> list[Message]:
    """What the ports have been told unasked."""
    return [message for message in bench.heard if isinstance(message, Message)]


def damaged(bench: Bench, handle: Handle) -> None:
    """Memory returns a block damaged."""
    tag = bench.ask(A, c.Read(handle, 0, 1))
    bench.execute(log.ReadDone(A, tag, ok=False))
    assert bench.answered(A, tag).status is Status.POISON


def dropped(bench: Bench, handle: Handle) -> None:
    """The block's own partition drops it."""
    assert bench.do(A_FAR, c.Drop(0, 1)).status is Status.OK


def gone(handle: Handle, fate: Fate) -> list[Message]:
    """Both ports of partition 0 hear what has become of its block 1."""
    return [Event(port, fate, partition=0, model=0, key=1, handle=handle) for port in (0, 1)]


@pytest.mark.parametrize(("end", "fate"), [(damaged, Fate.DAMAGED), (dropped, Fate.DROPPED)])
def test_the_ports_are_told_of_a_sealed_block_that_goes_alone(end: Callable[[Bench, Handle], None], fate: Fate) -> None:
    bench = Bench()
    handle = bench.store(A, bench.open(), 1)
    bench.heard.clear()
    end(bench, handle)
    assert told(bench) == gone(handle, fate)
    bench.settle()
    assert told(bench) == gone(handle, fate), "once"


def test_readers_of_a_public_partition_are_told_too() -> None:
    bench = Bench()
    handle = bench.store(B, bench.open(B), 1)
    bench.heard.clear()
    bench.must(B, c.Drop(0, 1))
    assert told(bench) == [Event(port, Fate.DROPPED, partition=1, model=0, key=1, handle=handle) for port in (0, 1)]


def test_the_others_are_not_told() -> None:
    bench = Bench()
    bench.store(A, bench.open(), 1)
    bench.must(REGISTERS, c.SetPartition(1, quota=4))
    bench.must(REGISTERS, c.Bind(A_FAR, Binding.NONE))
    bench.heard.clear()
    bench.must(A, c.Drop(0, 1))
    assert [message.port for message in told(bench)] == [0], "port 1 has rings of the other partition only"


def test_what_was_never_stored_does_not_go() -> None:
    bench = Bench()
    session = bench.open()
    dropping, aborting, failing = (bench.alloc(A, session, key) for key in (1, 2, 3))
    bench.must(A, c.Write(failing, 0, block_bytes(1)))
    assert bench.do(A, c.Seal(failing, 512, 0)).status is Status.CRC
    bench.must(A, c.Drop(0, 1))
    bench.must(A, c.Abort(aborting))
    assert told(bench) == []
    assert bench.do(A, c.Abort(dropping)).status is Status.STALE


@pytest.mark.parametrize("death", [c.DropPartition(0), c.Retire(0)], ids=["partition", "model"])
def test_of_what_a_scope_took_along_the_ports_know_already(death: Command) -> None:
    bench = Bench()
    handle = bench.store(A, bench.open(), 1)
    tag = bench.ask(A, c.Read(handle, 0, 1))
    bench.heard.clear()
    bench.must(REGISTERS, death)
    bench.execute(log.ReadDone(A, tag, ok=False))
    bench.settle()
    assert {type(message) for message in told(bench)} == {Invalidate}


def test_the_eviction_of_a_block_is_told_as_before() -> None:
    bench = Bench()
    session = bench.open()
    handle, *_ = [bench.store(A, session, key) for key in (1, 2, 3, 4)]
    bench.heard.clear()
    bench.alloc(A, session, 5)
    assert told(bench) == gone(handle, Fate.EVICTED)


def test_every_port_with_a_tenant_hears_that_a_model_was_retired() -> None:
    bench = Bench(SMALL)
    far = RingId(2, 0)
    bench.must(REGISTERS, c.Bind(far, 1))
    bench.must(REGISTERS, c.Retire(0))
    assert told(bench) == [Invalidate(port, model=0) for port in range(3)]
    bench.lose(far)
    bench.must(REGISTERS, c.Retire(0))
    assert told(bench)[3:] == [Invalidate(port, model=0) for port in range(2)], "a lost ring hears nothing"


def test_whoever_listens_knows_what_is_there(seed: int) -> None:
    """Port 0, told of all partitions, holds the same list of sealed blocks as the slice."""
    bench = Bench()
    listed: dict[Handle, int] = {}
    session = bench.open()
    data = block_bytes(1)
    for step in range(60):
        key = (seed + step * 7) % 11
        handle = bench.do(A, c.Alloc(0, key, len(data), session)).handle
        assert handle is not None
        if bench.do(A, c.Write(handle, 0, data)).status is Status.OK:
            bench.do(A, seal(handle, data))
        if step % 5 == 0:
            bench.do(A_FAR, c.Drop(0, (key + 3) % 11))
        if step % 7 == 0 and bench.look(A, key) is Status.HIT:
            damaged(bench, handle)
    for message in told(bench):
        if isinstance(message, Event) and message.port == 0:
            assert (message.handle in listed) != message.stored
            if message.stored:
                listed[message.handle] = message.key
            else:
                del listed[message.handle]
    sealed = {bench.core.handle(f): f.tag.key for f in bench.core.frames if f.state.name == "SEALED"}
    assert listed == sealed and sealed


def test_in_traffic_nothing_goes_twice_and_nothing_that_was_not_stored(seed: int) -> None:
    _, _, heard = fuzz(SMALL, seed, 3000)
    stored: set[Handle] = set()
    gone: list[tuple[int, Handle]] = []
    for event in heard:
        if isinstance(event, Event) and event.stored:
            stored.add(event.handle)
        elif isinstance(event, Event):
            assert event.handle in stored
            gone.append((event.port, event.handle))
    assert gone and len(set(gone)) == len(gone)


ALONE = "frame.state is FrameState.SEALED and self.alive(frame)"
MUTANTS = {
    "keeps silent": (
        ALONE,
        "False",
        lambda: test_the_ports_are_told_of_a_sealed_block_that_goes_alone(dropped, Fate.DROPPED),
    ),
    "tells of what was never stored": (ALONE, "self.alive(frame)", test_what_was_never_stored_does_not_go),
    "tells of dead blocks": (
        ALONE,
        "frame.state is FrameState.SEALED",
        lambda: test_of_what_a_scope_took_along_the_ports_know_already(c.DropPartition(0)),
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_drain_that_tells_too_little_or_too_much_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new, test = MUTANTS[name]
    seed_bug(monkeypatch, Core.drain, old, new)
    with pytest.raises(AssertionError, match="assert"):
        test()
