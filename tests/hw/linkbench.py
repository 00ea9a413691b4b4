"""Both ends of a link with replay in the Amaranth simulator, with wires and users around them."""

from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import replace as changed
from random import Random
from typing import Any
from unittest.mock import patch

from amaranth import Module, ResetInserter
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In
from amaranth.sim import SimulatorContext

from hw.params import TINY, Params
from hw.rtl.fabric import Channel, layouts, replay, words
from hw.rtl.fabric.link_end import LinkEnd
from hw.rtl.fabric.words import Buffers
from hw.tb.link.user import Sent, User
from hw.tb.link.wire import NOTHING, NoisyWire, Piece
from tests.hw.simulate import Restart, simulate

THERE: Buffers = {Channel.REQUEST: 5, Channel.DATA: 6}
BACK: Buffers = {Channel.RESPONSE: 3, Channel.DATA: 8, Channel.MESSAGE: 2}
"""Credits of the two directions."""

CONTENT_BITS = 24
FLIT = data.StructLayout({"channel": Channel, "data": CONTENT_BITS})
"""A link treats all but the channel alike, and the simulator takes long over what is wide."""


def small_flits() -> ExitStack:
    """Let flits be small while a link is built."""
    stack = ExitStack()
    for module in (layouts, replay, words):
        stack.enter_context(patch.object(module, "flit_layout", lambda params: FLIT))
    return stack


def link_params(**settings: int) -> Params:
    """Return TINY with a link with replay, and these parameters of it."""
    return changed(TINY, link=changed(TINY.link, replay=True, **settings))


class Ends(wiring.Component):
    """Two ends, each with a reset of its own, `resets` a bit an end."""

    resets: In(2)

    def __init__(self, params: Params, buffers: tuple[Buffers, Buffers]):
        self.buffers = buffers
        there, back = buffers
        with small_flits():
            self.ends = LinkEnd(params, sent=there, received=back), LinkEnd(params, sent=back, received=there)
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for i, end in enumerate(self.ends):
            reset: Any = ResetInserter(self.resets[i])
            m.submodules[f"end_{i}"] = reset(end)
        return m


class Seat:
    """A user at its end: resets go with those of the end, as docs/link.md says.

    - `follows`: it is in reset as long as the link is not up, as a requester is; else only while it is held, as a port.
    - `hold`: cycles for which it is held yet.
    """

    def __init__(self, end: LinkEnd, user: User, wire: NoisyWire, *, follows: bool, random: Random):
        self.end, self.user, self.wire, self.follows = end, user, wire, follows
        self.hold = 0
        self.failed = 0
        self._random = random
        self._was_out = self._was_up = follows
        self._next: tuple[Sent | None, int] = (None, 0)

    def start_again(self, ctx: SimulatorContext) -> None:
        """In the cycle of a reset of the end."""
        self.hold, self._was_out, self._was_up, self._next = 2 * self.follows, False, False, (None, 0)
        ctx.set(self.end.send.valid, 0)
        ctx.set(self.end.receive.credits, 0)
        self.user.reset()

    def step(self, ctx: SimulatorContext) -> None:
        """Do what is done in a cycle."""
        end, user = self.end, self.user
        up, lost = ctx.get(end.up), ctx.get(end.lost)
        self.failed += ctx.get(end.failed)
        if not self.hold and ((lost and not self.follows) or (self._was_up and not up and self.follows)):
            self.hold = self._random.randint(1, 12)
        self._was_up = bool(up)
        ctx.set(end.hold, self.hold > 0)
        out = self.hold > 0 or (self.follows and not up)
        self.hold -= self.hold > 0
        flit, returned = self._next
        ctx.set(end.send.valid, flit is not None)
        if flit is not None:
            ctx.set(end.send.flit, {"channel": Channel(flit.channel), "data": flit.content})
        ctx.set(end.receive.credits, returned)
        if out and not self._was_out:
            user.reset()
        self._was_out = out
        self._next = None, 0
        if not out:
            user.credit(ctx.get(end.send.credits))
            if ctx.get(end.receive.valid):
                got = ctx.get(end.receive.flit)
                user.receive(Sent(int(got.channel), got.data))
            self._next = user.send(CONTENT_BITS), user.take()


class Bench:
    """Both ends, stepped cycle by cycle; the first end is a requester's."""

    def __init__(self, ctx: SimulatorContext, dut: Ends, *, latency: int, seed: int):
        self.ctx, self._dut, self.cycle = ctx, dut, 0
        self.random = Random(seed)
        there, back = dut.buffers
        users = [
            User(sent=there, received=back, random=self.random),
            User(sent=back, received=there, random=self.random),
        ]
        users[0].peer, users[1].peer = users[1], users[0]
        widths = [len(end.outgoing.bits) for end in dut.ends]
        wires = [NoisyWire(latency=latency, width=width, random=self.random) for width in widths]
        each = zip(dut.ends, users, wires, (True, False), strict=True)
        self.seats = [Seat(*parts, follows=follows, random=self.random) for *parts, follows in each]

    async def reset(self, i: int) -> None:
        """Reset an end and its user, for a cycle."""
        self.ctx.set(self._dut.resets[i], 1)
        await self.step(reset=self.seats[i])
        self.ctx.set(self._dut.resets[i], 0)

    async def step(self, cycles: int = 1, *, reset: Seat | None = None) -> None:
        """Run so many cycles, in which this one is reset."""
        for _ in range(cycles):
            for seat in self.seats:
                if seat is reset:
                    seat.start_again(self.ctx)
                else:
                    seat.step(self.ctx)
            pieces = []
            for seat in self.seats:
                out = seat.end.outgoing
                valid = self.ctx.get(out.valid)
                piece = Piece(1, self.ctx.get(out.first), self.ctx.get(out.bits)) if valid else NOTHING
                pieces.append(seat.wire.step(piece))
            for seat, piece in zip(self.seats, reversed(pieces), strict=True):
                into = seat.end.incoming
                self.ctx.set(into.valid, piece.valid)
                self.ctx.set(into.first, piece.first)
                self.ctx.set(into.bits, piece.bits)
            await self.ctx.tick()
            self.cycle += 1

    @property
    def up(self) -> bool:
        """Both ends are."""
        return all(bool(self.ctx.get(seat.end.up)) for seat in self.seats)

    async def until(self, met: Callable[[], bool], limit: int) -> int:
        """Run until it is, and return the cycles that it took."""
        begun = self.cycle
        while not met():
            assert self.cycle - begun < limit, f"not within {limit} cycles"
            await self.step()
        return self.cycle - begun


def run(
    bench: Callable[[Bench], Awaitable[None]],
    *,
    params: Params,
    seed: int,
    latency: int | None = None,
    buffers: tuple[Buffers, Buffers] = (THERE, BACK),
) -> None:
    """Run `bench` on two ends with these credits, with wires of `latency`, or as long as the parameters say."""
    dut = Ends(params, buffers)

    async def play(ctx: SimulatorContext, restart: Restart) -> None:
        await bench(Bench(ctx, dut, latency=params.link.latency if latency is None else latency, seed=seed))

    simulate(dut, play)
