"""The administrator: every command of the registers ends once, whatever its opcode, whenever a restart comes."""

import pytest
from amaranth.sim import SimulatorContext

from hw.params import TINY
from hw.params.protocol import Opcode, Status
from hw.rtl.node import administrator
from hw.rtl.node.administrator import Administrator
from hw.tb.mutate import mutate
from tests.hw.simulate import Restart, simulate

ANSWER = 3
"""Cycles from an operation to its verdict."""


def administer(opcode: int, *, restart: int | None = None, slow: bool = False) -> list[Status]:
    """Ask for one command, with a restart in some cycle, of a core that is slow to take it; return all statuses."""
    dut = Administrator(TINY)
    statuses: list[Status] = []

    async def bench(ctx: SimulatorContext, _: Restart) -> None:
        ctx.set(dut.statuses.ready, 1)
        ctx.set(dut.commands.valid, 1)
        ctx.set(dut.commands.payload.opcode, opcode)
        due, malformed = None, 0
        for cycle in range(20):
            ctx.set(dut.restart, cycle == restart)
            ctx.set(dut.operations.ready, cycle >= (8 if slow else 1))
            answers = due == cycle and not (restart is not None and cycle > restart)
            ctx.set(dut.verdict_valid, answers)
            if answers:
                ctx.set(dut.verdict.status, Status.INVALID if malformed else Status.OK)
                ctx.set(dut.verdict.kind, opcode)
            if ctx.get(dut.operations.valid) and ctx.get(dut.operations.ready):
                due, malformed = cycle + ANSWER, ctx.get(dut.operations.payload.malformed)
            taken = ctx.get(dut.commands.ready)
            if ctx.get(dut.statuses.valid):
                statuses.append(Status(ctx.get(dut.statuses.payload)))
            await ctx.tick()
            if taken:
                ctx.set(dut.commands.valid, 0)

    simulate(dut, bench)
    return statuses


@pytest.mark.parametrize("opcode", range(32))
def test_every_opcode_ends_once(opcode: int) -> None:
    well = Opcode.BIND <= opcode < Opcode.SET_EPOCH and opcode != Opcode.SET_MODEL
    assert administer(opcode) == [Status.OK if well else Status.INVALID]


@pytest.mark.parametrize("slow", [False, True])
@pytest.mark.parametrize("restart", range(12))
def test_a_command_ends_once_around_a_restart(restart: int, slow: bool) -> None:
    (status,) = administer(Opcode.RETIRE, restart=restart, slow=slow)
    assert status is (Status.OK if restart >= (8 if slow else 1) + ANSWER else Status.UNAVAILABLE)


MUTANTS = {
    "an epoch's verdict": (
        "ended = self.verdict_valid & owed",
        "ended = self.verdict_valid & (self.verdict.kind != 21)",
    ),
    "carried over": ("(self.restart & (owed | self.commands.valid))", "(self.restart & owed)"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "Administrator", mutate(administrator.Administrator, *MUTANTS[name]))
    ends = [len(administer(opcode)) for opcode in range(32)]
    ends += [len(administer(Opcode.RETIRE, restart=restart, slow=True)) for restart in range(8)]
    assert set(ends) != {1}
