"""Which command begins next, of software and two engines, against a model."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from amaranth.sim import SimulatorContext

from hw.params.params import Params
from hw.params.protocol import EngineOpcode, Opcode, Status
from hw.params.sections import MemoryParams, RequesterParams
from hw.rtl.gpu.layouts import Owner
from hw.rtl.gpu.starter import Starter
from hw.tb.mutate import mutate
from hw.tb.scoreboard import CheckError
from tests.hw.simulate import Restart, simulate

PARAMS = Params(
    memory=MemoryParams(beat_bytes=16, segment_bytes=512),
    requester=RequesterParams(commands=4, prefetches=1, slots=1),
)
ENGINES = (Owner.PREFETCH, Owner.WRITE_BACK)
TASKS = {EngineOpcode.PREFETCH: 0, EngineOpcode.CANCEL: 0, EngineOpcode.PUT: 1, EngineOpcode.FLUSH: 1}


def expected(offers: list[Any], last: int, *, urgent: bool, free: bool, spare: bool) -> int | None:
    """Whose command begins: 0 is software, None is nobody's."""
    if offers[0] is not None:
        return 0 if free else None
    if not spare or (offers[1] is None and offers[2] is None):
        return None
    if offers[1] is not None and offers[2] is not None:
        return 2 if urgent else 3 - last
    return 1 if offers[1] is not None else 2


def run(seed: int, build: Callable[[Params], Starter] = Starter, *, cycles: int = 500) -> None:
    """CheckError if another command begins than should, or is not handed on as it should."""
    rng, dut = Random(seed), build(PARAMS)

    async def bench(ctx: SimulatorContext, _: Restart) -> None:  # noqa: PLR0912 (a model)
        sources = [dut.software, *dut.own]
        outputs = [dut.sends, *dut.tasks]
        offers: list[int | None] = [None] * 3
        held: list[int | None] = [None] * 3  # tags that wait at each output
        last, number = 1, 0
        for _ in range(cycles):
            for i, source in enumerate(sources):
                if offers[i] is None and rng.random() < 0.5:
                    number += 1
                    offers[i] = rng.choice([Opcode.READ, *TASKS]) if i == 0 else Opcode.READ
                    ctx.set(source.payload.owner, ENGINES[i - 1] if i else Owner.SOFTWARE)
                    ctx.set(source.payload.descriptor, {"opcode": offers[i], "length": 512, "tag": number & 0xFFFF})
                ctx.set(source.valid, offers[i] is not None)
            spare = rng.random() < 0.6
            free, urgent, crowded = spare or rng.random() < 0.5, rng.random() < 0.3, rng.random() < 0.3
            away = rng.random() < 0.2
            given = {"free": free, "spare": spare, "urgent": urgent, "crowded": crowded, "away": away}
            for name, value in given.items():
                ctx.set(getattr(dut, name), value)
            ctx.set(dut.next_tag, number & 3)
            ready = [rng.random() < 0.5 for _ in outputs]
            for i, output in enumerate(outputs):
                ctx.set(output.ready, ready[i])
                tag = ctx.get(output.payload.descriptor.tag) if ctx.get(output.valid) else None
                if tag != held[i]:
                    raise CheckError(f"output {i} has {tag}, expected {held[i]}")
            room = all(ready[i] or held[i] is None for i in range(3))
            begins = expected(offers, last, urgent=urgent, free=free, spare=spare) if room else None
            if ctx.get(dut.allocate) != (begins is not None):
                raise CheckError(f"a command begins, or none, of {offers}, expected {begins}")
            held = [None if ready[i] else held[i] for i in range(3)]
            if begins is not None:
                opcode, task = offers[begins], offers[begins] in TASKS
                if ctx.get(dut.allocated.owner) != (ENGINES[begins - 1] if begins else Owner.SOFTWARE):
                    raise CheckError(f"the command of another begins than of {begins}")
                refusal = Status.UNAVAILABLE if away else Status.NO_SPACE if task and crowded else None
                status = ctx.get(dut.allocated.refusal) if ctx.get(dut.allocated.refused) else None
                if status != refusal or ctx.get(dut.allocated.task) != task:
                    raise CheckError(f"{opcode} is refused {status}, expected {refusal}")
                if ctx.get(dut.issued_valid) != (not task and not away):
                    raise CheckError(f"{opcode} is issued, or not")
                tag = ctx.get(sources[begins].payload.descriptor.tag)
                if refusal is None:
                    held[1 + TASKS[EngineOpcode(opcode)] if task else 0] = tag
                if begins:
                    last = begins
                offers[begins] = None
            await ctx.tick()

    simulate(dut, bench)


def test_software_begins_first_and_engines_take_turns(seed: int) -> None:
    print(f"seed {seed}")
    run(seed)


MUTANTS = {
    "engines take the last context": ("~software.valid & self.spare & free", "~software.valid & self.free & free"),
    "engines come before software": ("~software.valid & self.spare & free", "self.spare & free"),
    "what is urgent waits": ("self.urgent | ~last", "~last"),
    "one engine comes first": ("self.urgent | ~last", "self.urgent"),
    "tasks take all contexts": ("is_task & self.crowded & ~judged.refused", "0"),
    "what comes while the node is away begins": ("self.away & ~judged.refused", "0"),
    "a task is sent to the node": ("~allocated.refused & ~is_task)", "~allocated.refused)"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_found(name: str) -> None:
    mutant = mutate(Starter, *MUTANTS[name])
    with pytest.raises(CheckError):
        for seed in range(4):
            run(seed, mutant)
