"""What dies takes its handles along; what is lost is answered once, and comes back for nobody."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from driverbench import FRAMES, PARAMS, Connect, Rig, store

from hw.params import InputError
from hw.params import commands as c
from hw.params.commands import Binding, Command
from hw.params.protocol import Handle, LookupMode, ModelState, Opcode, PinId, RingId, SessionId, Status
from hw.tb.mutate import mutate
from sw.driver import AsyncClient, Client, CommandFailed, Device, SpecificationTransport, Ticket, lives
from sw.driver import device as device_module


def refused(client: Client, handle: Handle) -> Status:
    """How the READ of a dead block ends; the buffer stays as it was."""
    out = bytearray(b"\xaa" * 600)
    with pytest.raises(CommandFailed) as caught:
        client.get(handle, out)
    assert out == b"\xaa" * 600
    return caught.value.status


DEATHS: dict[str, Callable[[Rig], object]] = {
    "dropped": lambda rig: rig.far.drop(0, 1),
    "model retired": lambda rig: rig.device.set_model(0, ModelState.RETIRED),
    "partition dropped": lambda rig: rig.device.drop_partition(0),
    "restarted": lambda rig: rig.configure(),
}


@pytest.mark.parametrize("death", DEATHS)
def test_the_handle_of_a_dead_block_is_stale_for_everything(rig: Rig, death: str) -> None:
    handle = store(rig.one, 1)
    DEATHS[death](rig)
    assert refused(rig.one, handle) is Status.STALE
    for command in (c.Write(handle, 0, b"x"), c.Seal(handle, 600, 0), c.Abort(handle), c.Read(handle, 0, 1, park=True)):
        assert rig.one.run(command).status is Status.STALE
    assert rig.one.lookup(0, [1]).status is Status.MISS
    rig.device.set_model(0, ModelState.LIVE)
    again = store(rig.one, 1, b"other" * 120)
    assert again != handle
    assert refused(rig.one, handle) is Status.STALE
    assert bytes(rig.one.get(again, length=600)) == b"other" * 120


@pytest.mark.one_slice
@pytest.mark.parametrize("death", ["dropped", "model retired", "partition dropped"])
def test_a_pin_keeps_the_frame_of_a_dead_block_but_reads_nothing(rig: Rig, death: str) -> None:
    handle = store(rig.one, 1)
    with rig.one.pinned(0, [1]):
        DEATHS[death](rig)
        rig.one.lookup(0, [1])
        assert refused(rig.one, handle) is Status.STALE
        assert rig.counters()["frames_draining"] == 1
    rig.settle()
    assert rig.counters()["frames_free"] == FRAMES


@pytest.mark.parametrize("end", ["closed", "ring reset", "port lost"])
def test_an_unsealed_block_dies_with_its_session(rig: Rig, end: str) -> None:
    session = rig.one.open()
    handle = rig.one.run(c.Alloc(0, 1, 600, session)).handle
    assert handle is not None
    rig.one.run(c.Write(handle, 0, b"k" * 600))
    if end == "closed":
        rig.one.run(c.CloseSession(session))
    elif end == "ring reset":
        rig.device.reset(rig.one.ring)
    else:
        rig.device.lose_port(0)
    assert rig.far.lookup(0, [1]).status is Status.MISS
    assert refused(rig.far, handle) in (Status.STALE, Status.DENIED)
    store(rig.far, 1)
    rig.device.bind(rig.one.ring, 0)
    assert rig.one.run(c.Seal(handle, 600, 0)).status is Status.STALE
    assert rig.one.put(session, 0, 2, b"x").status is Status.STALE


# Losses.


def kinds(rig: Rig, handle: Handle, session: SessionId) -> list[Command]:
    """One command of every kind that a tenant has."""
    return [
        c.Lookup(0, [1, 2, 3], LookupMode.BITMAP, pin=True),
        c.Alloc(0, 2, 600, session),
        c.Write(handle, 0, b"x" * 600),
        c.Seal(handle, 600, 0),
        c.Abort(handle),
        c.Read(handle, 0, 1),
        c.Read(handle, 0, 1, park=True),
        c.Drop(0, 1),
        c.OpenSession(),
        c.CloseSession(session),
        c.Migrate(session),
        c.AnswerFence(session, 0),
    ]


@pytest.mark.one_slice
@pytest.mark.parks
@pytest.mark.migrates
@pytest.mark.asleep
def test_commands_in_flight_at_a_loss_end_unavailable_once(rig: Rig) -> None:
    sealed = store(rig.one, 1)
    session, other = rig.far.open(), rig.one.open()
    handle = rig.one.run(c.Alloc(0, 9, 600, other)).handle
    assert handle is not None
    waiting = [rig.far.read(handle, bytearray(600), park=True), rig.far.submit(c.Migrate(other))]
    rig.far.lookup(0, [1], pin=True)
    before = rig.device.completed.copy()
    queued = [rig.far.submit(command) for command in kinds(rig, sealed, session)]
    rig.device.lose_port(1)
    rig.settle()
    ended = [ticket.completion for ticket in (*waiting, *queued)]
    assert [end.status for end in ended if end is not None] == [Status.UNAVAILABLE] * (2 + len(queued))
    assert (rig.device.completed - before).total() == len(ended)
    assert rig.counters()["pins_used"] == 0
    assert rig.counters()["sessions_used"] == 1, "the session of the other port stays"
    assert rig.one.run(c.Abort(handle)).status is Status.OK, "and is not moving any more"
    assert rig.one.lookup(0, [1]).status is Status.HIT, "what is sealed survives, and nothing queued was done"


@pytest.mark.migrates
def test_a_lost_ring_gets_unavailable_until_it_is_bound(rig: Rig) -> None:
    handle = store(rig.one, 1)
    rig.device.reset(rig.one.ring)
    tickets = [rig.one.submit(command) for command in kinds(rig, handle, SessionId(0, 0))]
    assert {rig.device.wait(ticket).status for ticket in tickets} == {Status.UNAVAILABLE}
    rig.device.bind(rig.one.ring, 0)
    assert bytes(rig.one.get(handle, length=600)) == b"kv" * 300


def test_other_rings_do_not_notice_a_loss(rig: Rig) -> None:
    handle = store(rig.one, 1)
    with rig.far.pinned(0, [1]) as found, rig.far.session() as session:
        tickets = [rig.far.submit(c.Lookup(0, [1])) for _ in range(3)]
        rig.device.lose_port(0)
        assert {rig.device.wait(ticket).status for ticket in tickets} == {Status.HIT}
        assert found.handles == [handle]
        assert rig.far.put(session, 0, 2, b"x").stored


@pytest.mark.asleep
@pytest.mark.parametrize("reset_first", [True, False])
def test_nothing_that_a_ring_had_queued_is_done_for_its_next_tenant(rig: Rig, reset_first: bool) -> None:
    store(rig.two, 1)
    store(rig.one, 1)
    queued = [rig.one.submit(c.Drop(0, 1)), rig.one.submit(c.Lookup(0, [1]))]
    if reset_first:
        rig.device.reset(rig.one.ring)
    rig.device.bind(rig.one.ring, 1)
    rig.settle()
    assert [ticket.completion and ticket.completion.status for ticket in queued] == [Status.UNAVAILABLE] * 2
    assert rig.two.lookup(0, [1]).status is Status.HIT
    assert rig.one.lookup(0, [1]).status is Status.HIT, "of its new partition"
    assert rig.far.lookup(0, [1]).status is Status.HIT


def bound_by_ring(rig: Rig, to: int) -> Status:
    """BIND by way of an administrative ring."""
    return rig.public.run(c.Bind(rig.one.ring, to)).status


BINDS: dict[str, Callable[[Rig, int], Status]] = {
    "a ring": bound_by_ring,
    "the registers": lambda rig, to: rig.device.administer(c.Bind(rig.one.ring, to), Status.PENDING),
}


def taken_by_the_next_tenant(rig: Rig, way: str) -> bool:
    """Whether what a ring has queued sees a block of the partition to which the ring is bound meanwhile."""
    store(rig.two, 7)
    rig.device.bind(rig.public.ring, Binding.ADMINISTRATIVE)
    queued = [rig.one.submit(c.Lookup(0, [7])) for _ in range(40)]
    while BINDS[way](rig, 1) is Status.PENDING:
        rig.device.step()
    rig.settle()
    assert rig.one.lookup(0, [7]).status is Status.HIT, "of its new partition"
    return Status.HIT in {rig.device.wait(ticket).status for ticket in queued}


@pytest.mark.parametrize("way", BINDS)
def test_a_ring_changes_hands_without_what_it_had_queued(rig: Rig, way: str) -> None:
    assert not taken_by_the_next_tenant(rig, way)


@pytest.mark.asleep
@pytest.mark.parametrize("way", BINDS)
def test_a_bind_that_leaves_what_is_queued_is_found(rig: Rig, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    monkeypatch.setattr(
        Device, "_change_hands", mutate(Device._change_hands, "self.reset(command.ring)", "command.ring")
    )
    assert taken_by_the_next_tenant(rig, way)


def test_a_bind_that_is_denied_resets_nothing(rig: Rig) -> None:
    store(rig.one, 1)
    rig.device.bind(rig.public.ring, Binding.ADMINISTRATIVE)
    rig.device.bind(rig.public.ring, 2)
    queued = [rig.one.submit(c.Lookup(0, [1])) for _ in range(3)]
    assert bound_by_ring(rig, 1) is Status.DENIED
    assert {rig.device.wait(ticket).status for ticket in queued} == {Status.HIT}


def test_an_administrative_ring_may_bind_itself(rig: Rig) -> None:
    rig.device.bind(rig.public.ring, Binding.ADMINISTRATIVE)
    queued = rig.public.submit(c.SetPartition(1, quota=3))
    ended = rig.public.run(c.Bind(rig.public.ring, 1)).status
    assert rig.device.wait(queued).status is Status.OK
    assert ended in (Status.OK, Status.PENDING, Status.UNAVAILABLE)


def test_a_ring_in_use_is_emptied_before_it_is_bound(rig: Rig) -> None:
    store(rig.one, 1)
    (pin,) = rig.one.lookup(0, [1], pin=True).pins
    session = rig.one.open()
    handle = rig.one.run(c.Alloc(0, 2, 600, session)).handle
    assert pin is not None and handle is not None
    rig.device.bind(rig.one.ring, 1)
    assert rig.counters()["pins_used"] == rig.counters()["sessions_used"] == 0
    assert rig.one.unpin(pin) is Status.STALE
    assert rig.one.put(session, 0, 1, b"x").status is Status.STALE
    assert rig.one.run(c.Abort(handle)).status in (Status.STALE, Status.DENIED)
    assert rig.far.lookup(0, [1, 2]).statuses == [Status.HIT, Status.MISS]


def test_an_unbound_ring_has_no_rights_and_nothing_to_lose(rig: Rig) -> None:
    rig.device.bind(rig.one.ring, Binding.NONE)
    rig.device.reset(rig.one.ring)
    assert rig.one.lookup(0, [1]).status is Status.MISS
    assert rig.one.drop(0, 1) is Status.DENIED
    rig.device.bind(rig.one.ring, 0)
    store(rig.one, 1)


@pytest.mark.parametrize("mode", LookupMode)
def test_a_ring_without_a_partition_is_told_what_one_of_an_empty_partition_is(rig: Rig, mode: LookupMode) -> None:
    def told() -> tuple[object, ...]:
        found = rig.two.lookup(0, [1, 2, 3], mode=mode, pin=True)
        return found.status, found.count, found.statuses, found.handles, found.pins

    store(rig.one, 1)
    empty = told()
    for binding in Binding:
        rig.device.bind(rig.two.ring, binding)
        assert told() == empty


def test_an_administrative_ring_is_lost_as_any_other(rig: Rig) -> None:
    rig.device.bind(rig.one.ring, Binding.ADMINISTRATIVE)
    assert rig.one.run(c.SetPartition(1, quota=3)).status is Status.OK
    rig.device.lose_port(0)
    assert rig.one.run(c.SetPartition(1, quota=3)).status is Status.UNAVAILABLE


@pytest.mark.parametrize("port", [-1, 2])
def test_only_ports_that_are_there_are_lost(rig: Rig, port: int) -> None:
    with pytest.raises(InputError) as caught:
        rig.device.lose_port(port)
    assert str(caught.value) == f"port = {port}, expected a number from 0 to 1"


def test_a_loss_may_be_repeated(rig: Rig) -> None:
    for _ in range(3):
        rig.device.lose_port(0)
        assert rig.one.lookup(0, [1]).status is Status.UNAVAILABLE
    for _ in range(20):
        rig.device.bind(rig.one.ring, 0)
        rig.device.lose_port(0)


# Restarts.


@pytest.mark.one_slice
@pytest.mark.parks
@pytest.mark.migrates
@pytest.mark.asleep
def test_a_restart_ends_all_that_is_queued_or_outstanding_once(rig: Rig) -> None:
    session = rig.one.open()
    handle = rig.one.run(c.Alloc(0, 1, 600, session)).handle
    assert handle is not None
    tickets: list[Ticket] = [rig.far.read(handle, bytearray(600), park=True), rig.far.submit(c.Migrate(session))]
    rig.far.lookup(0, [1])
    tickets += [client.submit(c.Lookup(0, [1, 2, 3])) for client in (rig.one, rig.far, rig.two) for _ in range(3)]
    before = rig.device.completed.copy()
    rig.device.start()
    rig.settle()
    ended = [ticket.completion for ticket in tickets]
    assert [end.status for end in ended if end is not None] == [Status.UNAVAILABLE] * len(tickets)
    assert (rig.device.completed - before).total() == len(tickets)


def test_nothing_is_served_between_a_restart_and_its_configuration(rig: Rig) -> None:
    handle = store(rig.one, 1)
    rig.device.write("CONTROL", 2)
    assert rig.one.lookup(0, [1]).status is Status.UNAVAILABLE
    assert refused(rig.one, handle) is Status.UNAVAILABLE
    rig.device.start()
    assert rig.one.lookup(0, [1]).status is Status.MISS, "bound to nothing"
    assert rig.one.drop(0, 1) is Status.DENIED
    rig.configure()
    assert rig.one.lookup(0, [1]).status is Status.MISS


@pytest.mark.migrates
def test_pins_and_sessions_of_an_earlier_life_are_stale(rig: Rig) -> None:
    store(rig.one, 1)
    (pin,) = rig.one.lookup(0, [1], pin=True).pins
    session = rig.one.open()
    assert pin is not None
    rig.configure()
    assert rig.counters()["pins_used"] == rig.counters()["sessions_used"] == 0
    assert rig.one.unpin(pin) is Status.STALE
    assert rig.one.put(session, 0, 1, b"x").status is Status.STALE
    assert rig.one.run(c.CloseSession(session)).status is Status.STALE
    assert rig.one.run(c.Migrate(session)).status is Status.STALE


def renewed(rig: Rig) -> tuple[PinId, SessionId]:
    """A pin and a session of an earlier life, whose slots and generations are in use in this one."""
    names = []
    for _ in range(2):
        rig.configure()
        store(rig.one, 1)
        (pin,) = rig.one.lookup(0, [1], pin=True).pins
        assert pin is not None
        names.append((pin, rig.one.open()))
    old, new = names
    assert old == new, "the device gives the same again"
    return old


NAMING: dict[str, Callable[[PinId, SessionId], Command]] = {
    "UNPIN": lambda pin, session: c.Unpin(pin),
    "ALLOC": lambda pin, session: c.Alloc(0, 9, 600, session),
    "CLOSE_SESSION": lambda pin, session: c.CloseSession(session),
    "MIGRATE": lambda pin, session: c.Migrate(session),
    "ANSWER_FENCE": lambda pin, session: c.AnswerFence(session, 0),
}


@pytest.mark.migrates
@pytest.mark.parametrize("name", NAMING)
def test_what_an_earlier_life_has_given_touches_nothing_of_this_one(rig: Rig, name: str) -> None:
    command, before = NAMING[name](*renewed(rig)), rig.counters()
    client = rig.far if name == "MIGRATE" else rig.one
    assert client.run(command).status is Status.STALE
    assert rig.counters() == before, "the device has not seen it"
    assert rig.device.completed[command.opcode, Status.STALE] == 1


LIFE_MUTANTS: dict[str, tuple[Any, str, str, str]] = {
    "not compared": (Device, "_send", "outlived(command, self._life)", "False"),
    "not given to pins": (lives, "mark", "pin.life, pin.slice = life, slice_", "pass"),
    "not given to sessions": (lives, "session_of", "given.life, given.parts = life, parts", "given.parts = parts"),
    "not new with an epoch": (Device, "write", "if begins:", "if False:"),
}


@pytest.mark.parametrize("mutant", LIFE_MUTANTS)
def test_a_life_that_is_not_kept_is_found(monkeypatch: pytest.MonkeyPatch, mutant: str) -> None:
    owner, attribute, good, bad = LIFE_MUTANTS[mutant]
    monkeypatch.setattr(owner, attribute, mutate(getattr(owner, attribute), good, bad))
    monkeypatch.setattr(device_module, "mark", lives.mark)
    rig = Rig(Device(SpecificationTransport(PARAMS)))
    pin, session = renewed(rig)
    assert Status.OK in {rig.one.unpin(pin), rig.one.run(c.CloseSession(session)).status}


@pytest.mark.parametrize("held", ["a session", "pins"])
def test_what_a_with_block_held_over_a_restart_is_given_back_to_nobody(rig: Rig, held: str) -> None:
    store(rig.one, 1)
    with rig.one.session() if held == "a session" else rig.one.pinned(0, [1]):
        rig.configure()
        store(rig.one, 1)
        mine, (pin,) = rig.one.open(), rig.one.lookup(0, [1], pin=True).pins
    assert pin is not None and rig.one.unpin(pin) is Status.OK
    assert rig.one.run(c.CloseSession(mine)).status is Status.OK


def test_a_coroutine_gives_nothing_back_to_a_later_life(rig: Rig) -> None:
    async def held() -> None:
        one = AsyncClient(rig.device, rig.one.ring)
        async with one.session(), one.pinned(0, [1]):
            rig.configure()
            store(rig.one, 1)
            names.extend([rig.one.open(), *rig.one.lookup(0, [1], pin=True).pins])

    names: list[Any] = []
    store(rig.one, 1)
    asyncio.run(held())
    assert rig.one.run(c.CloseSession(names[0])).status is rig.one.unpin(names[1]) is Status.OK


@pytest.mark.parametrize("found_running", [False, True])
def test_an_epoch_is_not_started_twice(rig: Rig, found_running: bool) -> None:
    rig.device.start(77)
    device = Device(rig.device.transport) if found_running else rig.device
    if not found_running:
        rig.configure()
    with pytest.raises(InputError, match="epoch = 77, expected one that the slice has not had yet"):
        device.start(77)
    rig.configure()
    store(rig.one, 1)


@pytest.mark.one_slice
def test_a_restart_clears_the_counters_and_all_frames(rig: Rig) -> None:
    for key in range(5):
        store(rig.one, key)
    rig.device.start()
    counters = rig.counters()
    assert counters["frames_free"] == FRAMES
    assert not any(counters[f"status_{status.name.lower()}"] for status in Status if status is not Status.OK)


# Counters.


@pytest.mark.one_slice
@pytest.mark.migrates
def test_counters_and_completions_agree(connect: Connect, seed: int) -> None:
    rig = Rig(Device(connect(PARAMS, seed % (1 << 31))))
    before, counted = rig.device.completed.copy(), rig.counters()
    tickets = []
    for key in range(4):
        store(rig.one, key)
    for client in (rig.one, rig.far, rig.two, rig.public):
        handle = Handle(0, 0, 0, 1, 1)
        tickets += [client.submit(command) for command in kinds(rig, handle, SessionId(3, 0))]
    rig.device.reset(rig.public.ring)
    tickets += [rig.one.submit(c.Lookup(9, [1])), rig.one.submit(c.Lookup(0, [1], LookupMode.BITMAP))]
    rig.settle()
    completed = rig.device.completed - before
    assert all(ticket.completion is not None for ticket in tickets)
    for status in Status:
        name = f"status_{status.name.lower()}"
        mine = sum(number for (_, ended), number in completed.items() if ended is status)
        assert rig.counters()[name] - counted[name] == mine, name
    assert completed[Opcode.LOOKUP, Status.UNAVAILABLE] == 1
    assert rig.counters()["evictions"] == 0


def test_rings_are_those_of_all_ports(rig: Rig) -> None:
    assert rig.device.rings == [RingId(0, 0), RingId(0, 1), RingId(1, 0), RingId(1, 1)]
