"""The messages of a port: whole, in order, and when some were lost, said so."""

from collections import deque
from random import Random
from typing import Any

import pytest
from amaranth.sim import SimulatorContext

from hw.params import records
from hw.params.params import Params
from hw.params.sections import LinkParams, MemoryParams
from hw.rtl.fabric.layouts import MESSAGE_BYTES
from hw.rtl.node.port.messages import Messages
from hw.tb.mutate import mutate
from hw.tb.scoreboard import CheckError
from hw.tb.slice.messages import Told
from tests.hw.simulate import Restart, simulate

CYCLES = 3_000
SEEDS = (0, 1)


def play(beat_bytes: int, seed: int) -> int:
    """Tell a port things at random, while its link stops now and then; return how many were lost. Raises CheckError."""
    params = Params(memory=MemoryParams(beat_bytes=beat_bytes), link=LinkParams(messages=3))
    dut, rng = Messages(params), Random(seed)
    flags = 8 * records.MESSAGE.offsets["flags"]
    counts = []

    async def bench(ctx: SimulatorContext, restart: Restart) -> None:
        expected: deque[bytes] = deque()
        lost, missed = 0, False
        packet = b""
        flit = dut.flits.payload
        for cycle in range(CYCLES):
            if cycle % 1000 == 999:
                await restart(ctx)
                expected.clear()
                missed, packet = False, b""
            valid, unknown = rng.random() < 0.3, rng.random() < 0.1
            ready = rng.random() < (0.9, 0.1)[cycle // 100 % 2]
            message = rng.getrandbits(8 * MESSAGE_BYTES) & ~(records.LOST << flags)
            ctx.set(dut.notices.valid, valid)
            ctx.set(dut.notices.payload.lost, unknown)
            ctx.set(dut.notices.payload.message.as_value(), message)
            ctx.set(dut.flits.ready, ready)
            room = len(expected) < params.link.messages
            if ready and ctx.get(dut.flits.valid):
                packet += ctx.get(flit.data).to_bytes(beat_bytes, "little")[: ctx.get(flit.count)]
                if ctx.get(flit.last):
                    wanted = expected.popleft() if expected else None
                    if packet != wanted:
                        raise CheckError(f"a packet {packet.hex()}, expected {wanted and wanted.hex()}")
                    packet = b""
            if valid:
                if room and not unknown:
                    word = message | missed * records.LOST << flags
                    expected.append(word.to_bytes(MESSAGE_BYTES, "little"))
                missed = unknown or not room
                lost += missed
            await ctx.tick()
        counts.append(lost)

    simulate(dut, bench)
    return counts[0]


@pytest.mark.parametrize("beat_bytes", [16, 32, 64, 128])
def test_messages_are_whole_in_order_and_lost_ones_are_said_to_be(beat_bytes: int, seed: int) -> None:
    print(f"seed {seed}")
    assert play(beat_bytes, seed) > 100


MUTANTS = {
    "LOST not set": ("flags.lost | missed", "flags.lost"),
    "LOST for good": ("missed.eq(notice.lost | ~queue.i.ready)", "missed.eq(missed | notice.lost | ~queue.i.ready)"),
    "LOST only when full": ("missed.eq(notice.lost | ~queue.i.ready)", "missed.eq(~queue.i.ready)"),
    "told without a key": ("self.notices.valid & ~notice.lost", "self.notices.valid"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "Messages", mutate(Messages, *MUTANTS[name]))
    with pytest.raises(CheckError):
        play(16, 0)


A, B, C, D = ({"key": key} for key in range(4))

GOOD: dict[str, tuple[list[Any], list[Any]]] = {
    "all": ([A, B, C], [(False, A), (False, B), (False, C)]),
    "a gap": ([A, B, C, D], [(False, A), (True, C), (False, D)]),
    "a gap between equals": ([A, B, A, C, A, D], [(False, A), (True, A), (False, D)]),
    "a gap in the end": ([A, B, C], [(False, A), (False, B)]),
}
BAD: dict[str, tuple[list[Any], list[Any]]] = {
    "twice": ([A, B], [(False, A), (False, A), (False, B)]),
    "too many": ([A], [(False, A), (False, B)]),
    "another": ([A, B], [(False, A), (False, C)]),
    "the order": ([A, B], [(False, B), (False, A)]),
    "a gap without LOST": ([A, B, C], [(False, A), (False, C)]),
    "LOST without a gap": ([A, B, C], [(False, A), (True, B), (False, C)]),
    "never": ([A, B, C], [(False, A)]),
}


@pytest.mark.parametrize("name", GOOD)
def test_what_a_port_may_be_told(name: str) -> None:
    told = Told(*GOOD[name])
    told.compare(room=2)
    assert told.lost == len(told.owed) - len(told.given)


@pytest.mark.parametrize("name", BAD)
def test_what_a_port_may_not_be_told(name: str) -> None:
    with pytest.raises(CheckError):
        Told(*BAD[name]).compare(room=2)
