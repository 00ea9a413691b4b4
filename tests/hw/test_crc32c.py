"""The segment CRC32C unit: its algebra, its netlist, its bench, and the mutants that the bench must find."""

from collections.abc import Callable
from random import Random

import google_crc32c
import pytest
from amaranth.sim import Simulator
from hypothesis import given
from hypothesis import strategies as st

from hw.params import crc32c
from hw.rtl.emit import emit
from hw.rtl.transform import Crc32c
from hw.tb.mutate import mutate
from hw.tb.runner import Run
from hw.tb.scoreboard import CheckError
from hw.tb.structure import combinational_inputs, lut4_levels
from tests.everyday import everyday

BENCH = "hw.tb.crc32c.bench"


@given(st.binary(min_size=1, max_size=200))
def test_matrices_give_the_crc(message: bytes) -> None:
    state = crc32c.apply(crc32c.zeros(len(message)), crc32c.ONES)
    state ^= crc32c.apply(crc32c.data(len(message)), int.from_bytes(message, "little"))
    assert state ^ crc32c.ONES == google_crc32c.value(message)


@given(st.binary(max_size=100), st.binary(max_size=10_000))
def test_zeros_join_neighbours(left: bytes, right: bytes) -> None:
    joined = crc32c.apply(crc32c.zeros(len(right)), google_crc32c.value(left)) ^ google_crc32c.value(right)
    assert joined == google_crc32c.value(left + right)


@given(st.integers(-300, 300), st.integers(0, crc32c.ONES))
def test_zeros_can_be_taken_back(count: int, state: int) -> None:
    assert crc32c.apply(crc32c.zeros(-count), crc32c.apply(crc32c.zeros(count), state)) == state


@pytest.mark.parametrize("beat_bytes", [1, 8])
def test_segments_in_the_amaranth_simulator(beat_bytes: int, seed: int) -> None:
    dut = Crc32c(beat_bytes=beat_bytes)
    rng = Random(seed)
    segments = [rng.randbytes(rng.randint(1, 4 * beat_bytes)) for _ in range(20)]

    async def send(ctx) -> None:
        for segment in segments:
            for start in range(0, len(segment), beat_bytes):
                beat = segment[start : start + beat_bytes]
                last = start + beat_bytes >= len(segment)
                payload = {"data": int.from_bytes(beat, "little"), "count": len(beat), "last": last}
                ctx.set(dut.beats.payload, payload)
                ctx.set(dut.beats.valid, 1)
                await ctx.tick().until(dut.beats.ready)
                ctx.set(dut.beats.valid, 0)

    async def receive(ctx) -> None:
        for segment in segments:
            await ctx.tick().repeat(rng.randint(0, 3) + 1)
            ctx.set(dut.crcs.ready, 1)
            (crc,) = await ctx.tick().sample(dut.crcs.payload).until(dut.crcs.valid)
            ctx.set(dut.crcs.ready, 0)
            assert crc == google_crc32c.value(segment)

    simulator = Simulator(dut)
    simulator.add_clock(1e-9)
    simulator.add_testbench(send, background=True)
    simulator.add_testbench(receive)
    simulator.run()


@pytest.mark.parametrize("outputs", ["*__valid", "*__payload"])
def test_outputs_are_registered(outputs: str) -> None:
    assert combinational_inputs(Crc32c(beat_bytes=4), outputs, "*") == []


@pytest.mark.parametrize("beat_bytes", [16, pytest.param(128, marks=pytest.mark.nightly)])
def test_logic_is_shallow(beat_bytes: int) -> None:
    assert lut4_levels(Crc32c(beat_bytes=beat_bytes)) <= 8


@pytest.mark.parametrize("beat_bytes", everyday([1, 4, 16, 64], 1, 16))
def test_bench(run_bench: Callable[..., None], beat_bytes: int) -> None:
    run_bench(Crc32c(beat_bytes=beat_bytes), "crc32c", BENCH, beat_bytes=beat_bytes)


@pytest.mark.nightly
@pytest.mark.parametrize("beat_bytes", [2, 8, 32, 128])
def test_bench_of_the_other_widths(run_bench: Callable[..., None], beat_bytes: int) -> None:
    run_bench(Crc32c(beat_bytes=beat_bytes), "crc32c", BENCH, beat_bytes=beat_bytes)


MUTANTS = {
    "wrong unwind matrix": ("crc32c.zeros(-1 << i)", "crc32c.zeros(-1 << (i or 1))", "last_beats"),
    "state kept between segments": ("after | fold_last.replicate(crc32c.WIDTH)", "after", "random_segments"),
    "padding not masked": ("padded.eq(beat.data &", "padded.eq(beat.data |", "last_beats"),
    "no final inversion": ("self.crcs.payload.eq(~crc)", "self.crcs.payload.eq(crc)", "fixed_patterns"),
    "state not reset": ("init=crc32c.ONES)", "init=crc32c.ONES, reset_less=True)", "reset_in_segment"),
    "CRC lost in a stall": ("advance.eq(~self.crcs.valid | self.crcs.ready)", "advance.eq(1)", "stall"),
    "one register too many": ("m.d.comb += [self.crcs.valid", "m.d.sync += [self.crcs.valid", "latency"),
}
"""Name to what is right, what is wrong, and a test that must find it."""


@pytest.mark.parametrize("name", everyday(MUTANTS, "padding not masked", "CRC lost in a stall"))
def test_bench_finds_mutant(name: str) -> None:
    good, bad, finder = MUTANTS[name]
    mutant = emit(mutate(Crc32c, good, bad)(beat_bytes=4), "crc32c")
    with pytest.raises(CheckError, match=f"tests did not pass: .*{finder}"):
        Run(emission=mutant, module=BENCH, settings={"beat_bytes": 4}, seed=0, node=name)()
