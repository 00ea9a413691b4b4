"""Links with replay, in the simulator: every flit once and in order, and credits, whatever the wire does."""

from dataclasses import replace
from random import Random

import google_crc32c
import pytest
from amaranth import Module
from amaranth.lib import wiring
from amaranth.sim import SimulatorContext

from hw.params import TINY, ParameterError
from hw.rtl.fabric import acceptance, credits, framer, join, link_end, patience, replay
from hw.rtl.fabric.framer import Deframer, Framer
from hw.rtl.fabric.layouts import Channel
from hw.rtl.fabric.words import Buffers
from hw.tb.link.wire import QUIET, Trouble
from hw.tb.mutate import mutate
from tests.hw.linkbench import Bench, link_params, run
from tests.hw.simulate import Restart, simulate

WILD = Trouble(flip=0.03, lose=0.03, spell=0.004, length=30)
RESET_EVERY, CUT_EVERY, CUT_CYCLES = 150, 400, 250


async def hard_times(b: Bench, cycles: int) -> None:
    """Errors, spells, cuts, resets of either end and of the port, users in any mood; then all has to come."""
    random, cut = b.random, 0
    for cycle in range(cycles):
        if cycle % 100 == 0:
            for seat in b.seats:
                seat.user.sends, seat.user.takes = random.choice((0.0, 0.3, 1.0)), random.choice((0.3, 1.0))
        if random.randrange(CUT_EVERY) == 0:
            cut = random.randrange(CUT_CYCLES)
            for seat in random.sample(b.seats, random.choice((1, 2))):
                seat.wire.trouble = Trouble(cut=True)
        cut -= cut > 0
        if not cut:
            for seat in b.seats:
                seat.wire.trouble = WILD
        what = random.randrange(2 * RESET_EVERY)
        if what < 2:
            await b.reset(what)
        elif what == 2:
            b.seats[1].hold = random.choice((1, random.randint(1, 40)))
        await b.step()
    for seat in b.seats:
        seat.wire.trouble, seat.user.sends, seat.user.takes = QUIET, 0, 1
    await b.until(lambda: b.up and all(seat.user.at_rest for seat in b.seats), 2_000)


def check(*, seed: int, cycles: int, flit_cycles: int = 1, wire: int = 3) -> None:
    """Play hard times on a link that is made for wires of three cycles."""
    params = link_params(latency=3, flit_cycles=flit_cycles, tries=4)
    counts: list[int] = []

    async def bench(b: Bench) -> None:
        await hard_times(b, cycles)
        counts.extend(seat.wire.hit for seat in b.seats)
        counts.append(sum(len(life.sent) for seat in b.seats for life in seat.user.lives if life.heard))

    run(bench, params=params, seed=seed, latency=wire)
    assert all(count > cycles // 60 for count in counts), "nothing happened"


@pytest.mark.parametrize(("flit_cycles", "wire"), [(1, 3), (2, 0)])
def test_every_flit_comes_once_whatever_the_wires_do(flit_cycles: int, wire: int, seed: int) -> None:
    print(f"seed {seed}")
    check(seed=seed, cycles=600, flit_cycles=flit_cycles, wire=wire)


@pytest.mark.nightly
@pytest.mark.parametrize(("flit_cycles", "wire"), [(1, 0), (1, 1), (1, 3), (2, 3), (5, 2)])
def test_every_flit_comes_once_for_long(flit_cycles: int, wire: int, seed: int) -> None:
    print(f"seed {seed}")
    check(seed=seed, cycles=8_000, flit_cycles=flit_cycles, wire=wire)


@pytest.mark.parametrize("flit_cycles", [1, 3])
def test_a_word_that_waits_for_nothing_carries_a_flit(flit_cycles: int) -> None:
    """A flit a word as long as there is a credit; 7 cycles at both ends, and a word's pieces behind the first."""
    params = link_params(latency=4, flit_cycles=flit_cycles)
    room: Buffers = {Channel.DATA: -(-params.link_round_trip // flit_cycles) + 8}

    async def bench(b: Bench) -> None:
        for seat in b.seats:
            seat.user.sends = 0
        await b.until(lambda: b.up, 200)
        await b.step(params.link_round_trip)
        here, there = b.seats
        here.user.sends = 1
        late = await b.until(lambda: there.user.received == 1, 100)
        assert late - 2 <= params.link.latency + 7 + 2 * (flit_cycles - 1)
        for seat in b.seats:
            seat.user.sends = 1
        await b.step(4 * params.link_round_trip)
        before = [seat.user.received for seat in b.seats]
        await b.step(60 * flit_cycles)
        assert [seat.user.received - n for seat, n in zip(b.seats, before, strict=True)] == [60, 60]

    run(bench, params=params, seed=0, buffers=(room, room))


@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_link_that_is_cut_is_given_up_and_comes_back(which: int) -> None:
    """One wire or both: both ends go down, at the latest one patience after the other, and come up when it is whole."""
    params = link_params(latency=2, tries=2)

    async def bench(b: Bench) -> None:
        await b.until(lambda: b.up, 200)
        await b.step(60)
        lives = [len(seat.user.lives) for seat in b.seats]
        for i, seat in enumerate(b.seats):
            seat.wire.trouble = Trouble(cut=which in (i, 2))
        most = 2 * (params.link.tries + 1) * params.link_timer
        await b.until(lambda: not any(b.ctx.get(seat.end.up) for seat in b.seats), most)
        assert any(seat.failed for seat in b.seats)
        await b.step(3 * params.link_round_trip)
        assert not b.up
        for seat in b.seats:
            seat.wire.trouble = QUIET
        await b.until(lambda: b.up, 3 * params.link_round_trip)
        assert all(len(seat.user.lives) > count for seat, count in zip(b.seats, lives, strict=True))
        received = [seat.user.received for seat in b.seats]
        await b.step(60)
        assert all(seat.user.received > count for seat, count in zip(b.seats, received, strict=True))

    run(bench, params=params, seed=0)


def test_a_port_that_is_held_for_a_cycle_takes_nothing_of_before() -> None:
    """Not the flit either that comes in that cycle; and within three round trips flits come again."""
    params = link_params(latency=8)
    room: Buffers = {Channel.DATA: params.link_round_trip + 8}

    async def bench(b: Bench) -> None:
        port = b.seats[1]
        for _ in range(3):
            await b.until(lambda: b.up, 200)
            await b.step(2 * params.link_round_trip)
            received = port.user.received
            await b.step(10)
            assert port.user.received == received + 10
            port.hold = 1
            await b.step(2)
            assert not port.user.received and not b.up
            most = 3 * params.link_round_trip
            await b.until(lambda: b.up and all(seat.user.received for seat in b.seats), most)

    run(bench, params=params, seed=0, buffers=(room, room))


def test_a_lost_word_costs_a_round_trip() -> None:
    """What was sent in it is sent again, once, and the link stays up."""
    params = link_params(latency=8, tries=2)
    room: Buffers = {Channel.DATA: params.link_round_trip + 8}

    async def bench(b: Bench) -> None:
        here, there = b.seats
        await b.until(lambda: b.up, 200)
        await b.step(3 * params.link_round_trip)
        for _ in range(3):
            received = there.user.received
            here.wire.trouble = Trouble(cut=True)
            await b.step()
            here.wire.trouble = QUIET
            cycles = 4 * params.link_round_trip
            await b.step(cycles)
            assert there.user.received - received >= cycles - params.link_round_trip
        assert not any(seat.failed for seat in b.seats)

    run(bench, params=params, seed=0, buffers=(room, room))


def test_a_link_that_is_idle_stays_up() -> None:
    params = link_params(latency=2, tries=1)

    async def bench(b: Bench) -> None:
        for seat in b.seats:
            seat.user.sends = 0
        await b.until(lambda: b.up, 200)
        for _ in range(3 * params.link_timer):
            await b.step()
            assert b.up and not any(seat.failed for seat in b.seats)

    run(bench, params=params, seed=0)


WORD_BITS = 52


class Frames(wiring.Component):
    """A framer and a deframer, which nothing connects."""

    def __init__(self, flit_cycles: int):
        params = link_params(flit_cycles=flit_cycles)
        self.framer, self.deframer = Framer(params, WORD_BITS), Deframer(params, WORD_BITS)
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.framer, m.submodules.deframer = self.framer, self.deframer
        return m


@pytest.mark.parametrize("pieces", [1, 3])
def test_an_altered_word_is_dropped_and_a_whole_one_is_not(pieces: int, seed: int) -> None:
    """The CRC is that of the bytes; up to five flipped bits, a burst of 32, a lost or moved piece are seen."""
    print(f"seed {seed}")
    dut, random = Frames(pieces), Random(seed)

    async def bench(ctx: SimulatorContext, restart: Restart) -> None:
        out, into = dut.framer.wire, dut.deframer.wire
        width = len(out.bits)
        for case in range(60):
            word = random.getrandbits(WORD_BITS)
            ctx.set(dut.framer.word, word)
            ctx.set(dut.framer.load, 1)
            await ctx.tick()
            ctx.set(dut.framer.load, 0)
            sent = []
            for _ in range(pieces):
                sent.append((ctx.get(out.valid), ctx.get(out.first), ctx.get(out.bits)))
                await ctx.tick()
            assert [piece[:2] for piece in sent] == [(1, i == 0) for i in range(pieces)]
            bits = sum(piece[2] << i * width for i, piece in enumerate(sent))
            data = word.to_bytes(-(-WORD_BITS // 8), "little")
            assert bits == word | google_crc32c.value(data) << WORD_BITS
            kind = case % 4
            if kind == 1:
                for place in random.sample(range(WORD_BITS + 32), random.randint(1, 5)):
                    bits ^= 1 << place
            elif kind == 2:
                bits ^= (random.getrandbits(32) | 1) << random.randrange(WORD_BITS + 1)
            coming = [(1, i == 0, bits >> i * width & (1 << width) - 1) for i in range(pieces)]
            if kind == 3:
                place = random.randrange(pieces)
                coming[place] = random.choice([(0, 0, 0), (1, not coming[place][1], coming[place][2])])
            heard = []
            for valid, first, piece in [*coming, (0, 0, 0), (0, 0, 0), (0, 0, 0)]:
                ctx.set(into.valid, valid)
                ctx.set(into.first, first)
                ctx.set(into.bits, piece)
                await ctx.tick()
                if ctx.get(dut.deframer.heard):
                    heard.append(ctx.get(dut.deframer.word))
            assert heard == ([word] if kind == 0 else [])

    simulate(dut, bench)


def test_what_a_link_cannot_be_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"without link\.replay"):
        replace(TINY, link=replace(TINY.link, latency=20))
    with pytest.raises(ParameterError, match="round trip of 51 cycles"):
        link_params(latency=20, timer_cycles=51)


MUTANTS = {
    "a flit behind a lost one is taken": (
        acceptance,
        "Acceptance",
        "self.flow.carries & (ahead == 0)",
        "self.flow.carries",
    ),
    "a flit is taken twice": (acceptance, "Acceptance", "(ahead == 0)", "((ahead == 0) | (ahead[-1]))"),
    "sent again from the wrong flit": (replay, "Replay", "Mux(rewind, first,", "Mux(rewind, first + 1,"),
    "sent again for ever": (replay, "Replay", "(self.answer.turn == turn)", "1"),
    "nothing is sent again": (replay, "Replay", "Mux(rewind, first,", "Mux(self.again, first,"),
    "flits before the other is up": (replay, "Replay", "self.ask & self.joined", "self.ask"),
    "credits counted in words": (credits, "Credits", "due.eq(self.told[name])", "due.eq(due + self.told[name])"),
    "a credit too many": (
        credits,
        "Credits",
        "self.given[name].eq(owed)",
        "self.given[name].eq(owed | self.heard)",
    ),
    "credits of before": (
        link_end,
        "LinkEnd",
        "map(renew, (replay, acceptance, credits))",
        "renew(replay), renew(acceptance), credits",
    ),
    "a flit of before, behind a hold": (
        link_end,
        "LinkEnd",
        "acceptance.take & ~self.hold",
        "acceptance.take",
    ),
    "flits of before": (
        link_end,
        "LinkEnd",
        "map(renew, (replay, acceptance, credits))",
        "replay, renew(acceptance), renew(credits)",
    ),
    "no silence": (join, "Join", "(quiet == 0) &", ""),
    "nobody hears that the other is down": (
        join,
        "Join",
        "self.give_up | (self.heard & (self.said == Phase.DOWN))",
        "self.give_up",
    ),
    "up without the other": (join, "Join", "with m.Elif(self.said == Phase.INIT)", "with m.Else()"),
    "never given up": (patience, "Patience", "self.up & over &", "0 &"),
    "any CRC will do": (framer, "Deframer", "& (crc == crc_of(word))", ""),
}


def build_mutant(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Let links be built with a seeded bug."""
    module, target, good, bad = MUTANTS[name]
    mutant = mutate(getattr(module, target), good, bad)
    for holder in (module, link_end):
        if hasattr(holder, target):
            monkeypatch.setattr(holder, target, mutant)
    monkeypatch.setattr("tests.hw.linkbench.LinkEnd", link_end.LinkEnd)


@pytest.mark.nightly
@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By what goes wrong, or, if nothing does, by what it costs."""
    build_mutant(monkeypatch, name)
    with pytest.raises((AssertionError, KeyError)):
        test_a_lost_word_costs_a_round_trip()
        test_a_port_that_is_held_for_a_cycle_takes_nothing_of_before()
        test_a_link_that_is_cut_is_given_up_and_comes_back(2)
        for seed in range(6):
            check(seed=seed, cycles=2_000)
