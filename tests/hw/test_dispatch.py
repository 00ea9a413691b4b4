"""Dispatch: nobody who may ask for the core is starved by somebody who always does."""

from collections import Counter

import pytest
from amaranth.sim import SimulatorContext

from hw.params import TINY
from hw.rtl.node import dispatch
from hw.rtl.node.dispatch import Dispatch
from hw.rtl.node.layouts import Kind
from hw.tb.mutate import mutate
from tests.hw.simulate import Restart, simulate

CYCLES = 60


def shares() -> Counter[str]:
    """Every source asks in every cycle; return how often each is taken."""
    dut = Dispatch(TINY)
    taken: Counter[str] = Counter()

    async def bench(ctx: SimulatorContext, _: Restart) -> None:
        sources = {f"loss {i}": each for i, each in enumerate(dut.losses)}
        sources |= {f"command {i}": each for i, each in enumerate(dut.commands)}
        for name, source in sources.items():
            ctx.set(source.valid, 1)
            if name.startswith("command"):
                ctx.set(source.payload.kind, Kind.OPEN_SESSION)
        ctx.set(dut.operations.ready, 1)
        for _ in range(CYCLES):
            taken.update(name for name, source in sources.items() if ctx.get(source.ready))
            await ctx.tick()

    simulate(dut, bench)
    return taken


def test_losses_and_commands_take_turns() -> None:
    taken = shares()
    assert {name: taken[name] for name in ("loss 0", "loss 1")} == {"loss 0": 15, "loss 1": 15}
    assert [taken[f"command {i}"] for i in range(3)] == [10, 10, 10]


MUTANTS = {
    "losses first": ("losses_turn.eq(0)", "losses_turn.eq(1)"),
    "commands first": ("losses_turn.eq(1),", "losses_turn.eq(0),"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "Dispatch", mutate(dispatch.Dispatch, *MUTANTS[name]))
    assert shares()["command 0" if name == "losses first" else "loss 0"] < 10
