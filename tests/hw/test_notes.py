"""What a requester tells the node unasked: every loss once, and that it is there when nothing else was sent."""

from collections import deque
from random import Random

import pytest
from amaranth.sim import SimulatorContext

from hw.params.params import Params
from hw.params.protocol import NoteKind
from hw.params.sections import LinkParams
from hw.rtl.gpu.notes import Notes
from hw.tb.mutate import mutate
from hw.tb.scoreboard import CheckError
from tests.hw.simulate import Restart, simulate

PARAMS = Params(link=LinkParams(heartbeat_cycles=12, silence_cycles=40, message_flits=2))
CYCLES = 2_000


def play(seed: int) -> int:  # noqa: PLR0915 (one cycle of everything around it)
    """Losses and other flits at random, credits late; return the heartbeats. Raises CheckError."""
    dut, rng = Notes(PARAMS), Random(seed)
    beats = 0

    async def bench(ctx: SimulatorContext, _: Restart) -> None:  # noqa: PLR0912 (likewise)
        nonlocal beats
        asked: deque[int] = deque()
        under_way: deque[tuple[int, bool]] = deque()
        credits, quiet, told, taken, beaten = PARAMS.link.message_flits, 0, 0, 0, -CYCLES
        spoken = False
        busy = 0.0
        for cycle in range(CYCLES):
            if cycle % 100 == 0:
                busy = rng.choice([0.0, 0.05, 0.3])
            if rng.random() < busy and len(asked) < 2:
                asked.append(rng.randrange(4))
            ctx.set(dut.losses.valid, bool(asked))
            if asked:
                ctx.set(dut.losses.payload, asked[0])
            other = rng.random() < busy
            ctx.set(dut.flits.ready, credits > 0 and not other)
            ctx.set(dut.spoken, spoken)
            credit = bool(under_way) and under_way[0][0] <= cycle
            ctx.set(dut.credit, credit)
            if credit:
                credits += 1
                _, loss = under_way.popleft()
                taken += loss
                if ctx.get(dut.loss_taken) != loss:
                    raise CheckError(f"a credit for a {'loss' if loss else 'heartbeat'} is taken for the other")
            sent = ctx.get(dut.flits.valid) and ctx.get(dut.flits.ready)
            if sent:
                credits -= 1
                loss = ctx.get(dut.flits.payload.data) & 0xFF == NoteKind.LOST
                under_way.append((cycle + rng.randint(2, 10), loss))
                if loss:
                    told += 1
                    if not asked or ctx.get(dut.flits.payload.ring) != asked[0]:
                        raise CheckError("a loss is told of another ring")
                else:
                    beats += 1
                    if cycle - beaten < PARAMS.link.heartbeat_cycles:
                        raise CheckError(f"a heartbeat {cycle - beaten} cycles behind another")
                    beaten = cycle
            if ctx.get(dut.losses.ready) and asked:
                asked.popleft()
                told -= 1
            if told:
                raise CheckError("a loss is told, but not taken, or the other way round")
            quiet = 0 if spoken or sent else quiet + 1
            if quiet > PARAMS.link.heartbeat_cycles + 12:
                raise CheckError(f"nothing is said for {quiet} cycles")
            spoken = bool(sent or other)
            await ctx.tick()
        if not taken:
            raise CheckError("no loss was taken")

    simulate(dut, bench)
    return beats


def test_losses_are_told_once_and_silence_is_broken(seed: int) -> None:
    print(f"seed {seed}")
    assert play(seed) > 20


MUTANTS = {
    "a heartbeat is taken for a loss": ("self.credit & untaken.o.payload", "self.credit"),
    "a heartbeat swallows a loss": ("flits.ready & ~beating", "flits.ready"),
    "nothing is said": ("m.d.sync += [beating.eq(~self.spoken), quiet.eq(0)]", "m.d.sync += quiet.eq(0)"),
    "a heartbeat a cycle": ("due = (quiet == link.heartbeat_cycles)", "due = (quiet == quiet)"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "Notes", mutate(Notes, *MUTANTS[name]))
    with pytest.raises(CheckError):
        for seed in range(4):
            play(seed)
