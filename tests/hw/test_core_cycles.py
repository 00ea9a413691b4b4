"""How many cycles an operation takes, as docs/core.md says."""

from collections.abc import Awaitable, Callable

import google_crc32c
import pytest
from amaranth.sim import SimulatorContext

from hw.params import commands as c
from hw.params.protocol import SlotId, Status
from hw.rtl.node.core import Core, internal
from hw.rtl.node.layouts import Kind
from hw.tb.mutate import mutate
from tests.hw.simulate import Restart, simulate
from tests.hw.talk import PARAMS, Talk


async def by_handle(talk: Talk) -> None:
    """A READ."""
    handle = await talk.store(7)
    assert await talk.status(c.Read(handle, 0, 1)) is Status.OK


async def by_key(talk: Talk) -> None:
    """A LOOKUP of one key."""
    await talk.store(7)
    assert await talk.lookup(7) is Status.HIT


async def by_key_alone(talk: Talk) -> None:
    """A DROP."""
    await talk.store(7)
    assert await talk.status(c.Drop(0, 7)) is Status.OK


async def by_pin(talk: Talk) -> None:
    """An UNPIN."""
    await talk.store(7)
    pinned = await talk.ask(c.Lookup(0, [7], pin=True))
    assert await talk.status(c.Unpin(SlotId(**pinned["slot"]))) is Status.OK


async def by_session(talk: Talk) -> None:
    """A CLOSE_SESSION."""
    assert await talk.status(c.CloseSession(talk.session)) is Status.OK


async def of_a_free_frame(talk: Talk) -> None:
    """An ALLOC."""
    assert await talk.alloc(7)


async def waiting(talk: Talk) -> None:
    """The SEAL of the first frame waits for memory."""
    handle = await talk.alloc(7)
    assert handle is not None and handle.frame == 0
    assert await talk.status(c.Write(handle, 0, bytes(512))) is Status.OK
    (seal,) = talk.encode(c.Seal(handle, 512, google_crc32c.value(bytes(512))))
    await talk.operation(seal)
    await talk.tick(20)


async def behind_the_last_write(talk: Talk) -> None:
    """LANDED, and the SEAL that waits for it."""
    await waiting(talk)
    await talk.internal(Kind.LANDED, 0, count=1, ok=1)


CYCLES: dict[Callable[[Talk], Awaitable[None]], int] = {
    by_handle: 4,
    by_pin: 5,
    by_key: 9,
    by_key_alone: 8,
    by_session: 3,
    of_a_free_frame: 12,
    behind_the_last_write: 7,
}
"""From the operation that a story ends with to its last verdict."""


def tell(*stories: Callable[[Talk], Awaitable[None]]) -> list[int]:
    """Tell each story to a core that has been reset; return how long the last operation of each took."""
    dut = Core(PARAMS)
    taken = []

    async def bench(ctx: SimulatorContext, restart: Restart) -> None:
        for story in stories:
            await restart(ctx)
            talk = Talk(ctx, dut, [])
            await talk.begin()
            await story(talk)
            taken.append(talk.cycles[-1])

    simulate(dut, bench)
    return taken


def test_operations_take_as_many_cycles_as_the_docs_say() -> None:
    assert tell(*CYCLES) == list(CYCLES.values())


def look_behind_the_last_landed() -> None:
    """The seal follows directly: no LOOKUP comes between, whenever it is offered."""

    def at(offset: int) -> Callable[[Talk], Awaitable[None]]:
        async def story(talk: Talk) -> None:
            await waiting(talk)
            assert await talk.lookup(7) is Status.PENDING
            await talk.internal(Kind.LANDED, 0, wait=offset, count=1, ok=1)
            assert await talk.lookup(7) is Status.HIT

        return story

    tell(*map(at, range(10)))


def test_whatever_is_taken_behind_the_last_landed_finds_the_block() -> None:
    look_behind_the_last_landed()


def test_a_seal_that_lets_others_go_first_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(internal, "_landed", mutate(internal._landed, "e.follow(Kind.SEALED)", "pass"))
    with pytest.raises(AssertionError):
        look_behind_the_last_landed()
