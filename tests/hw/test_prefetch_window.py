"""The window of prefetches that adapts, with a link whose latency and rate are known."""

from collections import deque
from collections.abc import Callable

import pytest
from amaranth.sim import SimulatorContext

from hw.params.params import Params
from hw.params.sections import MemoryParams, RequesterParams
from hw.rtl.gpu.prefetch import fills, window
from hw.rtl.gpu.prefetch.fills import Fills
from hw.rtl.gpu.prefetch.window import Window
from hw.tb.mutate import mutate
from hw.tb.scoreboard import CheckError
from tests.hw.simulate import Restart, simulate

SERVICE = 4
"""Cycles of a READ of one segment on the link."""

OWN = 2
"""Cycles of the table: to `starts`, and to the end."""

LOOK = 8
"""Round trips for which a window is looked at, at the end of a phase."""

Phase = tuple[int, int, bool, int]
"""Latency and service in cycles; whether there is more to read than the window takes; for how many round trips."""


def covering(latency: int, service: int = SERVICE) -> float:
    """Segments that are read in a round trip with nothing that waits."""
    return (latency + service + OWN) / service


def settle(phases: list[Phase], *, limit: int = 24, count: int = 1) -> list[int]:
    """Return the most segments under way at the end of each phase. CheckError if the limit is not kept, or none is."""
    requester = RequesterParams(
        commands=64, prefetches=1, fills=limit, fill_segments=count, window_segments=limit, window_adapts=True
    )
    dut = Fills(Params(memory=MemoryParams(beat_bytes=16, segment_bytes=512), requester=requester))
    found: list[int] = []

    async def bench(ctx: SimulatorContext, _: Restart) -> None:
        number, free, cycle, flying = 0, 0, 0, 0
        under_way: deque[tuple[int, int]] = deque()  # when it ends, and which
        left: int | None = None
        ctx.set(dut.starts.ready, 1)
        for latency, service, greedy, trips in phases:
            round_trip = latency + max(SERVICE, service) * count + OWN
            end, most = cycle + trips * round_trip, 0
            while cycle < end:
                cycle += 1
                ctx.set(dut.ask, greedy or cycle % (4 * service * count) == 0)
                ctx.set(dut.read, {"segment": number % 60_000, "count": count, "room": 512})
                ends = bool(under_way) and under_way[0][0] <= cycle
                ctx.set(dut.ended.valid, ends)
                if ends:
                    ctx.set(dut.ended.payload.job, under_way[0][1])
                ctx.set(dut.release, left is not None)
                ctx.set(dut.releasing, left or 0)
                left = under_way.popleft()[1] if ends else None
                if ctx.get(dut.starts.valid):
                    free = max(free, cycle) + service * count
                    under_way.append((free + latency, ctx.get(dut.starts.payload.job)))
                granted = ctx.get(dut.granted)
                number += granted
                flying += granted * count
                if flying > limit:
                    raise CheckError(f"{flying} segments under way, and the limit is {limit}")
                if cycle > end - LOOK * round_trip:
                    most = max(most, flying)
                flying -= ends * count
                await ctx.tick()
            if not most and greedy:
                raise CheckError("nothing is under way")
            found.append(most)

    simulate(dut, bench)
    return found


def near(found: int, wanted: float) -> None:
    if not 0.75 * wanted <= found <= 1.25 * wanted:
        raise CheckError(f"a window of {found} segments, and {wanted:.1f} cover the latency")


def latencies() -> None:
    """It covers one latency and another."""
    near(settle([(58, SERVICE, True, 30)])[0], covering(58))
    near(settle([(122, SERVICE, True, 50)], limit=48)[0], covering(122))


def shared() -> None:
    """Another takes half of the link, and goes again."""
    alone, half, again = settle([(58, SERVICE, True, 30), (58, 2 * SERVICE, True, 45), (58, SERVICE, True, 30)])
    near(alone, covering(58))
    near(half, covering(58, 2 * SERVICE))
    near(again, covering(58))


def bounded() -> None:
    """The limit is below what covers the latency; a READ is as large as the window at least."""
    if (found := settle([(122, SERVICE, True, 20)], limit=10)[0]) != 10:
        raise CheckError(f"a window of {found} segments, though all that are allowed do not cover the latency")
    if (found := settle([(8, SERVICE, True, 20), (98, SERVICE, True, 30)], limit=16, count=4)[1]) != 4:
        raise CheckError(f"a window of {found} segments, and all round trips are long")


def idle() -> None:
    """Who asks for less than the window takes does not make it larger."""
    _, found = settle([(58, SERVICE, False, 30), (58, SERVICE, True, 2)])
    if found > covering(58) / 2:
        raise CheckError(f"a window of {found} segments, and few were asked for")


def longer() -> None:
    """The way becomes longer for good."""
    near(settle([(58, SERVICE, True, 60), (122, SERVICE, True, 60)], limit=48)[1], covering(122))


def aged() -> None:
    """What is measured again and again is the way, and not what waits on it."""
    near(settle([(58, SERVICE, True, 180)], limit=48)[0], covering(58))


AGES = {longer: 5, aged: 3}
"""Logarithm of the round trips that are judged until the least is forgotten, where it is."""

STORIES = [latencies, shared, bounded, idle]


@pytest.mark.parametrize("story", STORIES)
def test_window_follows_the_link(story: Callable[[], None]) -> None:
    story()


@pytest.mark.nightly
@pytest.mark.parametrize("story", AGES)
def test_least_round_trip_is_forgotten(story: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window, "LOG2_AGE", AGES[story])
    story()


MUTANTS = {
    "a round trip that is longer makes the window no smaller": ("segments - 1)", "segments)", shared),
    "a window that is smaller never becomes larger": (
        "segments << 1, segments + 1)",
        "segments << 1, segments)",
        shared,
    ),
    "a round trip that is longer makes the window larger": (
        "(cycles < base + (base >> 3)) & held",
        "(cycles < base + (base << 3)) & held",
        shared,
    ),
    "the window is twice as large for ever": ("doubling.eq(0)", "doubling.eq(1)", shared),
    "the last doubling stays": ("Mux(doubling, half, segments - 1)", "Mux(doubling, segments, segments - 1)", shared),
    "the limit is none": ("Mux(more > most, most, more)", "more", bounded),
    "the window is smaller than a READ": ("Mux(less < least, least, less)", "less", bounded),
    "the window grows for who does not fill it": ("< base + (base >> 3)) & held", "< base + (base >> 3))", idle),
    "any READ ends the round trip": ("self.end & (self.ending == timed)", "self.end", latencies),
    "the least round trip is kept for ever": ("with m.If(age.all()):", "with m.If(0):", longer),
    "half the window is not given up": ("Mux(half < least, least, half)", "segments", aged),
}


@pytest.mark.nightly
@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    good, bad, story = MUTANTS[name]
    monkeypatch.setattr(fills, "Window", mutate(Window, good, bad))
    monkeypatch.setattr(window, "LOG2_AGE", AGES.get(story, window.LOG2_AGE))
    with pytest.raises(CheckError):
        story()
