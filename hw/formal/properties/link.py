"""Links with replay: both ends begin anew together, every flit comes once and in order, and no credit is lost."""

from dataclasses import replace as changed
from typing import Any
from unittest.mock import patch

from amaranth import Cat, Module, Mux, ResetInserter, Signal, Value
from amaranth.hdl import Assert, Assume, Cover
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In

from hw.formal.internals import open_up
from hw.formal.property import Pdr, Property
from hw.params import TINY
from hw.rtl.fabric import Channel, acceptance, credits, join, link_end, replay
from hw.rtl.fabric.words import Buffers, Phase

LATENCY = 2
"""Cycles from a word to who hears it."""

BUFFERS: Buffers = {Channel.REQUEST: 2}
"""Credits; numbers of flits are counted modulo 8. Nothing in a link but the counts of credits knows of channels."""

CALM = LATENCY + 4
"""Cycles after which all credits have come, if no answer is lost: the wire, a register, and two more."""

FLIT = data.StructLayout({"mark": 1})


def lossy(m: Module, name: str, word: Value, lost: Value, *, stale: bool = False) -> tuple[Value, Value]:
    """Return whether a word comes out of a wire, and which: one that is not `lost` when it goes in, `LATENCY` later.

    A wire that may be `stale` has anything on it in the beginning, and no reset changes that.
    """
    valid: Value = ~lost
    for i in range(LATENCY):
        next_valid = Signal(name=f"{name}_valid_{i}", reset_less=stale)
        next_word = Signal(len(word), name=f"{name}_word_{i}", reset_less=True)
        m.d.sync += [next_valid.eq(valid), next_word.eq(word)]
        valid, word = next_valid, next_word
    return valid, word


class LinkJoin(wiring.Component):
    """What an end hears in one time of being up was all said in one such time of the other; nobody else hears that; and
    if it has heard anything, then it was said by that one.

    A time of each end is picked, and words say whether they are of it. Either end is reset, held and gives up whenever
    it likes; any word is lost.

    Interface
    ---------
    crash, hold, give_up, lose, pick : In, a bit an end
    """

    def __init__(self) -> None:
        super().__init__({name: In(2) for name in ("crash", "hold", "give_up", "lose", "pick")})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        ends = [join.Join(quiet_cycles=2 * LATENCY) for _ in range(2)]
        picked, words = [], []
        for i, end in enumerate(ends):
            crash: Any = ResetInserter(self.crash[i])
            m.submodules[f"end_{i}"] = crash(end)
            was_up, mine, used = Signal(name=f"was_up_{i}"), Signal(name=f"mine_{i}"), Signal(name=f"used_{i}")
            now = Signal(name=f"picked_{i}")
            m.d.comb += [
                now.eq(end.up & Mux(was_up, mine, self.pick[i] & ~used)),
                end.hold.eq(self.hold[i]),
                end.give_up.eq(self.give_up[i]),
            ]
            m.d.sync += [was_up.eq(end.up & ~self.crash[i]), mine.eq(now), used.eq(used | now)]
            picked.append(now)
            words.append(lossy(m, f"wire_{i}", Cat(end.phase, now), self.lose[i], stale=True))
        picked_hears_picked, picked_hears_other = [], []
        for i, end in enumerate(ends):
            heard, word = words[1 - i]
            m.d.comb += [end.heard.eq(heard), end.said.eq(word[:2])]
            listens = Signal(name=f"listens_{i}")
            m.d.comb += listens.eq(heard & end.up & (word[:2] == Phase.UP))
            one, other, had = Signal(name=f"one_{i}"), Signal(name=f"other_{i}"), Signal(name=f"had_{i}")
            hears_one, hears_other = listens & word[2], listens & ~word[2]
            with m.If(end.up & ~self.crash[i]):
                m.d.sync += [one.eq(one | hears_one), other.eq(other | hears_other)]
            with m.Else():
                m.d.sync += [one.eq(0), other.eq(0), had.eq(had | one)]
            m.d.comb += [
                Assert(~(hears_one & other) & ~(hears_other & one), "two times of the other end in one of this"),
                Assert(~(hears_one & had), "a time of the other end in two of this"),
                Cover(had & end.joined & other),
            ]
            both, third = Signal(name=f"both_{i}"), Signal(name=f"third_{i}")
            m.d.sync += [both.eq(both | (picked[i] & hears_one)), third.eq(third | (picked[i] & hears_other))]
            picked_hears_picked.append(both)
            picked_hears_other.append(third)
        for i in range(2):
            m.d.comb += Assert(
                ~(picked_hears_picked[i] & picked_hears_other[1 - i]), "one hears another than it is heard by"
            )
        return m


class LinkHeld(wiring.Component):
    """In the cycle after one of `hold`, however short, an end is down and its lanes say nothing.

    Interface
    ---------
    incoming, send_valid, returned, hold : In
        Anything, at any time.
    """

    def __init__(self) -> None:
        params = changed(TINY, link=changed(TINY.link, replay=True))
        self._end = link_end.LinkEnd(params, sent=BUFFERS, received=BUFFERS)
        super().__init__(
            {
                "incoming": In(self._end.incoming.signature.flip()),
                "send_valid": In(1),
                "returned": In(1),
                "hold": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m, end = Module(), self._end
        m.submodules.end = end
        wiring.connect(m, wiring.flipped(self.incoming), end.incoming)
        held, was_up = Signal(), Signal()
        channel = Channel.REQUEST.value
        m.d.comb += [
            end.send.valid.eq(self.send_valid),
            end.receive.credits[channel].eq(self.returned),
            end.hold.eq(self.hold),
        ]
        m.d.sync += [held.eq(self.hold), was_up.eq(end.up)]
        m.d.comb += [
            Assert(~held | ~end.receive.valid, "a flit of before"),
            Assert(~held | ~end.send.credits.any(), "a credit of before"),
            Assert(~held | ~(end.up | end.lost), "not down"),
            Cover(held & was_up),
        ]
        return m


class Direction(wiring.Component):
    """The sending side of one end and the receiving side of the other, over wires that lose any word.

    Interface
    ---------
    valid, flit : In
        What is to be sent.
    ask, joined, again : In
        As of `Replay`: whenever they like.
    lose_flow, lose_answer : In
    """

    def __init__(self) -> None:
        with patch.object(replay, "flit_layout", lambda params: FLIT):
            self._replay = replay.Replay(TINY, BUFFERS)
        self._acceptance = acceptance.Acceptance(BUFFERS)
        names = ("valid", "ask", "joined", "again", "lose_flow", "lose_answer")
        super().__init__({name: In(1) for name in names} | {"flit": In(FLIT)} | self.others())

    def others(self) -> dict[str, Any]:
        """Further members."""
        return {}

    def elaborate(self, platform: object) -> Module:
        m = Module()
        sender, taker = self._replay, self._acceptance
        m.submodules.replay, self.registers = open_up(sender)
        m.submodules.acceptance = taker
        m.d.comb += [
            sender.valid.eq(self.valid),
            sender.flit.eq(self.flit),
            sender.ask.eq(self.ask),
            sender.joined.eq(self.joined),
            sender.again.eq(self.again),
        ]
        filled = Signal()
        m.d.sync += filled.eq(self.ask)
        word = Cat(sender.flow, sender.carried)
        heard, there = lossy(m, "flow", word, self.lose_flow | ~filled)
        m.d.comb += [taker.heard.eq(heard), taker.flow.eq(there[: len(sender.flow.as_value())])]
        self.arriving = data.View(FLIT, there[len(sender.flow.as_value()) :])
        said = Cat(taker.answer, self.beside(m))
        answered, back = lossy(m, "answer", said, self.lose_answer)
        m.d.comb += [sender.answered.eq(answered), sender.answer.eq(back[: len(taker.answer.as_value())])]
        self.claim(m, answered, back[len(taker.answer.as_value()) :])
        return m

    def beside(self, m: Module) -> Value:
        """What else an answer says."""
        return Signal(0)

    def claim(self, m: Module, answered: Value, beside: Value) -> None:
        """Say what is claimed."""
        raise NotImplementedError


class LinkOrder(Direction):
    """Any flit, followed by its number, is the one that comes after as many others as were sent before it."""

    def others(self) -> dict[str, Any]:
        """Which flit is followed."""
        return {"pick": In(1)}

    def claim(self, m: Module, answered: Value, beside: Value) -> None:
        """Never more flits than credits are sent and not acknowledged."""
        sender, taker, flit = self._replay, self._acceptance, self.arriving
        inside = (self.registers["end"] - self.registers["kept"])[: len(self.registers["end"])]
        m.d.comb += Assume(~self.valid | (inside < sum(BUFFERS.values())))
        ahead = Signal(range(2 * sum(BUFFERS.values())))
        under_way, gone, marked = Signal(), Signal(), Signal(1)
        mark = self.valid & self.pick & ~under_way & ~gone
        comes = taker.take
        here = under_way & (ahead == 0)
        with m.If(~gone & ~under_way):
            m.d.sync += ahead.eq(ahead + (self.valid & ~mark) - comes)
        with m.Elif(under_way & (ahead != 0)):
            m.d.sync += ahead.eq(ahead - comes)
        with m.If(mark):
            m.d.sync += [under_way.eq(1), marked.eq(self.flit.mark)]
        with m.If(here & comes):
            m.d.sync += [under_way.eq(0), gone.eq(1)]
        m.d.comb += [
            Assert(~(here & comes) | (flit.mark == marked), "another flit in its place"),
            Assert(~comes | under_way | gone | (ahead != 0), "a flit that nobody sent"),
            Cover(gone & sender.replayed),
        ]


class LinkCredits(Direction):
    """Who sends against credits has those of all flits that have been taken, no more and no fewer.

    So a flit finds room, in the buffer that it is kept in and in the one that it is sent to; and when no answer is lost
    for a while, all credits that were given back have come.

    Interface
    ---------
    free : In
        A flit leaves the buffer at the other end.
    """

    def others(self) -> dict[str, Any]:
        """Who takes flits."""
        return {"free": In(1)}

    def beside(self, m: Module) -> Value:
        """Credits that were given back."""
        m.submodules.there = there = credits.Credits(sent={}, received=BUFFERS)
        m.d.comb += there.returned.request.eq(self.free)
        self._taken = there.taken.request
        return there.taken.as_value()

    def claim(self, m: Module, answered: Value, beside: Value) -> None:
        """Count every flit and credit where it is."""
        size, here = sum(BUFFERS.values()), credits.Credits(sent=BUFFERS, received={})
        m.submodules.here, registers = open_up(here)
        m.d.comb += [here.heard.eq(answered), here.told.eq(beside)]
        end, accepted = self.registers["end"], self._acceptance.answer.number
        kept = (end - self.registers["kept"])[: len(end)]
        under_way = (end - accepted)[: len(end)]
        owed = (self._taken - registers["done_request"])[: size.bit_length()]
        given = here.given.request
        left, held, calm = Signal(range(size + 2), init=size), Signal(range(size + 2)), Signal(range(CALM + 1))
        m.d.sync += [
            left.eq(left - self.valid + given),
            held.eq(held + self._acceptance.take - self.free),
            calm.eq(Mux(self.lose_answer | self.free, 0, calm + (calm != CALM))),
        ]
        m.d.comb += [
            Assume(~self.valid | (left != 0)),
            Assume(~self.free | (held != 0)),
            Assert(left + under_way + held + owed + given == size, "a credit is lost or made"),
            Assert(left <= size, "a credit for no flit"),
            Assert(held <= size, "a flit without a credit"),
            Assert(kept <= size, "a flit that has no room to be kept in"),
            Assert(under_way <= kept, "a flit is acknowledged that has not come"),
            Assert((calm != CALM) | (owed == 0), "a credit that does not come"),
            Cover((calm == CALM) & (held == size)),
        ]


PROPERTIES = (
    Property(
        name="link.join",
        shows="the ends of a link begin anew together: nothing of before is taken for new",
        design=LinkJoin,
        method=Pdr(),
        cover=30,
    ),
    Property(
        name="link.held",
        shows="a hold of one cycle is enough: behind it an end is down, and no flit or credit of before comes",
        design=LinkHeld,
        method=Pdr(),
        cover=40,
    ),
    Property(
        name="link.order",
        shows="invariant 10: over wires that lose any word, flits arrive once, in order and unchanged",
        design=LinkOrder,
        method=Pdr(),
        cover=20,
    ),
    Property(
        name="link.credits",
        shows="invariant 10: over wires that lose any word, no credit is lost or made, and every flit finds room",
        design=LinkCredits,
        method=Pdr(),
        cover=20,
    ),
)
