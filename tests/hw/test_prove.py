"""Proofs: every property holds, and the prover says what it has found."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from amaranth import Module, Signal
from amaranth.hdl import Assert, Cover
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from hw.formal import Bounded, Induction, Method, Pdr, Property, Verdict, all_properties, prove
from hw.formal.properties.crc32c import CrcStream
from hw.formal.trace import replay
from hw.params import crc32c
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


LONG = ("cam.tag", "core_", "link.credits", "link.order", "prefetch.", "replacement.")


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


@pytest.mark.parametrize("left", ["", "x", '{"name": "counter.li', "[]"])
def test_a_record_that_is_not_whole_counts_for_nothing(tmp_path: Path, left: str) -> None:
    prop = counter(Pdr(), limit=5, claim=6)
    assert prove(prop, build=tmp_path).good
    (record,) = (tmp_path / prop.name).glob("*.json")
    record.write_text(left)
    again = prove(prop, build=tmp_path)
    assert again.good
    assert not again.cached
    assert prove(prop, build=tmp_path).cached


def test_who_wants_the_same_proof_at_the_same_time_waits_for_it(tmp_path: Path) -> None:
    prop = counter(Pdr(), limit=5, claim=6)
    with ThreadPoolExecutor(3) as pool:
        outcomes = list(pool.map(lambda _: prove(prop, build=tmp_path), range(3)))
    assert all(outcome.good for outcome in outcomes)
    assert [outcome.cached for outcome in outcomes].count(False) == 1


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
