"""The rules that the models of the compiled harness check: a puppet breaks each once."""

from functools import cache
from pathlib import Path

import pytest

from hw.params.params import TINY
from hw.rtl.emit import Emission, emit
from hw.rtl.node.slice import Slice
from hw.tb.harness import Harness, HarnessError, Links, Memory
from hw.tb.harness.puppet import Drives, Puppet
from hw.tb.harness.simulation import STAMP_BYTES

BEAT, SEGMENT = TINY.memory.beat_bytes, TINY.memory.segment_bytes
SIZE = BEAT.bit_length() - 1
ALL = (1 << BEAT) - 1
UNWRITTEN = bytes([0xA5]) * BEAT
STALLED = Memory(address_willing=0, data_willing=0)


def memory(channel: str, **fields: int) -> Drives:
    """An offer on a channel of memory 1."""
    return {f"memory.1.{channel}{name}": value for name, value in ({"valid": 1} | fields).items()}


def address(channel: str, at: int = 0, **fields: int) -> Drives:
    """An offer of an address, of one beat unless fields say otherwise."""
    return memory(channel, **{"addr": at, "size": SIZE, "burst": 1} | fields)


def beats(*data: int, last: int, **fields: int) -> list[Drives]:
    """Offers of write data, WLAST in the beat with that number."""
    return [memory("w", **{"data": d, "strb": ALL, "last": int(i == last)} | fields) for i, d in enumerate(data)]


def flit(channel: int) -> Drives:
    return {"links.0.from_node.valid": 1, "links.0.from_node.flit.channel": channel}


RESPONSE, MESSAGE = 1, 3
ROOM = TINY.link.message_flits

BROKEN: dict[str, tuple[list[Drives], str, Memory]] = {
    "aw_fell": ([address("aw"), {}], "memory 1: awvalid fell", STALLED),
    "aw_changed": ([address("aw"), address("aw", len=1)], "what aw offers changed", STALLED),
    "ar_fell": ([address("ar"), {}], "memory 1: arvalid fell", STALLED),
    "ar_changed": ([address("ar"), address("ar", SEGMENT)], "what ar offers changed", STALLED),
    "w_fell": ([*beats(1, last=0), {}], "memory 1: wvalid fell", STALLED),
    "w_changed": ([*beats(1, last=0), *beats(1 << 100, last=0)], "what w offers changed", STALLED),
    "w_strobes_changed": ([*beats(1, last=0), *beats(1, last=0, strb=1)], "what w offers changed", STALLED),
    "w_crc_changed": ([*beats(1, last=0), *beats(1, last=0, user=1 << 31)], "what w offers changed", STALLED),
    "last_early": ([address("aw", len=1), *beats(1, 2, last=0)], "WLAST is 1 in beat 0 of 2", Memory()),
    "last_late": ([address("aw"), *beats(1, 2, last=1)], "WLAST is 0 in beat 0 of 1", Memory()),
    "last_missing": ([*beats(1, last=1), address("aw")], "WLAST is 0 in beat 0 of 1", Memory()),
    "unaligned": ([address("aw", BEAT)], "aw burst of 1 beats at 0x10, ID 0, is not aligned", Memory()),
    "crosses": ([address("ar", 4096 - SEGMENT, len=63)], "crosses a page", Memory()),
    "too_long": ([address("ar", len=63)], "is longer than a segment", Memory()),
    "size": ([address("ar", size=SIZE - 1)], "has beats of another size", Memory()),
    "fixed": ([address("aw", burst=0)], "does not increment", Memory()),
    "wraps": ([address("ar", burst=2)], "does not increment", Memory()),
    "same_write_id": ([address("aw", id=1), address("aw", SEGMENT, id=1)], "aw burst at 0x200 has ID 1", Memory()),
    "same_read_id": ([address("ar", id=1), address("ar", SEGMENT, id=1)], "ar burst at 0x200 has ID 1", Memory()),
    "no_credit": ([flit(MESSAGE)] * (ROOM + 1), "link 0: a flit of channel 3 was sent without a credit", Memory()),
    "no_such_channel": ([flit(0)], "link 0: a flit of channel 0 was sent without a credit", Memory()),
    "credit_too_many": ([{"links.1.to_node.credits": 4}], "link 1: a credit of channel 2 was returned", Memory()),
    "log_fell": ([{"log.valid": 1}, {}], "log: valid fell", Memory()),
    "log_changed": ([{"log.valid": 1}, {"log.valid": 1, "log.payload.tag": 1}], "log: what is offered", Memory()),
    "b_without_write": ([{}, {"axi.bvalid": 1}, {"axi.bvalid": 1}], "unit 0: BVALID without a write", Memory()),
    "r_without_read": ([{"axi.rvalid": 1}], "unit 0: RVALID without a read", Memory()),
}
"""Scenes that break a rule: what is shown, what is said, and how memory behaves."""

GOOD: dict[str, list[Drives]] = {
    "write": [address("aw", SEGMENT, len=1, id=2), *beats(1, 2, last=1, user=77), {"memory.1.bready": 1}],
    "data_first": [*beats(3, 4, last=1), address("aw", len=1), {}, {}, *[{"memory.1.bready": 1}] * 40],
    "strobes": [address("aw", SEGMENT), *beats(1 << 8 * BEAT - 1, last=0, strb=1 << BEAT - 1)],
    "discarded": [address("aw", 2 * SEGMENT), *beats(1, last=0, strb=0)],
    "two_reads": [address("ar"), address("ar", SEGMENT, id=1), *[{"memory.1.rready": 1}] * 40],
    "flits": [flit(MESSAGE)] * ROOM + [flit(RESPONSE)],
}
"""Scenes that break none."""

SCENES = {name: scene for name, (scene, _, _) in BROKEN.items()} | GOOD


@cache
def puppet() -> Emission:
    return emit(Puppet(Slice(TINY), list(SCENES.values())), "slice")


def play(harness: Harness, name: str) -> None:
    """Begin a scene, and run for longer than it takes; the write that begins it has no answer before that."""
    with pytest.raises(HarnessError, match="no BVALID"):
        harness.write_register(4 * list(SCENES).index(name), 0)


def started(memory: Memory | None = None, links: Links | None = None) -> Harness:
    return Harness(TINY, emission=puppet(), memory=memory, links=links)


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_rule_is_told(name: str) -> None:
    _, message, behaviour = BROKEN[name]
    harness = started(behaviour, Links(backpressure=1.0))
    harness.log_willing = 0.0
    with pytest.raises(HarnessError, match=message) as told:
        harness.write_register(4 * list(SCENES).index(name), 0)
        harness.run(10)
    assert f"(cycle {harness.cycle})" in str(told.value) and harness.cycle < 20
    with pytest.raises(HarnessError, match=message):
        harness.run(1)


def test_what_breaks_no_rule_passes() -> None:
    harness = started()
    one, two = (value.to_bytes(BEAT, "little") for value in (1, 2))
    play(harness, "write")
    assert harness.memory_bytes(1, SEGMENT, 3 * BEAT) == one + two + UNWRITTEN
    harness = started()
    play(harness, "data_first")
    assert harness.memory_bytes(1, 0, BEAT) == (3).to_bytes(BEAT, "little")
    harness = started()
    play(harness, "strobes")
    assert harness.memory_bytes(1, SEGMENT, BEAT) == UNWRITTEN[1:] + b"\x80"
    harness = started()
    play(harness, "discarded")
    assert harness.memory_bytes(1, 2 * SEGMENT, BEAT) == UNWRITTEN
    harness = started()
    play(harness, "two_reads")
    assert harness.statistics()[1].read_beats == 2 and harness.statistics()[1].most_reads == 2
    harness = started()
    play(harness, "flits")
    assert len(harness.received(0)) == (ROOM + 1) * (STAMP_BYTES + harness.flit_bytes)


def test_nothing_runs_after_the_clock_alone() -> None:
    harness = started()
    harness.run_alone(10)
    with pytest.raises(HarnessError, match="without the models"):
        harness.run(1)


def test_waves_have_the_cycles_that_were_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "waves.vcd"
    harness = Harness(TINY, emission=puppet(), waves=file)
    harness.trace(20, 30)
    harness.run(100)
    harness.close()
    times = [int(line[1:]) for line in file.read_text().splitlines() if line.startswith("#")]
    assert times == list(range(40, 60))
