"""The ports of one requester at several slices: lost together, and back together when all and the requester are."""

from random import Random
from typing import Any

import pytest
from amaranth import Module, ResetInserter, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import SimulatorContext

from hw.params import load_params
from hw.params.params import Params
from hw.rtl.node.bond import Bond
from hw.rtl.node.port import Port
from hw.rtl.node.port.loss import Loss
from hw.tb.mutate import mutate
from hw.tb.scoreboard import CheckError
from tests.hw.simulate import Restart, simulate

PARAMS = load_params(None, ["preset=TINY", "node.slices=4"])
SLICES = PARAMS.node.slices
QUICK = load_params(None, ["preset=TINY", "link.heartbeat_cycles=8", "link.silence_cycles=40"])
CYCLES = 1_500
LATE = 3
"""Cycles that it takes to come back."""

BACK = 60
"""Cycles in which everything comes back, when nothing happens any more."""


class Tied(wiring.Component):
    """A bond, and of each slice what loses a port; `reset` is the end of a restart."""

    def __init__(self, params: Params):
        self._params = params
        flags_in = ("silent", "resting", "restarting", "reset")
        super().__init__(
            {name: In(SLICES) for name in flags_in}
            | {"renewed": In(1), "held": Out(1), "down": Out(SLICES), "rested": Out(SLICES), "lost": Out(SLICES)}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.bond = bond = Bond(self._params)
        m.d.comb += [
            bond.down.eq(self.down),
            bond.rested.eq(self.rested),
            bond.restarting.eq(self.restarting),
            bond.renewed.eq(self.renewed),
            self.held.eq(bond.held),
        ]
        for i in range(SLICES):
            loss, reset = Loss(self._params), Signal(name=f"reset_{i}")
            made: Any = ResetInserter(reset)(loss)
            m.submodules[f"loss_{i}"] = made
            m.d.comb += [
                reset.eq(self.reset[i]),
                loss.silent.eq(self.silent[i] | bond.lose[i]),
                loss.hold.eq(self.restarting[i]),
                loss.renewed.eq(bond.ends),
                loss.resting.eq(self.resting[i]),
                loss.losses.ready.eq(1),
                self.down[i].eq(loss.down),
                self.rested[i].eq(loss.renew),
                self.lost[i].eq(loss.lost),
            ]
        return m


def play(seed: int) -> int:  # noqa: PLR0915 (one cycle of everything around it)
    """Silence, restarts and requesters that are reset, at random; return how often the port came back."""
    dut, rng = Tied(PARAMS), Random(seed)
    came_back = 0

    async def bench(ctx: SimulatorContext, _: Restart) -> None:  # noqa: PLR0912 (one cycle of everything around it)
        nonlocal came_back
        restarting: dict[int, tuple[int, int]] = {}
        renewed = False
        was_down = reset_before = held_for = 0
        was_held = renewed_since = began = False
        for cycle in range(CYCLES):
            calm = cycle % 300 >= 300 - BACK
            restarting = {i: span for i, span in restarting.items() if span[1] >= cycle}
            if not calm and rng.random() < 0.02:
                restarting.setdefault(rng.randrange(SLICES), (cycle, cycle + rng.randint(1, 40)))
            reset = sum(1 << i for i, span in restarting.items() if span[1] == cycle)
            silent = 1 << rng.randrange(SLICES) if not calm and rng.random() < 0.01 else 0
            ctx.set(dut.silent, silent)
            ctx.set(dut.restarting, sum(1 << i for i in restarting))
            ctx.set(dut.reset, reset)
            ctx.set(dut.resting, (1 << SLICES) - 1 if calm else rng.getrandbits(SLICES) & rng.getrandbits(SLICES))
            held = bool(ctx.get(dut.held))
            if renewed and was_held and not held:
                renewed = False
            elif held:
                renewed = renewed or calm or rng.random() < 0.1
            elif began:
                raise CheckError("the requester's end is reset, and no port is lost")
            elif not calm and rng.random() < 0.01:
                renewed = True
            began = renewed and not held
            ctx.set(dut.renewed, renewed)
            down, lost = ctx.get(dut.down), ctx.get(dut.lost)
            away = down | sum(1 << i for i in restarting)
            if held is not bool(away):
                raise CheckError("a link is held in reset, and no slice needs it, or the other way round")
            here = (1 << SLICES) - 1 & ~away
            if was_down & ~down & ~reset_before:
                came_back += 1
                if down:
                    raise CheckError(f"of slices {was_down:04b} some stay down: {down:04b}")
                if any(cycle - begin > LATE for begin, _ in restarting.values()):
                    raise CheckError("the port is back, and a slice restarts")
                if not renewed_since:
                    raise CheckError("the port is back, and the requester has not been reset")
            if held and here and was_held and here != lost & here:
                raise CheckError(f"slices {here:04b} go on while others are away, {lost:04b} are lost")
            renewed_since = held and (renewed_since or renewed)
            held_for = held_for + 1 if held and calm else 0
            if held_for >= BACK - 1:
                raise CheckError(f"the port is not back after {held_for} cycles")
            was_down, was_held, reset_before = down, held, reset
            await ctx.tick()

    simulate(dut, bench)
    return came_back


def test_ports_are_lost_and_come_back_together(seed: int) -> None:
    print(f"seed {seed}; again: KVNODE_SEED={seed} .venv/bin/pytest tests/hw/test_bond.py")
    assert play(seed) > 10


MUTANTS = {
    "nobody else is told": ("begins | (away & ~(1 << i)).any()", "begins"),
    "the requester's end is reset, and nobody is told": (
        "begins | (away & ~(1 << i)).any()",
        "(away & ~(1 << i)).any()",
    ),
    "a slice comes back alone": ("self.rested.all()", "self.rested.any()"),
    "slices come back while one restarts": (" & ~self.restarting.any()", ""),
    "nobody waits for the requester": ("self.ends.eq(self.renewed & ", "self.ends.eq("),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "Bond", mutate(Bond, *MUTANTS[name]))
    with pytest.raises(CheckError):
        for seed in range(4):
            play(seed)


def lost_after(cycles: int, *, heard: int, lose: int) -> bool:
    """Whether a port is lost to which a flit has come, and then nothing for so many cycles."""
    dut = Port(QUICK)

    async def bench(ctx: SimulatorContext, _: Restart) -> None:
        ctx.set(dut.losses.ready, 1)
        ctx.set(dut.link.to_node.valid, 1)
        ctx.set(dut.link.to_node.flit.channel, 3)
        ctx.set(dut.link.to_node.flit.data, 1)
        ctx.set(dut.link.to_node.flit.last, 1)
        await ctx.tick()
        ctx.set(dut.link.to_node.valid, 0)
        ctx.set(dut.heard, heard)
        ctx.set(dut.lose, lose)
        await ctx.tick().repeat(cycles)
        down.append(bool(ctx.get(dut.down)))

    down: list[bool] = []
    simulate(dut, bench)
    return down[0]


def test_a_port_is_lost_by_silence_unless_its_requester_was_heard_elsewhere() -> None:
    silence = QUICK.link.silence_cycles + 4
    assert lost_after(silence, heard=0, lose=0)
    assert not lost_after(silence, heard=1, lose=0)
    assert lost_after(2, heard=1, lose=1)
