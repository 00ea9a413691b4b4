"""Rows: a burst lets another pass that does not need another row of the same bank; one at most, and none starves."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest
from amaranth import Module
from amaranth.sim import Simulator, SimulatorContext

from hw.params.params import Params
from hw.params.sections import MemoryParams, PoolParams, TableParams
from hw.rtl.node.data.rows import Rows, rows_of
from hw.tb.mutate import mutate
from tests.hw.simulate import Restart, simulate

PORTS = 3
PARAMS = Params(
    memory=MemoryParams(segment_bytes=512, channels=1, banks=4, row_bytes=4096),
    pools=(PoolParams(frame_bytes=4096, frames=64),),
    tables=TableParams(ports=PORTS),
)
ROW, BANKS = PARAMS.memory.row_bytes, PARAMS.memory.banks
FIRST, LATER, SAME, OTHER = 0, BANKS * ROW, 512, (BANKS + 1) * ROW
"""Addresses: the first one, of another row of its bank, of its row, and of another bank."""

Offers = Sequence[int | None]
"""The address that each port has, if it has one."""


def let_out(*steps: tuple[Offers, bool, int | None], params: Params = PARAMS) -> list[list[int]]:
    """Which ports may let a burst out: by what they have, and whether there is time; and which one does."""
    dut, found = Rows(params), []

    async def bench(ctx: SimulatorContext, _: Restart) -> None:
        for offers, patient, taken in steps:
            for address, offer in zip(dut.addresses, offers, strict=True):
                ctx.set(address, offer or 0)
            ctx.set(dut.asking, sum((offer is not None) << port for port, offer in enumerate(offers)))
            ctx.set(dut.patient, patient)
            ctx.set(dut.take, taken is not None)
            ctx.set(dut.chosen, taken or 0)
            may = ctx.get(dut.may)
            found.append([port for port in range(PORTS) if may >> port & 1])
            await ctx.tick()

    simulate(dut, bench)
    return found


def check_another_row_waits() -> None:
    assert let_out(((FIRST, None, None), False, 0), ((LATER, SAME, OTHER), False, None))[1] == [1, 2]


def check_patience() -> None:
    begin = (FIRST, None, None), False, 0
    assert let_out(begin, ((LATER, None, None), True, None), ((LATER, None, None), False, None))[1:] == [[], [0]]


def check_one_passes() -> None:
    """After it, the burst may go wherever it is; the one behind it is judged anew."""
    begin = (FIRST, None, None), False, 0
    passes = (LATER, FIRST + SAME, None), True, 1
    assert let_out(begin, passes, ((LATER, None, None), True, 0), ((FIRST, None, None), True, None))[1:] == [
        [1],
        [0],
        [],
    ]


def check_others_as_they_are() -> None:
    """Ports that ask for nothing may nothing; a burst that was not let out leaves no row open."""
    assert let_out(((FIRST, None, None), False, 0), ((None, None, OTHER), True, None))[1] == [2]
    idle = (FIRST, LATER, OTHER), False, None
    assert let_out(((OTHER, None, None), False, 0), idle, ((FIRST, LATER, OTHER), True, None))[2] == [0, 1, 2]


CHECKS = {
    "another_row_waits": check_another_row_waits,
    "patience": check_patience,
    "one_passes": check_one_passes,
    "others_as_they_are": check_others_as_they_are,
}


@pytest.mark.parametrize("name", CHECKS)
def test_rows(name: str) -> None:
    CHECKS[name]()


def test_no_port_starves(seed: int) -> None:
    """A burst lets one other pass, and then has its turn: in turn, that makes two of each other port at most."""
    print(f"seed {seed}; again: KVNODE_SEED={seed} .venv/bin/pytest tests/hw/test_data_rows.py", flush=True)
    random, dut = Random(seed), Rows(PARAMS)

    async def bench(ctx: SimulatorContext, _: Restart) -> None:
        offers, waited, last = [0] * PORTS, [0] * PORTS, 0
        ctx.set(dut.asking, (1 << PORTS) - 1)
        ctx.set(dut.take, 1)
        for _cycle in range(500):
            for address, offer in zip(dut.addresses, offers, strict=True):
                ctx.set(address, offer)
            may = ctx.get(dut.may)
            assert may, "all ask, and there is no time"
            last = next(port % PORTS for port in range(last + 1, last + 1 + PORTS) if may >> port % PORTS & 1)
            ctx.set(dut.chosen, last)
            await ctx.tick()
            waited = [0 if port == last else count + 1 for port, count in enumerate(waited)]
            assert max(waited) <= 2 * (PORTS - 1)
            offers[last] = random.randrange(4) * ROW + random.randrange(2) * LATER

    simulate(dut, bench)


@pytest.mark.parametrize("memory", [{"banks": 1}, {"row_bytes": 1 << 20}], ids=str)
def test_where_there_is_nothing_to_spare_all_may(memory: dict[str, int]) -> None:
    m = Module()
    rows = rows_of(m, replace(PARAMS, memory=replace(PARAMS.memory, **memory)))

    async def bench(ctx: SimulatorContext) -> None:
        ctx.set(rows.addresses[0], LATER)
        ctx.set(rows.asking, 0b101)
        ctx.set(rows.patient, 1)
        assert ctx.get(rows.may) == 0b101

    simulator = Simulator(m)
    simulator.add_testbench(bench)
    simulator.run()


MUTANTS = {
    "all may": ("better.eq(self.asking & ~clashes)", "better.eq(self.asking)", "another_row_waits"),
    "the same row waits too": ("& (one[high:] != other[high:])", "", "another_row_waits"),
    "other banks wait too": ("(one[low:high] == other[low:high]) &", "", "another_row_waits"),
    "no patience": ("better.any() | self.patient", "better.any()", "patience"),
    "patience for ever": ("better, self.asking))", "better, better))", "patience"),
    "all pass": ("& ~passed)", ")", "one_passes"),
    "who has passed once passes always": (" & ~(1 << self.chosen)", "", "one_passes"),
    "what is not let out counts": ("with m.If(self.take):", "with m.If(1):", "others_as_they_are"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    good, bad, check = MUTANTS[name]
    monkeypatch.setitem(globals(), "Rows", mutate(Rows, good, bad))
    with pytest.raises(AssertionError):
        CHECKS[check]()
