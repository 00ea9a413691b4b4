"""Two tenants with the same keys: what one does is nothing to the other, byte by byte."""

from dataclasses import dataclass
from typing import Literal

import pytest
from driverbench import Rig, store
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hw.params import commands as c
from hw.params.protocol import Status
from sw.driver import CommandFailed


@dataclass(frozen=True)
class Act:
    """One tenant does one thing with one key."""

    tenant: int
    what: Literal["put", "get", "drop", "pin"]
    key: int
    nonce: int


ACTS = st.lists(
    st.builds(
        Act,
        tenant=st.integers(0, 2),
        what=st.sampled_from(["put", "get", "drop", "pin"]),
        key=st.integers(1, 2),
        nonce=st.integers(1, 1 << 32),
    ),
    max_size=30,
)


def content(act: Act) -> bytes:
    """Bytes that no other tenant, key or store has, all of one length."""
    return f"{act.tenant}/{act.key}/{act.nonce:010}/".encode() * 50


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ACTS)
def test_every_tenant_gets_its_own_bytes_or_what_is_public_and_may_be_read(rig: Rig, acts: list[Act]) -> None:
    rig.configure()
    clients = (rig.one, rig.two, rig.public)
    sessions = [client.open() for client in clients]
    stored: dict[tuple[int, int], bytes] = {}
    for act in acts:
        client, name = clients[act.tenant], (act.tenant, act.key)
        visible = stored.get(name) or (stored.get((2, act.key)) if act.tenant == 0 else None)
        if act.what == "put":
            put = client.put(sessions[act.tenant], 0, act.key, content(act))
            assert put.status is (Status.EXISTS if name in stored else Status.GRANTED)
            stored.setdefault(name, content(act))
        elif act.what == "drop":
            assert client.drop(0, act.key) is (Status.OK if name in stored else Status.MISS)
            stored.pop(name, None)
        else:
            found = client.lookup(0, [act.key], pin=act.what == "pin")
            assert found.status is (Status.MISS if visible is None else Status.HIT)
            if visible is not None and found.handles[0] is not None:
                assert bytes(client.get(found.handles[0], length=len(visible))) == visible
            for pin in found.pins:
                if pin is not None:
                    assert client.unpin(pin) is Status.OK
    assert rig.counters()["pins_used"] == 0
    assert rig.counters()["frames_sealed"] == len(stored)


def test_a_handle_gives_a_stranger_nothing(rig: Rig) -> None:
    handle = store(rig.one, 1)
    session = rig.one.open()
    writing = rig.one.run(c.Alloc(0, 2, 600, session)).handle
    assert writing is not None
    out = bytearray(b"\xaa" * 600)
    for each in (handle, writing):
        with pytest.raises(CommandFailed) as caught:
            rig.two.get(each, out)
        assert caught.value.status is Status.DENIED
        for command in (c.Write(each, 0, b"x"), c.Seal(each, 1, 0), c.Abort(each)):
            assert rig.two.run(command).status is Status.DENIED
    assert out == b"\xaa" * 600
    assert rig.two.lookup(0, [1, 2]).status is Status.MISS
    assert rig.one.lookup(0, [1, 2]).statuses == [Status.HIT, Status.PENDING]


def test_what_is_public_is_read_by_those_who_have_it_in_their_mask_and_dropped_by_none_of_them(rig: Rig) -> None:
    handle = store(rig.public, 1, b"public" * 100)
    with rig.one.pinned(0, [1]) as found:
        assert found.handles == [handle]
        assert bytes(rig.far.get(handle, length=600)) == b"public" * 100
    assert rig.two.lookup(0, [1]).status is Status.MISS
    with pytest.raises(CommandFailed) as caught:
        rig.two.get(handle, length=600)
    assert caught.value.status is Status.DENIED
    assert rig.one.drop(0, 1) is Status.MISS
    assert rig.public.lookup(0, [1]).status is Status.HIT


def test_the_own_block_comes_before_the_public_one(rig: Rig) -> None:
    shared = store(rig.public, 1, b"public" * 100)
    own = store(rig.one, 1, b"my own" * 100)
    assert rig.far.lookup(0, [1]).handles == [own]
    rig.one.drop(0, 1)
    assert rig.far.lookup(0, [1]).handles == [shared]


def test_what_is_no_longer_public_is_closed_to_pins_and_handles(rig: Rig) -> None:
    handle = store(rig.public, 1)
    with rig.one.pinned(0, [1]) as found:
        assert found.status is Status.HIT
        rig.device.set_partition(2, quota=8, public=False)
        with pytest.raises(CommandFailed) as caught:
            rig.one.get(handle, length=600)
        assert caught.value.status is Status.DENIED
    assert rig.counters()["pins_used"] == 0


def test_the_death_of_one_partition_is_nothing_to_another(rig: Rig) -> None:
    for client in (rig.one, rig.two):
        store(client, 1)
    rig.device.drop_partition(0)
    assert rig.one.lookup(0, [1]).status is Status.MISS
    assert rig.two.lookup(0, [1]).status is Status.HIT
