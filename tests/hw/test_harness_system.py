"""The compiled system's models of requesters' memory: a puppet breaks each of their rules once, and keeps them."""

from functools import cache
from typing import NamedTuple

import pytest
from amaranth import C, Cat, Module, Value, ValueLike

from hw.params import InputError
from hw.params.params import TINY
from hw.rtl.emit import Emission, emit
from hw.rtl.system import System
from hw.tb.harness import HarnessError, Memory, simulation
from hw.tb.harness.puppet import Drives, Puppet
from hw.tb.harness.simulation import records
from hw.tb.harness.system import Issued, SystemHarness

OKAY, SLVERR, DECERR = 0, 2, 3
BEAT = TINY.memory.beat_bytes
SIZE = BEAT.bit_length() - 1
ALL = (1 << BEAT) - 1
BASE = 0x7FFF_FFFF_0000_1000
STALLED = Memory(address_willing=0, data_willing=0)
QUICK = Memory(latency=1)


def host(channel: str, port: str = "host.1", **fields: int) -> Drives:
    """An offer on a channel of the host memory, or the HBM, of a requester."""
    return {f"{port}.{channel}{name}": value for name, value in ({"valid": 1} | fields).items()}


def address(channel: str, at: int = 0, port: str = "host.1", **fields: int) -> Drives:
    """An offer of an address in the region, of one beat unless fields say otherwise."""
    return host(channel, port, **{"addr": BASE + at, "size": SIZE, "burst": 1} | fields)


def beat(value: int, port: str = "host.1", **fields: int) -> Drives:
    """An offer of the last beat of write data."""
    return host("w", port, **{"data": value, "strb": ALL, "last": 1} | fields)


def issue(port: int, **fields: int) -> Drives:
    named = {f"issued.{port}.payload.{name}": value for name, value in fields.items()}
    return {f"issued.{port}.valid": 1} | named


def write(at: int, value: int, **fields: int) -> list[Drives]:
    """A burst of one beat."""
    return [address("aw", at), beat(value, **fields), {}]


def waiting(port: str, *channels: str) -> list[Drives]:
    """Some cycles in which answers are taken."""
    return [{f"{port}.{channel}ready": 1 for channel in channels}] * 40


BROKEN: dict[str, tuple[list[Drives], str, Memory]] = {
    "aw_fell": ([address("aw"), {}], "host 1: awvalid fell", STALLED),
    "ar_changed": ([address("ar"), address("ar", BEAT)], "host 1: what ar offers changed", STALLED),
    "ar_id_changed": ([address("ar"), address("ar", id=1)], "host 1: what ar offers changed", STALLED),
    "w_fell": ([beat(1), {}], "host 1: wvalid fell", STALLED),
    "w_changed": ([beat(1), beat(1, strb=1)], "host 1: what w offers changed", STALLED),
    "last_early": ([address("aw", len=1), beat(1)], "host 1: WLAST is 1 in beat 0 of 2", QUICK),
    "last_late": ([address("aw"), beat(1, last=0)], "host 1: WLAST is 0 in beat 0 of 1", QUICK),
    "crosses": ([address("ar", 4096 - BEAT, len=1)], "host 1: ar burst of 2 beats at .*, crosses a page", QUICK),
    "crosses_unaligned": ([address("aw", 4096 - 1, len=1)], "aw burst of 2 beats at .*, crosses a page", QUICK),
    "crosses_the_end": ([address("ar", addr=(1 << 64) - BEAT, len=1)], "crosses a page", QUICK),
    "size": ([address("ar", size=SIZE - 1)], "has beats of another size", QUICK),
    "fixed": ([address("aw", burst=0)], "does not increment", QUICK),
    "strobe_before": ([address("aw", 8), beat(1)], "a strobe of byte 0 in the first beat", QUICK),
    "hbm": ([address("ar", size=0, port="hbm.0")], "hbm 0: ar burst of 1 beats", QUICK),
    "r_without_read": ([{"axi.2.rvalid": 1}], "unit 2: RVALID without a read", QUICK),
}  # fmt: skip
"""Scenes that break a rule: what is shown, what is said, and how memory behaves."""

GOOD: dict[str, list[Drives]] = {
    "write": [*write(BEAT, 5), *waiting("host.1", "b")],
    "some_bytes": [*write(2 * BEAT, (1 << 8 * BEAT) - 1, strb=6), *waiting("host.1", "b")],
    "past_the_end": [*write(7 * BEAT, (1 << 8 * BEAT) - 1), *waiting("host.1", "b")],
    "nothing_past_the_end": [*write(7 * BEAT, 7, strb=0xF), *waiting("host.1", "b")],
    "nowhere": [*write(8 * BEAT, 7), *waiting("host.1", "b")],
    "no_strobes_nowhere": [*write(8 * BEAT, 7, strb=0), *waiting("host.1", "b")],
    "unaligned": [*write(8, (1 << 8 * BEAT) - 1, strb=ALL - 0xFF), *waiting("host.1", "b")],
    "slow_write": [address("aw"), *[beat(7)] * 30, *waiting("host.1", "b")],
    "by_hbm": [address("aw", port="hbm.1"), beat(9, port="hbm.1"), *waiting("hbm.1", "b")],
    "of_another": [address("aw", port="host.0"), beat(9, port="host.0"), *waiting("host.0", "b")],
    "read": [address("ar", len=8), *waiting("host.1", "r")],
    "reads_of_an_id": [*[address("ar", i * BEAT, id=i % 2, len=1) for i in range(6)], *waiting("host.1", "r")],
    "issued": [issue(1, ring=3, tag=4, link_tag=5), issue(0, ring=1, tag=0xFFFF, link_tag=6)],
    "interrupts": [{}, {}, {"irq": 4}, {"irq": 5}],
}  # fmt: skip
"""Scenes that break none."""

SCENES = {name: scene for name, (scene, _, _) in BROKEN.items()} | GOOD
LENGTH = 7 * BEAT + 4
"""Of the region: it ends within a beat."""


class Answer(NamedTuple):
    """What the puppet was answered at a port: a beat that was read, or that a burst was written."""

    port: str
    read: int
    response: int
    last: int
    id: int
    data: int


PORTS = "host.0", "host.1", "hbm.0", "hbm.1"
SEEN = 8
FIELDS = (2, 1, 2, 1, 8, 8 * SEEN)
"""Bits of each field of an answer; of a beat only the first bytes, for an entry of the log is short."""


class Echo(Puppet):
    """Tells in the order log what it was answered."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        for i, name in enumerate(PORTS):
            port = {signal: self._port(f"{name}.{signal}") for signal in self.host[0].signature.members}
            read = C(1), port["rresp"], port["rlast"], port["rid"], port["rdata"]
            written = C(0), port["bresp"], C(1), port["bid"], C(0)
            for valid, ready, answer in (("rvalid", "rready", read), ("bvalid", "bready", written)):
                with m.If(port[valid] & port[ready]):
                    m.d.comb += [self.log[0].valid.eq(1), self.log[0].payload.as_value().eq(told(C(i), *answer))]
        return m


def told(*values: ValueLike) -> Value:
    """An answer as bits."""
    return Cat((Value.cast(value) | C(0, bits))[:bits] for value, bits in zip(values, FIELDS, strict=True))


@cache
def puppet() -> Emission:
    return emit(Echo(System(TINY), list(SCENES.values())), "system")


def started(host: Memory = QUICK, seed: int = 0) -> SystemHarness:
    return SystemHarness(TINY, seed=seed, emission=puppet(), host=host, hbm=QUICK)


def begin(harness: SystemHarness, name: str) -> None:
    """Begin a scene, and run as long as the write that begins it may take; it has no answer."""
    with pytest.raises(HarnessError, match="no BVALID"):
        harness.write_register(4 * list(SCENES).index(name), 0)


def answers(harness: SystemHarness) -> list[Answer]:
    """What the puppet was answered since the last call."""
    found = []
    for _, word in records(harness.log(), harness.log_bytes):
        values, rest = [], word
        for bits in FIELDS:
            values.append(rest & (1 << bits) - 1)
            rest >>= bits
        found.append(Answer(PORTS[values[0]], *values[1:]))
    return found


def play(harness: SystemHarness, name: str) -> list[Answer]:
    """Play a scene that breaks no rule, and return what was answered."""
    begin(harness, name)
    return answers(harness)


def mapped(harness: SystemHarness, *, writable: bool = True) -> bytearray:
    """Memory of which the region of the scenes is a part, `BEAT` bytes from its beginning, with more behind it."""
    memory = bytearray(b"\x11" * (LENGTH + 2 * BEAT))
    harness.map(1, BASE, memoryview(memory)[BEAT : BEAT + LENGTH], writable=writable)
    return memory


def changed(memory: bytearray) -> dict[int, int]:
    """The bytes that are not as they were, by their places in the region."""
    return {i - BEAT: byte for i, byte in enumerate(memory) if byte != 0x11}


def number(at: int, value: int, length: int = BEAT) -> dict[int, int]:
    """The bytes of a number in the region."""
    return dict(enumerate(value.to_bytes(length, "little"), start=at))


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_rule_is_told(name: str) -> None:
    _, message, behaviour = BROKEN[name]
    harness = started(behaviour)
    mapped(harness)
    with pytest.raises(HarnessError, match=message) as said:
        harness.write_register(4 * list(SCENES).index(name), 0)
        harness.run(10)
    assert f"(cycle {harness.cycle})" in str(said.value) and harness.cycle < 20


ONES = (1 << 8 * BEAT) - 1


@pytest.mark.parametrize(
    ("name", "response", "bytes_"),
    [
        ("write", OKAY, number(BEAT, 5)),
        ("some_bytes", OKAY, {2 * BEAT + 1: 0xFF, 2 * BEAT + 2: 0xFF}),
        ("unaligned", OKAY, number(8, ONES >> 64, BEAT - 8)),
        ("past_the_end", DECERR, number(7 * BEAT, 0xFFFFFFFF, 4)),
        ("nothing_past_the_end", OKAY, number(7 * BEAT, 7, 4)),
        ("nowhere", DECERR, {}),
        ("no_strobes_nowhere", OKAY, {}),
        ("by_hbm", OKAY, number(0, 9)),
        ("of_another", DECERR, {}),
    ],
)
def test_writes_go_where_they_may(name: str, response: int, bytes_: dict[int, int]) -> None:
    harness = started()
    memory = mapped(harness)
    assert [(answer.read, answer.response) for answer in play(harness, name)] == [(0, response)]
    assert changed(memory) == bytes_


def test_what_may_only_be_read_is_not_written() -> None:
    harness = started()
    memory = mapped(harness, writable=False)
    assert [answer.response for answer in play(harness, "write")] == [SLVERR]
    assert changed(memory) == {}
    assert [answer.response for answer in play(harness, "read")] == [OKAY] * 8 + [DECERR]


def test_reads_come_out_of_the_buffer() -> None:
    """The beat in which the region ends is read, with noise behind the end; the next one is not."""
    harness = started()
    memory = mapped(harness)
    memory[:] = bytes(i * 7 & 0xFF for i in range(len(memory)))
    read = play(harness, "read")
    assert [answer.response for answer in read] == [OKAY] * 8 + [DECERR]
    assert [answer.last for answer in read] == [0] * 8 + [1]
    starts = [memory[i : i + SEEN] for i in range(BEAT, 9 * BEAT, BEAT)]
    *whole, last = (answer.data.to_bytes(SEEN, "little") for answer in read[:8])
    assert whole == starts[:7]
    assert last[:4] == starts[7][:4] and last[4:] != starts[7][4:]
    assert harness.statistics(of="host")[1].read_beats == 9
    assert harness.statistics(of="host")[0].read_beats == harness.statistics(of="hbm")[1].read_beats == 0


def test_regions_come_and_go() -> None:
    """Many regions next to each other are told apart; what was unmapped is no longer reached, at once."""
    harness = started()
    pages = {page: bytearray([page]) * 4096 for page in (3, 0, 2, 1, 4)}
    for page, memory in pages.items():
        harness.map(1, BASE + 4096 * (page - 2), memoryview(memory), writable=True)
    assert {answer.data for answer in play(harness, "read")} == {int.from_bytes(bytes([2] * SEEN), "little")}
    harness.unmap(1, BASE)
    assert {answer.response for answer in play(harness, "read")} == {DECERR}
    assert [answer.response for answer in play(harness, "write")] == [DECERR]
    other = bytearray(4096)
    harness.map(1, BASE, memoryview(other), writable=True)
    assert [answer.response for answer in play(harness, "write")] == [OKAY]
    assert other[BEAT] == 5 and all(set(memory) == {page} for page, memory in pages.items())


def test_nothing_is_written_after_it_was_unmapped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even by a burst whose address was taken before."""
    monkeypatch.setattr(simulation, "PATIENCE", 10)
    harness = started(Memory(data_willing=0.0))
    memory = mapped(harness)
    begin(harness, "slow_write")
    assert harness.statistics(of="host")[1].write_bursts == 1
    harness.unmap(1, BASE)
    harness.host = QUICK
    harness.run(200)
    assert [answer.response for answer in answers(harness)] == [DECERR]
    assert changed(memory) == {}


@pytest.mark.parametrize("interleave", [False, True])
def test_bursts_of_an_id_are_answered_in_order_others_in_any(interleave: bool) -> None:
    orders = set()
    for seed in range(8):
        harness = started(Memory(latency=5, jitter=20, reorder=True, interleave=interleave), seed)
        memory = mapped(harness)
        memory[BEAT:] = bytes(i // BEAT for i in range(len(memory) - BEAT))
        read = play(harness, "reads_of_an_id")
        for identity in (0, 1):
            beats = [answer.data & 0xFF for answer in read if answer.id == identity]
            assert beats == [burst + i for burst in range(identity, 6, 2) for i in (0, 1)], f"seed {seed}"
        orders.add(tuple(answer.id for answer in read))
    assert len(orders) > 1
    assert interleave == any(order[i] != order[i + 1] for order in orders for i in range(0, len(order), 2))


def test_errors_are_made_on_request() -> None:
    harness = started()
    mapped(harness)
    harness.fail_writes(1, 1, of="host")
    assert [answer.response for _ in range(2) for answer in play(harness, "write")] == [SLVERR, OKAY]
    harness.fail_reads(1, 1, of="host")
    assert [answer.response for answer in play(harness, "read")] == [SLVERR] * 9
    assert play(harness, "read")[0].response == OKAY
    harness.fail_writes(1, 1, of="hbm")
    assert [answer.response for answer in play(harness, "by_hbm")] == [SLVERR]
    assert (harness.injected(of="host"), harness.injected(of="hbm")) == ((1, 1, 0), (1, 0, 0))


def test_what_was_issued_is_told() -> None:
    harness = started()
    begin(harness, "issued")
    first, second = harness.issued()
    assert first == Issued(first.cycle, 1, ring=3, tag=4, link_tag=5)
    assert second == Issued(first.cycle + 1, 0, ring=1, tag=0xFFFF, link_tag=6)
    assert harness.issued() == []


def test_a_run_ends_at_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulation, "PATIENCE", 2)
    harness = started()
    begin(harness, "interrupts")
    assert harness.irq == 0
    ran = harness.run_until_interrupt(50)
    assert (harness.irq, harness.cycle) == (4, 2 + ran) and 0 < ran < 10
    assert harness.run_until_interrupt(50) == 0
    harness.run(20)
    assert harness.irq == 0 and harness.run_until_interrupt(50) == 50


def test_what_cannot_be_mapped_is_refused() -> None:
    harness = started()
    memory = memoryview(bytearray(8192))
    harness.map(0, 8192, memory, writable=True)
    for address_, view, message in [
        (4096, memory[:4097], "overlaps"),
        (8192, memory[:1], "overlaps"),
        (12288, memory, "overlaps"),
        (100, memory, "expected a multiple of 4096"),
        ((1 << 64) - 4096, memory, "below 2"),
        (0, memory[:0], "at least one"),
        (0, memory[::2], "in one piece"),
        (0, memoryview(b"read-only"), "expected one that is writable"),
    ]:
        with pytest.raises(InputError, match=message):
            harness.map(0, address_, view, writable=True)
    harness.map(0, 4096, memory[:4096], writable=True)
    harness.map(1, 8192, memory, writable=True)
    with pytest.raises(InputError, match="no region"):
        harness.unmap(0, 0)
    with pytest.raises(InputError, match="port 2"):
        harness.unmap(2, 0)
    with pytest.raises(InputError, match="unit 3"):
        harness.read_register(0, unit=3)
    with pytest.raises(InputError, match="hbm 2"):
        harness.spoil(2, 1, of="hbm")
