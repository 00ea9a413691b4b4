"""What the driver adds to a command: nothing for each key, and a profile that tells."""

import json
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from driverbench import Rig

from hw.params.commands import Lookup
from hw.params.protocol import HANDLE_WIDTHS, SLOT_WIDTHS, Handle, PinId, RingId, Status
from hw.params.records import COMPLETION, GIVEN, NAMED
from hw.tb.mutate import mutate
from scripts import cli
from scripts.benches.driver import LAYERS, PARAMS, calls_per_key
from sw.driver import SpecificationTransport, Transport, device
from sw.driver.transport import MmioTransport, outcomes
from sw.driver.transport.loopback import LoopbackBus

COUNTED: dict[str, Callable[[], Transport]] = {
    "specification": lambda: SpecificationTransport(PARAMS),
    "rings": lambda: MmioTransport(PARAMS, LoopbackBus(PARAMS)),
}


@pytest.mark.parametrize("name", COUNTED)
def test_a_key_costs_no_call_in_the_transport(name: str) -> None:
    assert calls_per_key(COUNTED[name]()) == 0


MUTANTS: dict[str, tuple[Any, str, str, str]] = {
    "specification": (SpecificationTransport, "poll", "scheduler.step()", "(lambda: scheduler.step())()"),
    "rings": (outcomes, "_made", "partial(tuple.__new__, kind)", "lambda values: tuple.__new__(kind, values)"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_call_for_each_key_is_found(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    owner, attribute, good, bad = MUTANTS[name]
    monkeypatch.setattr(owner, attribute, mutate(getattr(owner, attribute), good, bad))
    assert calls_per_key(COUNTED[name]()) >= 1


def test_results_are_those_of_one_by_one(seed: int) -> None:
    """Handles and pins with all bits set, with none, and at random."""
    print(f"seed {seed}")
    random = Random(seed)
    draws: list[Callable[[int], int]] = [lambda bits: 0, lambda bits: (1 << bits) - 1, random.getrandbits]
    names = [
        (Handle(*map(draw, HANDLE_WIDTHS)), PinId(*map(draw, SLOT_WIDTHS)))
        for draw in [*draws, *[random.getrandbits] * 50]
    ]
    records = b"".join(
        COMPLETION.pack(status=Status.HIT, flags=NAMED | GIVEN, handle=handle.pack(), slot=pin.pack())
        for handle, pin in names
    )
    fields = COMPLETION.unpack(COMPLETION.pack(status=Status.HIT, items=len(names)))
    found = outcomes.completed(RingId(0, 0), 1, Lookup(0, range(len(names))), fields, memoryview(records))
    assert list(zip(found.handles, found.pins, strict=True)) == names
    assert {type(each) for each in found.handles} == {Handle} and {type(each) for each in found.pins} == {PinId}
    assert all(type(part) is int for handle, pin in names for part in (*handle, *pin))


@pytest.mark.parametrize(("threads", "gives_way"), [(1, False), (2, True)])
def test_a_thread_that_is_alone_gives_way_to_nobody(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, threads: int, gives_way: bool
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(device, "sleep", slept.append)
    monkeypatch.setattr(device, "active_count", lambda: threads)
    rig.one.lookup(0, [1])
    assert bool(slept) == gives_way


def test_bench_driver_tells_shares_and_calls(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["bench", "driver", "--json", "--set", "turns=1"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["params_hash"] == PARAMS.hash
    asked = [figure for figure in report["figures"] if figure["target"] is not None]
    assert [(figure["value"], figure["ok"]) for figure in asked] == [(0, True)] * 2
    for name in ("lookup of 1 key", "lookup of 100 keys", "lookup of 1,000 keys", "put", "get"):
        shares = [figure["value"] for figure in report["figures"] if figure["name"] in {f"{name}: {x}" for x in LAYERS}]
        assert len(shares) == len(LAYERS) and sum(shares) == pytest.approx(100)
    assert cli.run(["bench", "driver", "--trace", "x.jsonl"]) == 2
    assert "takes no trace" in capsys.readouterr().err
