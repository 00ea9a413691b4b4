"""Proofs: every property holds, every property can fail, and a failure becomes a test."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from amaranth import Module, Signal
from amaranth.hdl import Assert, Cover
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from hw.formal import Bounded, Induction, Method, Pdr, Property, Verdict, all_properties, prove
from hw.formal.properties.cam import CamTag
from hw.formal.properties.crc32c import CrcConservation, CrcHarness, CrcSerial, CrcStream, CrcValue
from hw.formal.properties.fabric import LinkConservation, LinkHarness, LinkOrder, LinkStream
from hw.formal.properties.replacement import FreeItems, Victims
from hw.formal.properties.slots import SlotNames
from hw.formal.trace import read_inputs, replay
from hw.params import crc32c
from hw.rtl.fabric import Receiver, Transmitter
from hw.rtl.node.cam import Cam
from hw.rtl.node.clock import Clock
from hw.rtl.node.free_queues import FreeQueues
from hw.rtl.node.slots import SlotTables
from hw.rtl.queue import Queue
from hw.rtl.transform import Crc32c
from hw.tb.mutate import mutate
from scripts import cli


class Counter(wiring.Component):
    """Counts to `limit` and claims to stay below `claim`."""

    step: In(1)

    def __init__(self, *, limit: int, claim: int, cover: int = 1):
        self.limit, self.claim, self.cover = limit, claim, cover
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        count = Signal(4)
        with m.If(self.step & (count != self.limit)):
            m.d.sync += count.eq(count + 1)
        m.d.comb += [Assert(count < self.claim), Cover(count == self.cover)]
        return m


def counter(method: Method, *, limit: int, claim: int, cover: int = 1) -> Property:
    return Property(
        name="counter.limit",
        shows="nothing",
        design=lambda: Counter(limit=limit, claim=claim, cover=cover),
        method=method,
        cover=12,
    )


LONG = ("cam.tag", "core_", "replacement.")


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.nightly] * n.startswith(LONG)) for n in all_properties()]
)
def test_property_holds(tmp_path: Path, name: str) -> None:
    outcome = prove(all_properties()[name], build=tmp_path)
    assert outcome.verdict is Verdict.PROVED
    assert outcome.covered


def test_verdicts(tmp_path: Path) -> None:
    def result(method: Method, claim: int, cover: int = 1) -> tuple[Verdict, bool]:
        outcome = prove(counter(method, limit=5, claim=claim, cover=cover), build=tmp_path)
        return outcome.verdict, outcome.covered

    assert result(Pdr(), 6) == (Verdict.PROVED, True)
    assert result(Pdr(), 6, cover=7) == (Verdict.PROVED, False)
    assert result(Induction(1), 5) == (Verdict.FAILED, False)
    assert result(Induction(1), 8) == (Verdict.UNDECIDED, False)
    assert result(Bounded(4, "a reason"), 5) == (Verdict.BOUNDED, True)
    assert result(Bounded(9, "a reason"), 5) == (Verdict.FAILED, False)


def test_a_proof_is_remembered_until_the_design_changes(tmp_path: Path) -> None:
    prop = counter(Pdr(), limit=5, claim=6)
    assert not prove(prop, build=tmp_path).cached
    assert prove(prop, build=tmp_path).cached
    assert not prove(prop, build=tmp_path, fresh=True).cached
    assert not prove(counter(Pdr(), limit=4, claim=6), build=tmp_path).cached


def test_nothing_but_a_reset_initialises(tmp_path: Path) -> None:
    class Forgotten(Counter):
        def elaborate(self, platform: object) -> Module:
            m = Module()
            kept = Signal(reset_less=True)
            m.d.comb += [Assert(~kept), Cover(self.step)]
            with m.If(self.step & kept):
                m.d.sync += kept.eq(1)
            return m

    prop = replace(counter(Pdr(), limit=5, claim=6), design=lambda: Forgotten(limit=5, claim=6))
    assert prove(prop, build=tmp_path).verdict is Verdict.FAILED


CRC_MUTANTS: dict[str, tuple[type[CrcHarness], str, str]] = {
    "an offer is dropped in a stall": (CrcStream, "advance.eq(~self.crcs.valid | self.crcs.ready)", "advance.eq(1)"),
    "an offer out of reset": (CrcStream, 'Signal(name=f"valid_{i}")', 'Signal(name=f"valid_{i}", init=1)'),
    "a CRC for every beat": (CrcConservation, "source = fold_valid & fold_last,", "source = fold_valid,"),
    "a CRC lost in a stall": (CrcConservation, "beats.ready.eq(advance)", "beats.ready.eq(1)"),
    "a CRC too late": (CrcConservation, "m.d.comb += [self.crcs.valid", "m.d.sync += [self.crcs.valid"),
    "a wrong unwind matrix": (CrcValue, "crc32c.zeros(-1 << i)", "crc32c.zeros(1 << i)"),
    "padding not masked": (CrcValue, "padded.eq(beat.data &", "padded.eq(beat.data |"),
    "state kept between segments": (CrcValue, "after | fold_last.replicate(crc32c.WIDTH)", "after"),
    "no final inversion": (CrcSerial, "self.crcs.payload.eq(~crc)", "self.crcs.payload.eq(crc)"),
    "a wrong matrix for the state": (CrcSerial, "crc32c.zeros(beat_bytes), state", "crc32c.zeros(2), state"),
}
"""Name to the design under proof that must fail, what is right and what is wrong."""
PROVED_BY = {CrcStream: "stream", CrcConservation: "conservation", CrcValue: "value", CrcSerial: "serial"}


SLOW = ("a wrong unwind matrix", "state kept between segments", "padding not masked", "no final inversion")


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.nightly] * (n in SLOW)) for n in CRC_MUTANTS])
def test_property_fails_on_mutant_of_the_crc_unit(tmp_path: Path, name: str) -> None:
    harness, good, bad = CRC_MUTANTS[name]
    unit = mutate(Crc32c, good, bad)

    def design() -> wiring.Component:
        return harness(beat_bytes=1 if harness is CrcSerial else 2, unit=unit)

    check_failure(tmp_path, f"crc32c.{PROVED_BY[harness]}", design)


CAM_MUTANTS = {
    "served before it is initialised": ("self.requests.ready.eq(ready)", "self.requests.ready.eq(1)"),
    "not initialised": ("sweeping.replicate(ways) | ", ""),
    "cleared too late": ("m.d.sync += [sweeping.eq(1), ready.eq(0)]", "m.d.sync += sweeping.eq(1)"),
    "an entry in both banks": ("Mux(place.bank == bank, way, 0)", "way"),
    "compared with the tag before": ("m.d.sync += tag.eq(access_entry.tag)", "m.d.comb += tag.eq(access_entry.tag)"),
    "a place of the LOOKUP after": ("_delayed(m, access_sets, 2)", "_delayed(m, access_sets, 1)"),
    "the entry of the request after": ("_delayed(m, place.way, 2)", "_delayed(m, place.way, 1)"),
}


POWER_UP = ("served before it is initialised", "not initialised", "cleared too late")
"""Mutants that need the memory's content at power-up to fail; the simulator's memories begin empty."""


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.nightly] * (n in POWER_UP)) for n in CAM_MUTANTS])
def test_property_fails_on_mutant_of_the_cam(tmp_path: Path, name: str) -> None:
    unit = mutate(Cam, *CAM_MUTANTS[name])
    check_failure(tmp_path, "cam.tag", lambda: CamTag(unit), replayed=name not in POWER_UP)


LINK_MUTANTS: dict[str, tuple[str, type[LinkHarness], type[wiring.Component], str, str]] = {
    "sent without a credit": ("conservation", LinkConservation, Transmitter, "& (count != 0)", ""),
    "a credit lost": (
        "conservation",
        LinkConservation,
        Transmitter,
        "count - sent + self",
        "count - sent + ~sent & self",
    ),
    "a credit too many": ("conservation", LinkConservation, Receiver, "output.valid & output.ready", "output.valid"),
    "one channel first": ("conservation", LinkConservation, Transmitter, "turn.eq(chosen)", "turn.eq(len(inputs) - 1)"),
    "an offer is withdrawn": (
        "stream",
        LinkStream,
        Queue,
        "valid.eq(held != 0)",
        "valid.eq((held != 0) & ~self.i.valid)",
    ),
    "a flit changes": ("order", LinkOrder, Queue, "data.eq(self.i.payload)", "data.eq(~self.i.payload.as_value())"),
}
"""Name to the property that must fail, the design under proof, the class with the bug, what is right and what wrong."""


@pytest.mark.parametrize("name", LINK_MUTANTS)
def test_property_fails_on_mutant_of_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    prop, harness, unit, good, bad = LINK_MUTANTS[name]
    mutant = mutate(unit, good, bad)
    if unit is Queue:
        monkeypatch.setattr("hw.rtl.fabric.receiver.Queue", mutant)
    ends = {"sender" if unit is Transmitter else "taker": mutant} if unit is not Queue else {}
    bounded = Bounded(12, "the bug is near, and abc's witness cannot be read back where a memory's content matters")
    check_failure(tmp_path, f"fabric.{prop}", lambda: harness(**ends), method=bounded)


PART_MUTANTS: dict[str, tuple[str, Callable[[Any], wiring.Component], type[wiring.Component], str, str]] = {
    "a name that was given before": (
        "slots.names",
        SlotNames,
        SlotTables,
        "released.generation.eq(self.generation + 1)",
        "released.generation.eq(self.generation)",
    ),
    "a FREE frame offered twice": (
        "replacement.free",
        FreeItems,
        FreeQueues,
        "Mux(popping, following, oldest[self.queue])",
        "oldest[self.queue]",
    ),
    "a victim not looked at again": (
        "replacement.victim",
        Victims,
        Clock,
        "with m.If(word.evictable.bit_select(bit, 1) & ~word.referenced.bit_select(bit, 1)):",
        "with m.If(~word.referenced.bit_select(bit, 1)):",
    ),
}
"""Name to the property that must fail, its design, the class with the bug, what is right and what is wrong."""


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.nightly] * (m[0] != "slots.names")) for n, m in PART_MUTANTS.items()]
)
def test_property_fails_on_mutant_of_a_part_of_the_core(tmp_path: Path, name: str) -> None:
    prop, design, unit, good, bad = PART_MUTANTS[name]
    mutant = mutate(unit, good, bad)
    check_failure(tmp_path, prop, lambda: design(mutant), replayed=False)


def check_failure(
    tmp_path: Path,
    name: str,
    design: Callable[[], wiring.Component],
    *,
    replayed: bool = True,
    method: Method | None = None,
) -> None:
    """The property fails, and so does the same claim in the simulator, in the same cycle."""
    prop = all_properties()[name]
    outcome = prove(replace(prop, design=design, method=method or prop.method), build=tmp_path)
    assert outcome.verdict is Verdict.FAILED
    assert outcome.trace
    if replayed:
        failing = design()
        inputs = read_inputs(outcome.trace, failing)
        assert outcome.detail in replay(failing, inputs)[len(inputs) - 1]


def test_inputs_that_break_a_rule_are_no_counterexample() -> None:
    quiet = {"rst": 0, "beats__valid": 0, "beats__payload": 0, "crcs__ready": 1}
    with pytest.raises(ValueError, match=r"cycle 1: the inputs break the rule at stream\.py"):
        replay(CrcStream(beat_bytes=2), [quiet | {"rst": 1}, quiet | {"beats__valid": 1}])


def test_matrices_are_the_definition_on_every_basis_vector() -> None:
    """With `crc32c.definition`, which proves it linear, they are the definition everywhere."""

    def definition(state: int, data: int, bits: int) -> int:
        for bit in range(bits):
            state = state >> 1 ^ (crc32c.POLYNOMIAL if (state ^ data >> bit) & 1 else 0)
        return state

    for beat_bytes in (1, 2, 4, 128):
        bits = 8 * beat_bytes
        assert crc32c.data(beat_bytes) == tuple(definition(0, 1 << bit, bits) for bit in range(bits))
        assert crc32c.zeros(beat_bytes) == tuple(definition(1 << bit, 0, bits) for bit in range(crc32c.WIDTH))
        for column, state in enumerate(crc32c.zeros(-beat_bytes)):
            assert definition(state, 0, bits) == 1 << column


def prove_on_command_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *properties: Property) -> Callable[..., int]:
    """A command line that knows only `properties`, and works in `tmp_path`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("hw.formal.registry.all_properties", lambda: {p.name: p for p in properties})
    return lambda *arguments: cli.run(["prove", *arguments])


def test_command_prints_one_line_a_property(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = replace(counter(Pdr(), limit=5, claim=6), name="counter.good")
    bounded = replace(counter(Bounded(4, "a reason"), limit=5, claim=5), name="counter.bounded")
    assert prove_on_command_line(monkeypatch, tmp_path, good, bounded)() == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("counter.good     proved (PDR, ")
    assert first.endswith(" s); cover reached")
    assert second.startswith("counter.bounded  bounded to 4 (a reason, ")


def test_command_fails_with_waves_and_the_command_that_repeats_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = counter(Pdr(), limit=5, claim=5)
    assert prove_on_command_line(monkeypatch, tmp_path, bad)("counter") == 1
    line = capsys.readouterr().out
    assert "FAILED: test_prove.py:" in line
    assert Path(line.split("waves: ")[1].split(";")[0]).exists()
    assert line.endswith("again: kvnode prove counter.limit\n")


def test_command_fails_when_a_cover_is_not_reached(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = counter(Pdr(), limit=5, claim=6, cover=7)
    assert prove_on_command_line(monkeypatch, tmp_path, empty)() == 1
    assert "COVER NOT REACHED within 12 cycles" in capsys.readouterr().out


def test_unknown_property_gets_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["prove", "crc32c.steam"]) == 2
    assert capsys.readouterr().err == "kvnode: no property 'crc32c.steam', did you mean 'crc32c.stream'?\n"


def test_list_says_what_each_property_shows(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["prove", "--list"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(all_properties())
