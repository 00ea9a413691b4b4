"""The fan between a link and the slices of a node: everything once, in order and whole, against credits, and fairly."""

from collections import Counter, deque
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from amaranth.sim import SimulatorContext

from hw.params import TINY
from hw.params.params import Params
from hw.params.sections import LinkParams, NodeParams
from hw.rtl.fabric import Channel, Fan, fan, merge
from hw.rtl.fabric.layouts import flit_layout, from_node_buffers, to_node_buffers
from hw.tb.mutate import mutate
from hw.tb.scoreboard import CheckError
from hw.tb.structure import combinational_inputs
from tests.hw.simulate import Restart, simulate

CYCLES = 800
LINK = LinkParams(commands=2, write_segments=2, response_flits=4, data_flits=6, message_flits=2)

Flit = tuple[Channel, int, int, bool]
"""Channel, slice, number, and whether it ends its packet."""


LAYOUT = {name: field for name, field in flit_layout(TINY)}
NUMBERS = ("channel", "slice", "data", "last")


def pack(*values: int) -> int:
    """A flit as a number."""
    return sum(value << LAYOUT[name].offset for name, value in zip(NUMBERS, values, strict=True))


def unpack(word: int) -> Flit:
    """The inverse."""
    channel, slice_, number, last = (word >> LAYOUT[name].offset & (1 << LAYOUT[name].width) - 1 for name in NUMBERS)
    return Channel(channel), slice_, number, bool(last)


def params_of(slices: int) -> Params:
    return replace(TINY, node=NodeParams(slices=slices), link=replace(LINK, heartbeat_cycles=64, silence_cycles=1024))


class Sender:
    """The sending end of a lane: packets at random, against credits."""

    def __init__(self, lane: Any, buffers: dict[Channel, int], slices: int, rng: Random) -> None:
        self.lane, self.buffers, self.slices, self.rng = lane, buffers, slices, rng
        self.flit, self.offers = lane.flit.as_value(), False
        self.number = 0
        self.reset()

    def reset(self) -> None:
        self.credits = dict(self.buffers)
        self.left: dict[Channel, tuple[int, int]] = {}
        self.sent: Flit | None = None

    def drive(self, ctx: SimulatorContext, busy: float, channels: list[Channel], *, begins: bool = True) -> None:
        """Perhaps send a flit, if not `begins` of a packet that was begun."""
        open_ = [each for each in channels if self.credits.get(each) and (begins or each in self.left)]
        self.sent = None
        if open_ and self.rng.random() < busy:
            channel = self.rng.choice(open_)
            slice_, left = self.left.get(channel) or (self.rng.randrange(self.slices), self.rng.randint(1, 4))
            self.left[channel] = slice_, left - 1
            if left == 1:
                del self.left[channel]
            self.number += 1
            self.sent = channel, slice_, self.number, left == 1
            self.credits[channel] -= 1
            ctx.set(self.flit, pack(*self.sent))
        if self.offers is not (self.sent is not None):
            self.offers = self.sent is not None
            ctx.set(self.lane.valid, self.offers)

    def sample(self, ctx: SimulatorContext) -> None:
        """Take the credits that are back."""
        back = ctx.get(self.lane.credits)
        for channel in Channel:
            if back >> channel & 1:
                self.credits[channel] += 1
                if self.credits[channel] > self.buffers[channel]:
                    raise CheckError(f"a credit of {channel.name} too many")


class Taker:
    """The receiving end of a lane: buffers as large as it has given credits, emptied at random."""

    def __init__(self, lane: Any, buffers: dict[Channel, int], rng: Random) -> None:
        self.lane, self.sizes, self.rng = lane, buffers, rng
        self.flit, self.back = lane.flit.as_value(), 0
        self.reset()

    def reset(self) -> None:
        self.held: Counter[Channel] = Counter()

    def drive(self, ctx: SimulatorContext, willing: float, deaf: set[Channel]) -> None:
        """Perhaps take a flit of each channel out of its buffer."""
        back = 0
        for channel in self.sizes:
            if self.held[channel] and channel not in deaf and self.rng.random() < willing:
                self.held[channel] -= 1
                back |= 1 << channel
        if back != self.back:
            self.back = back
            ctx.set(self.lane.credits, back)

    def sample(self, ctx: SimulatorContext) -> Flit | None:
        """What has come."""
        if not ctx.get(self.lane.valid):
            return None
        flit = unpack(ctx.get(self.flit))
        self.held[flit[0]] += 1
        if self.held[flit[0]] > self.sizes[flit[0]]:
            raise CheckError(f"{flit} without a credit")
        return flit


class World:
    """A fan with a requester and slices around it, and what is on its way."""

    def __init__(self, slices: int, seed: int) -> None:
        params = params_of(slices)
        self.dut, self.rng, self.slices = Fan(params), Random(seed), slices
        up, down = to_node_buffers(params), from_node_buffers(params)
        link, ends = self.dut.link, self.dut.slices
        self.requester = Sender(link.to_node, up, slices, self.rng), Taker(link.from_node, down, self.rng)
        self.ends = [(Sender(each.from_node, down, 1, self.rng), Taker(each.to_node, up, self.rng)) for each in ends]
        self.arrived: Counter[tuple[str, int, Channel]] = Counter()
        self.reset()

    def reset(self) -> None:
        """Forget what is on its way."""
        self.to: dict[tuple[int, Channel], deque[Flit]] = {}
        self.back: dict[tuple[int, Channel], deque[Flit]] = {}
        self.inside: dict[Channel, int | None] = {}
        for sender, taker in (self.requester, *self.ends):
            sender.reset()
            taker.reset()

    def note(self) -> None:
        """What is sent in this cycle has to come."""
        sent = self.requester[0].sent
        if sent is not None:
            to = range(self.slices) if sent[0] is Channel.MESSAGE else [sent[1]]
            for slice_ in to:
                self.to.setdefault((slice_, sent[0]), deque()).append(sent)
        for i, (sender, _) in enumerate(self.ends):
            if sender.sent is not None:
                self.back.setdefault((i, sender.sent[0]), deque()).append(sender.sent)

    def check(self, ctx: SimulatorContext) -> None:
        """What comes was sent, is next, and is in one piece."""
        for i, (_, taker) in enumerate(self.ends):
            flit = taker.sample(ctx)
            if flit is None:
                continue
            due = self.to.get((i, flit[0]))
            if not due or due.popleft()[2:] != flit[2:]:
                raise CheckError(f"slice {i} gets {flit}, which is not what is next for it")
            self.arrived["to", i, flit[0]] += 1
        flit = self.requester[1].sample(ctx)
        if flit is not None:
            channel, slice_, *rest = flit
            due = self.back.get((slice_, channel))
            if not due or list(due.popleft()[2:]) != rest:
                raise CheckError(f"the requester gets {flit}, which is not what is next from that slice")
            if self.inside.get(channel, slice_) not in (None, slice_):
                raise CheckError(f"{flit} within a packet of slice {self.inside[channel]}")
            self.inside[channel] = None if flit[3] else slice_
            self.arrived["back", slice_, channel] += 1

    @property
    def waiting(self) -> int:
        """Flits that are on their way."""
        return sum(map(len, (*self.to.values(), *self.back.values())))


def play(slices: int, seed: int) -> None:
    """Everything at random, in phases; slices that take nothing for a while; resets. Raises CheckError."""
    world = World(slices, seed)
    rng = world.rng

    async def bench(ctx: SimulatorContext, restart: Restart) -> None:
        deaf: set[int] = set()
        busy = willing = 1.0
        for cycle in range(CYCLES):
            if cycle % 400 == 399:
                await settle(ctx, world)
            if cycle % 250 == 249:
                await restart(ctx)
                world.reset()
            if cycle % 50 == 0:
                busy, willing = rng.choice([0.2, 1.0]), rng.choice([0.1, 0.5, 1.0])
                deaf = {i for i in range(slices) if rng.random() < 0.2}
            step(ctx, world, busy, willing, deaf)
            await ctx.tick()

    async def settle(ctx: SimulatorContext, world: World) -> None:
        """No packet is begun, and everything is taken, until everything has come."""
        for _ in range(100):
            step(ctx, world, 1.0, 1.0, set(), begins=False)
            await ctx.tick()
        if world.waiting:
            raise CheckError(f"{world.waiting} flits have not come")
        for sender, _ in (world.requester, *world.ends):
            if sender.credits != sender.buffers:
                raise CheckError(f"credits are {sender.credits}, expected {sender.buffers}")

    simulate(world.dut, bench)
    ways = 6 * slices  # three channels to each slice, three back
    if len(world.arrived) != ways or world.arrived.total() < 20 * ways:
        raise CheckError(f"hardly anything came: {world.arrived}")


def step(
    ctx: SimulatorContext, world: World, busy: float, willing: float, deaf: set[int], *, begins: bool = True
) -> None:
    """One cycle of everything around a fan."""
    everything = list(Channel)
    sender, taker = world.requester
    sender.drive(ctx, busy, everything, begins=begins)
    taker.drive(ctx, willing, set())
    for i, (theirs, ours) in enumerate(world.ends):
        theirs.drive(ctx, busy, everything, begins=begins)
        ours.drive(ctx, willing, set(everything) if i in deaf else set())
    world.note()
    world.check(ctx)
    for each, _ in (world.requester, *world.ends):
        each.sample(ctx)


@pytest.mark.parametrize("slices", [2, 4])
def test_everything_comes_once_in_order_and_whole(slices: int, seed: int) -> None:
    print(f"seed {seed}; again: KVNODE_SEED={seed} .venv/bin/pytest tests/hw/test_fan.py")
    play(slices, seed)


def flood(cycles: int, channels: list[Channel], *, deaf: set[int], silent: set[int]) -> World:
    """Everybody but `silent` slices sends all it can on some channels; the slices in `deaf` take nothing."""
    world = World(2, 0)

    async def bench(ctx: SimulatorContext, _: Restart) -> None:
        for _ in range(cycles):
            sender, taker = world.requester
            sender.drive(ctx, 1.0, channels)
            taker.drive(ctx, 1.0, set())
            for i, (theirs, ours) in enumerate(world.ends):
                theirs.drive(ctx, float(i not in silent), channels)
                ours.drive(ctx, float(i not in deaf), set())
            world.note()
            world.check(ctx)
            for each, _ in (world.requester, *world.ends):
                each.sample(ctx)
            await ctx.tick()

    simulate(world.dut, bench)
    return world


def test_slices_share_a_link_evenly_and_fill_it() -> None:
    arrived = flood(600, [Channel.DATA], deaf=set(), silent=set()).arrived
    first, second = (arrived["back", i, Channel.DATA] for i in range(2))
    if abs(first - second) > 60 or first + second < 580:
        raise CheckError(f"{first} and {second} flits in 600 cycles")


def test_one_slice_alone_fills_a_link() -> None:
    world = flood(600, [Channel.DATA], deaf=set(), silent={1})
    assert world.arrived["back", 0, Channel.DATA] > 580
    assert sum(world.arrived["to", i, Channel.DATA] for i in range(2)) > 580


def test_a_slice_that_takes_nothing_stops_no_other_channel_and_nothing_that_comes_back() -> None:
    world = World(2, 0)
    deaf, other = 1, 0

    async def bench(ctx: SimulatorContext, _: Restart) -> None:
        sender, taker = world.requester
        size = sender.buffers[Channel.REQUEST]
        for cycle in range(400):
            # As many REQUESTs to the deaf slice as it has room for, but one; and all that can go to the other one.
            to_deaf = cycle < size - 1
            channel = Channel.REQUEST if to_deaf or cycle % 2 else Channel.DATA
            sender.left = {channel: (deaf if to_deaf else other, 1)}
            sender.drive(ctx, 1.0, [channel])
            taker.drive(ctx, 1.0, set())
            for i, (theirs, ours) in enumerate(world.ends):
                theirs.drive(ctx, 1.0, [Channel.RESPONSE])
                ours.drive(ctx, float(i != deaf), set())
            world.note()
            world.check(ctx)
            for each, _ in (world.requester, *world.ends):
                each.sample(ctx)
            await ctx.tick()

    simulate(world.dut, bench)
    sizes = world.requester[0].buffers
    assert world.arrived["to", deaf, Channel.REQUEST] == sizes[Channel.REQUEST] - 1
    assert world.arrived["to", other, Channel.REQUEST] > 60, "one credit is left, and comes back every three cycles"
    assert world.arrived["to", other, Channel.DATA] > 180
    assert world.arrived["back", deaf, Channel.RESPONSE] > 150


def test_a_requester_that_cannot_speak_counts_as_heard() -> None:
    """A slice has not taken a message, so that there is no credit for another: the others do not find it silent."""
    world = World(2, 0)
    heard: list[int] = []

    async def bench(ctx: SimulatorContext, _: Restart) -> None:
        for cycle in range(60):
            sender, taker = world.requester
            sender.drive(ctx, float(cycle == 0), [Channel.MESSAGE])
            taker.drive(ctx, 1.0, set())
            for i, (theirs, ours) in enumerate(world.ends):
                theirs.drive(ctx, 0.0, [])
                ours.drive(ctx, float(i == 0 or cycle >= 40), set())
            world.note()
            world.check(ctx)
            heard.append(ctx.get(world.dut.heard))
            await ctx.tick()

    simulate(world.dut, bench)
    assert heard[0]
    assert all(heard[4:40])
    assert not any(heard[44:])


def test_valid_never_waits_for_ready() -> None:
    for outputs in ("*__valid", "*__payload"):
        assert combinational_inputs(merge.Merge(params_of(2)), outputs, "*__ready") == []


MUTANTS: dict[str, tuple[Any, Any, str, str]] = {
    "flits go to every slice": (fan, Fan, "(mine | to_all)", "1"),
    "messages go to one slice": (fan, Fan, "(mine | to_all)", "mine"),
    "two credits in a cycle are one": (fan, Fan, "owed.eq(returned - (returned != 0))", "owed.eq(0)"),
    "a message is taken by the first slice": (
        fan,
        Fan,
        "all_have.eq(Cat(taken).all())",
        "all_have.eq(Cat(taken).any())",
    ),
    "packets are interleaved": (merge, merge.Merge, "begun.eq(~(out.ready & out.payload.last))", "begun.eq(0)"),
    "every packet is from slice 0": (merge, merge.Merge, "out.payload.slice.eq(chosen)", "out.payload.slice.eq(0)"),
    "a flit is taken from every slice": (merge, merge.Merge, "out.ready & (chosen == i)", "out.ready"),
}
"""Name to where it is, what it is, what is right and what is wrong."""


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _, target, good, bad = MUTANTS[name]
    where = globals() if target is Fan else vars(fan)
    monkeypatch.setitem(where, target.__name__, mutate(target, good, bad))
    with pytest.raises(CheckError):
        for seed in range(4):
            play(2, seed)


def test_a_fan_that_prefers_a_slice_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        fan, "Merge", mutate(merge.Merge, "next_in_turn(m, asking, turn)", "next_in_turn(m, asking, 0 * turn)")
    )
    with pytest.raises(CheckError):
        test_slices_share_a_link_evenly_and_fill_it()
