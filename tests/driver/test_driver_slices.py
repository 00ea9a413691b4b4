"""A node of two slices as one device: blocks where their home is, answers put together, and one slice restarted."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from driverbench import FRAMES, PARAMS, Rig, mmio, of_two, store, verilator
from test_driver_client import (
    test_a_block_that_was_put_is_found_and_read_by_every_ring_of_its_partition,
    test_a_full_pin_table_cuts_a_lookup,
    test_a_parked_read_is_stale_when_the_block_dies,
    test_a_run_stops_where_a_bitmap_goes_on,
    test_what_is_pinned_is_not_evicted_and_a_with_block_returns_it,
)
from test_driver_lifetimes import test_what_an_earlier_life_has_given_touches_nothing_of_this_one

from hw.params import InputError, Params
from hw.params import commands as c
from hw.params.commands import Completion, Fence, Invalidate, LookupMode, Message
from hw.params.home import Home
from hw.params.protocol import Handle, ModelState, PinId, RingId, SessionId, Status
from hw.params.sections import NodeParams
from hw.tb.mutate import mutate
from sw.driver import AsyncClient, Client, CommandFailed, Device, SpecificationTransport, Transport, routes
from sw.driver import device as device_module
from sw.driver.lives import parts_of
from sw.driver.routes import Part, joined
from sw.driver.tags import Tags

__all__ = [
    "test_a_block_that_was_put_is_found_and_read_by_every_ring_of_its_partition",
    "test_a_full_pin_table_cuts_a_lookup",
    "test_a_parked_read_is_stale_when_the_block_dies",
    "test_a_run_stops_where_a_bitmap_goes_on",
    "test_what_an_earlier_life_has_given_touches_nothing_of_this_one",
    "test_what_is_pinned_is_not_evicted_and_a_with_block_returns_it",
]
"""What every device does, run here on two slices every day; all other tests of this folder are every night."""

TWO = of_two(PARAMS)
BY_ROOT = replace(PARAMS, node=NodeParams(slices=2, home="root"))
Way = Callable[[Params, int], Transport]
WAYS: dict[str, Way] = {"specification": SpecificationTransport, "rings": mmio, "rtl": verilator}
HOME = Home(TWO)
RING = RingId(0, 0)


@pytest.fixture(params=["specification", "rings", pytest.param("rtl", marks=pytest.mark.nightly)])
def way(request: pytest.FixtureRequest) -> Way:
    return WAYS[request.param]


@pytest.fixture
def rig(way: Way) -> Iterator[Rig]:
    """Two slices in service, with blocks where their keys say. In the end nothing waits, and the frames add up."""
    rig = Rig(Device(way(TWO, 0)))
    yield rig
    rig.settle()
    for counters in map(rig.device.counters, rig.device.slices):
        assert sum(count for name, count in counters.items() if name.startswith("frames_")) == FRAMES
        assert counters["parked_used"] == 0


def keys_of(slice_: int, count: int = 4) -> list[int]:
    """The first keys whose home is a slice."""
    return [key for key in range(1, 99) if HOME.slice_of_word(key) == slice_][:count]


ZERO, ONE = keys_of(0), keys_of(1)


def test_a_block_is_in_the_slice_of_its_key(rig: Rig) -> None:
    handles = [store(rig.one, key) for key in (*ZERO, *ONE)]
    assert [handle.slice for handle in handles] == [0] * 4 + [1] * 4
    for slice_ in (0, 1):
        assert rig.device.counters(slice_)["frames_sealed"] == 4
    assert rig.counters()["frames_sealed"] == 8
    assert all(bytes(rig.far.get(handle, length=600)) == b"kv" * 300 for handle in handles)
    assert rig.one.drop(0, ONE[0]) is Status.OK
    assert rig.far.lookup(0, [ZERO[0], ONE[0]]).statuses == [Status.HIT, Status.MISS]


@pytest.mark.parametrize("slice_", [-1, 2, True, "0"])
def test_only_slices_that_are_there_are_asked(rig: Rig, slice_: Any) -> None:
    with pytest.raises(InputError, match="expected a number from 0 to 1"):
        rig.device.counters(slice_)
    with pytest.raises(InputError, match="expected a number from 0 to 1"):
        rig.device.read("ID", slice_)


# LOOKUPs that are put together.


def answers(rig: Rig, random: Random) -> list[tuple[object, ...]]:
    """What many LOOKUPs of stored, unsealed and unknown keys have given, but for names, and left; pins go back.

    One slice has frames for all blocks, and pins for all keys that are to be pinned.
    """
    for key in random.sample(range(12), 5):
        store(rig.one, key)
    session = rig.one.open()
    for key in random.sample(range(12), 3):
        rig.one.run(c.Alloc(0, key, 9, session))
    told = []
    for _ in range(60):
        mode, pin = random.choice(list(LookupMode)), random.random() < 0.6
        keys = [random.randrange(14) for _ in range(random.randint(1, 4 if pin else 8))]
        found = rig.one.lookup(0, keys, mode=mode, pin=pin)
        named, given = ([each is not None for each in names] for names in (found.handles, found.pins))
        rig.settle()
        left = rig.counters()["pins_used"] - sum(given)
        back = {rig.one.unpin(each) for each in found.pins if each is not None}
        told.append((keys, mode, found.status, found.count, found.statuses, named, given, left, back))
    return told


def pair(way: Way) -> list[Rig]:
    """A node of one slice, and one of two."""
    return [Rig(Device(way(params, 0))) for params in (PARAMS, TWO)]


def test_a_lookup_of_two_slices_answers_as_one_does(way: Way, seed: int) -> None:
    print(f"seed {seed}")
    one, two = (answers(rig, Random(seed)) for rig in pair(way))
    assert one == two and not any(left for *_, left, _ in one)


MUTANTS: dict[str, tuple[str, str]] = {
    "a run goes on": ("if run and each.statuses", "if False and each.statuses"),
    "the last stop counts": ("first = min(stops", "first = max(stops"),
    "the key that stopped it is left out": ("answered[-1] + 1, 0", "answered[-1], 0"),
    "results are in another order": ("statuses[place], handles[place]", "statuses[place - 1], handles[place]"),
    "pins behind the stop stay": ("if pin is not None", "if False"),
    "pins before the stop go back too": ("pins[first.end :] if", "pins if"),
    "hits behind the stop count": ("joint.statuses.count(Status.HIT)", "statuses.count(Status.HIT)"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_lookup_that_is_put_together_wrongly_is_found(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(routes, "_joined_lookup", mutate(routes._joined_lookup, *MUTANTS[name]))
    one, two = pair(SpecificationTransport)
    with suppress(IndexError):
        assert answers(two, Random(0)) != answers(one, Random(0))


def test_pins_that_are_for_nothing_are_back_before_the_next_command(rig: Rig) -> None:
    for key in (*ZERO, *ONE):
        store(rig.one, key)
    found = rig.one.lookup(0, [ZERO[0], 99, *ONE[:3], ZERO[1]], pin=True)
    assert found.statuses == [Status.HIT, Status.MISS] and found.count == 1
    again = rig.one.lookup(0, [*ONE, *ZERO[1:]], pin=True)
    assert again.status is Status.HIT, "four pins in each slice, of which one is taken"
    assert [pin is not None for pin in again.pins] == [True] * 7


def test_a_lookup_is_cut_where_the_first_of_its_slices_has_no_pin_left(rig: Rig) -> None:
    for key in (*ZERO, *ONE):
        store(rig.one, key)
    held = rig.one.lookup(0, ONE[:3], pin=True)
    cut = rig.one.lookup(0, [ZERO[0], ONE[0], ZERO[1], ONE[1], ZERO[2]], pin=True, mode=LookupMode.BITMAP)
    assert (cut.status, cut.count, len(cut.pins)) == (Status.NO_SPACE, 3, 3)
    rig.settle()
    assert rig.counters()["pins_used"] == 3 + 3
    assert all(rig.one.unpin(pin) is Status.OK for pin in (*held.pins, *cut.pins) if pin is not None)


@pytest.mark.parametrize("keys", [[], [1] * 9, [1, -1], [2, 1 << 128]])
def test_a_lookup_that_is_none_is_refused_once(rig: Rig, keys: list[int]) -> None:
    assert rig.one.lookup(0, keys).status is Status.INVALID
    assert rig.device.completed[c.Lookup.opcode, Status.INVALID] == 1


def test_what_a_lost_ring_had_asked_of_both_ends_once(rig: Rig) -> None:
    tickets = [rig.one.submit(c.Lookup(0, [ZERO[0], ONE[0]], pin=True)) for _ in range(5)]
    rig.device.reset(rig.one.ring)
    rig.settle()
    assert {ticket.completion.status for ticket in tickets if ticket.completion} <= {Status.UNAVAILABLE, Status.MISS}
    assert all(ticket.completion is not None for ticket in tickets)


def test_a_cancelled_lookup_returns_the_pins_of_both(rig: Rig) -> None:
    for key in (ZERO[0], ONE[0]):
        store(rig.one, key)

    async def cancelled() -> None:
        client = AsyncClient(rig.device, RING)
        looking = asyncio.create_task(client.lookup(0, [ZERO[0], ONE[0]], pin=True))
        await asyncio.sleep(0)
        looking.cancel()
        with suppress(asyncio.CancelledError):
            await looking

    asyncio.run(cancelled())
    rig.settle()
    assert rig.counters()["pins_used"] == 0


def test_what_goes_back_waits_for_a_tag(rig: Rig) -> None:
    for key in (*ZERO, *ONE):
        store(rig.one, key)
    tags = Tags(rig.one.ring)
    tags._fresh = iter(range(2))
    rig.device._tags[rig.one.ring] = tags
    found = rig.one.lookup(0, [99 if HOME.slice_of_word(99) == 0 else 98, *ONE], pin=True)
    assert found.statuses == [Status.MISS] and rig.counters()["pins_used"] > 0
    rig.settle()
    assert rig.counters()["pins_used"] == 0


# Sessions, pins and handles.


def test_a_session_is_one_in_each_slice(rig: Rig) -> None:
    with rig.one.session() as session:
        assert set(parts_of(session)) == {0, 1}
        assert [rig.device.counters(slice_)["sessions_used"] for slice_ in (0, 1)] == [1, 1]
        assert all(rig.one.put(session, 0, key, b"x").stored for key in (ZERO[0], ONE[0]))
    assert rig.counters()["sessions_used"] == 0
    assert rig.one.put(session, 0, ONE[1], b"x").status is Status.STALE


def test_a_session_that_one_slice_has_no_room_for_is_closed_in_the_other(rig: Rig) -> None:
    alone = [rig.device._send_part(RING, Part(1, c.OpenSession())) for _ in range(PARAMS.tables.sessions)]
    assert all(rig.device.wait(ticket).status is Status.OK for ticket in alone)
    with pytest.raises(CommandFailed) as caught:
        rig.one.open()
    assert caught.value.status is Status.NO_SPACE
    rig.settle()
    assert rig.device.counters(0)["sessions_used"] == 0


def test_a_pin_goes_back_to_the_slice_that_gave_it(rig: Rig) -> None:
    store(rig.one, ONE[0])
    (pin,) = rig.one.lookup(0, ONE[:1], pin=True).pins
    assert pin is not None
    assert rig.one.unpin(PinId(*pin)) is Status.STALE, "one that is made up is of slice 0"
    assert rig.one.unpin(pin) is Status.OK


def test_a_handle_of_no_slice_is_invalid(rig: Rig) -> None:
    handle = store(rig.one, ONE[0])
    for slice_ in (2, 3, 63):
        assert rig.one.run(c.Abort(handle._replace(slice=slice_))).status is Status.INVALID
    assert rig.one.run(c.Alloc(0, ONE[1], 9, SessionId(2, 0))).status is Status.STALE


class Mover:
    """Answers the FENCE of each slice for what its session has written there."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.session = client.open()
        self.written = {0: 0, 1: 0}
        self.fences: list[int] = []
        client.device.listen(self.hear)

    def put(self, key: int) -> Status:
        """A block of two segments."""
        self.written[HOME.slice_of_word(key)] += 2
        return self.client.put(self.session, 0, key, b"k" * 1000).status

    def hear(self, message: Message) -> None:
        if isinstance(message, Fence) and message.session == parts_of(self.session)[message.slice]:
            self.fences.append(message.slice)
            self.client.submit(c.AnswerFence(message.session, self.written[message.slice]))


def test_a_session_moves_in_every_slice(rig: Rig) -> None:
    with rig.one.session():  # the sessions of one are of other slots in each slice
        rig.device.wait(rig.device._send_part(RING, Part(1, c.OpenSession())))
        mover = Mover(rig.one)
    assert [mover.put(key) for key in (ZERO[0], ONE[0], ONE[1])] == [Status.GRANTED] * 3
    assert rig.far.run(c.Migrate(mover.session)).status is Status.OK
    assert sorted(mover.fences) == [0, 1]
    assert rig.far.put(mover.session, 0, ZERO[1], b"x").stored and rig.far.put(mover.session, 0, ONE[2], b"x").stored
    assert mover.put(ONE[3]) is Status.STALE, "the old ring is out"
    with pytest.raises(InputError, match="is of several slices, expected the session of the FENCE"):
        rig.far.run(c.AnswerFence(mover.session, 0))


def test_parts_are_put_together_by_the_first_that_is_not_ok() -> None:
    parts = [Part(0, c.OpenSession()), Part(1, c.OpenSession())]
    ended = [Completion(RING, 1, Status.OK, session=SessionId(3, 4)), Completion(RING, 2, Status.NO_SPACE)]
    failed = joined(c.OpenSession(), parts, ended, 7)
    assert failed.completion.status is Status.NO_SPACE and failed.completion.session is None
    assert failed.back == [Part(0, c.CloseSession(SessionId(3, 4)))]
    closed = joined(c.CloseSession(SessionId(0, 0)), parts, [replace(each, session=None) for each in ended], 7)
    assert closed.completion.status is Status.NO_SPACE and not closed.back


# By root.


@pytest.fixture
def rooted(way: Way) -> Rig:
    """Two slices, with blocks where the first of their chain is."""
    return Rig(Device(way(BY_ROOT, 0)))


def test_a_chain_is_in_one_slice(rooted: Rig) -> None:
    chain = [ONE[0], *ZERO]
    with rooted.one.session(root=chain[0]) as session:
        assert list(parts_of(session)) == [1]
        puts = [rooted.one.put(session, 0, key, b"x") for key in chain]
    assert [put.handle.slice for put in puts if put.handle] == [1] * 5
    assert rooted.device.counters(0)["frames_sealed"] == 0
    with rooted.far.pinned(0, chain[:4], root=chain[0]) as found:
        assert (found.status, found.count) == (Status.HIT, 4)
    assert rooted.far.lookup(0, [chain[1]], root=chain[1]).status is Status.MISS, "that is another chain"
    assert rooted.one.drop(0, chain[1], root=chain[0]) is Status.OK
    assert rooted.far.lookup(0, chain, root=chain[0]).count == 1


UNROOTED: dict[str, Callable[[Rig], object]] = {
    "LOOKUP": lambda rig: rig.one.lookup(0, [1]),
    "DROP": lambda rig: rig.one.drop(0, 1),
    "OPEN_SESSION": lambda rig: rig.one.open(),
}


@pytest.mark.parametrize("name", UNROOTED)
def test_a_command_without_its_root_is_not_sent(rooted: Rig, name: str) -> None:
    before = rooted.device.completed.copy()
    with pytest.raises(InputError, match=f"{name}: no root, expected the key of the first block of the chain"):
        UNROOTED[name](rooted)
    rooted.settle()
    assert rooted.device.completed == before


def test_a_root_is_a_key(rooted: Rig) -> None:
    with pytest.raises(InputError, match="root = '1', expected the key of a block"):
        rooted.one.lookup(0, [1], root="1")  # type: ignore[arg-type]


# What the administrator does.


@pytest.mark.parametrize("kill", ["partition", "model"])
def test_what_dies_dies_in_every_slice(rig: Rig, kill: str) -> None:
    for key in (ZERO[0], ONE[0]):
        store(rig.one, key)
    rig.heard.clear()
    if kill == "partition":
        rig.device.drop_partition(0)
        told = [Invalidate(port, partition=0, slice=at) for port in (0, 1) for at in (0, 1)]
    else:
        rig.device.set_model(0, ModelState.RETIRED)
        told = [Invalidate(port, model=0, slice=at) for port in (0, 1) for at in (0, 1)]
    assert rig.one.lookup(0, [ZERO[0], ONE[0]], mode=LookupMode.BITMAP).count == 0
    rig.settle()
    assert sorted(rig.heard, key=repr) == sorted(told, key=repr)


def test_a_quota_is_one_of_each_slice(rig: Rig) -> None:
    rig.device.set_partition(0, quota=2)
    for key in (*ZERO[:3], *ONE[:2]):
        store(rig.one, key)
    assert [rig.device.counters(slice_)["evictions"] for slice_ in (0, 1)] == [1, 0]
    assert [rig.device.counters(slice_)["frames_sealed"] for slice_ in (0, 1)] == [2, 2]


def test_an_administrative_ring_speaks_to_every_slice(rig: Rig) -> None:
    rig.device.bind(rig.two.ring, c.Binding.ADMINISTRATIVE)
    assert rig.two.run(c.SetPartition(0, quota=1)).status is Status.OK
    for key in (*ZERO[:2], *ONE[:2]):
        store(rig.one, key)
    assert rig.counters()["evictions"] == 2


def test_one_slice_is_restarted_and_the_other_keeps_what_is_sealed(rig: Rig) -> None:
    handles = [store(rig.one, key) for key in (ZERO[0], ONE[0])]
    session, (pin,) = rig.one.open(), rig.one.lookup(0, ZERO[:1], pin=True).pins
    unsealed = rig.one.run(c.Alloc(0, ZERO[1], 9, session)).handle
    assert pin is not None and unsealed is not None
    rig.device.start(only=1)
    assert rig.one.lookup(0, [ZERO[0]]).status is Status.UNAVAILABLE, "its port was lost"
    rig.settle()
    counters = rig.device.counters(0)
    assert (counters["frames_sealed"], counters["pins_used"], counters["sessions_used"]) == (1, 0, 0)
    assert rig.device.counters(1)["frames_free"] == FRAMES
    for partition in range(3):
        rig.device.set_partition(partition, quota=FRAMES)
    rig.device.set_model(0, ModelState.LIVE)
    rig.device.bind(rig.one.ring, 0)
    assert rig.one.lookup(0, [ZERO[0], ONE[0]]).statuses == [Status.HIT, Status.MISS]
    assert bytes(rig.one.get(handles[0], length=600)) == b"kv" * 300
    with pytest.raises(CommandFailed):
        rig.one.get(handles[1], length=600)
    assert rig.one.unpin(pin) is Status.STALE and rig.one.run(c.CloseSession(session)).status is Status.STALE
    assert rig.one.lookup(0, [ZERO[1]]).status is Status.MISS
    assert store(rig.one, ONE[0]).epoch != handles[1].epoch == store(rig.one, ZERO[1]).epoch


def test_an_epoch_of_either_slice_is_not_started_again(rig: Rig) -> None:
    rig.device.start(77)
    rig.device.start(78, only=1)
    for epoch in (77, 78):
        with pytest.raises(InputError, match=f"epoch = {epoch}, expected one that the slice has not had yet"):
            rig.device.start(epoch)
    with pytest.raises(InputError, match="slice = 2, expected a number from 0 to 1"):
        rig.device.start(only=2)


def test_a_slice_that_is_none_of_ours_is_named() -> None:
    transport = SpecificationTransport(TWO)
    honest = transport.read_register
    transport.read_register = lambda offset, slice_=0: honest(offset, slice_) ^ (slice_ == 1)  # type: ignore[method-assign]
    with pytest.raises(device_module.DeviceError, match=r"register ID of slice 1 reads"):
        Device(transport)


def test_the_smallest_node_has_no_parts() -> None:
    """A command to one slice is sent as it is, whatever the home map."""
    one = routes.Routes(PARAMS)
    for command in (c.Lookup(0, range(8)), c.OpenSession(), c.Bind(RING, 0), c.Abort(Handle(0, 5, 0, 0, 0))):
        ((slice_, sent, _),) = one.parts(command)
        assert slice_ == 0 and sent is command
