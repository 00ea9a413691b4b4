"""Parked READs: each is looked at when it is woken or late, in turn and soon, until it leaves."""

from dataclasses import replace
from unittest.mock import patch

from amaranth import Cat, Module, Mux, Signal
from amaranth.hdl import Assert, Assume, Cover, Fragment
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In

from hw.formal.property import Pdr, Property
from hw.params import TINY
from hw.rtl.layouts import frame_bits
from hw.rtl.node.parking import Parking
from hw.rtl.timer import tick

PARK_CYCLES = 3
"""A READ is late after three to six cycles: no parameter makes its clock that fast, so the proof does. In two cycles
the choice of who asks would hide one that is late at once."""
PARAMS = replace(TINY, tables=replace(TINY.tables, ecc=False))
"""Two entries, of two ports."""

ENTRIES = PARAMS.tables.parked_reads
LATE = 2 * PARK_CYCLES + 1
"""Cycles after which a READ is late whenever the clock ticks."""
WAIT = 2
"""Cycles from when an entry is to be looked at until one asks."""


READ = data.StructLayout(
    {"used": 1, "frame": frame_bits(PARAMS), "port": 1, "woken": 1, "age": range(LATE + 1), "others": 2}
)
"""What is known of an entry: `others` have been picked since it is to be looked at."""


class ParkedReads(wiring.Component):
    """Knows of every entry whose it is, whether it is woken and how long it has waited; who asks is one of those to be
    looked at, and whichever is to be looked at is so after one other at most.

    A slot is taken when it is offered, and not in the cycle of a wake; what asks may be picked, and what was picked
    may leave before the next pick.

    Interface
    ---------
    offer, take, frame, port, wake, wake_frame, wake_all, may_resume, pick, release : In
        Of the unit; `frame` and `port` are of what is taken.
    """

    def __init__(self) -> None:
        self.unit = Parking(PARAMS)
        bits = dict.fromkeys(("offer", "take", "port", "wake", "wake_all", "pick", "release"), In(1))
        frame = self.unit.signature.members["frame"].shape
        super().__init__({**bits, "frame": In(frame), "wake_frame": In(frame), "may_resume": In(2)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        unit = self.unit
        with patch("hw.rtl.node.parking.tick", lambda m, period: tick(m, PARK_CYCLES)):
            m.submodules.unit = Fragment.get(unit, platform)
        self.rows = [Signal(READ, name=f"read_{i}") for i in range(ENTRIES)]
        picked, may_leave, was_offered = Signal(range(ENTRIES)), Signal(), Signal()
        wakes, changes = self.wake | self.wake_all, self.take | self.release
        m.d.comb += [
            getattr(unit, name).eq(getattr(self, name))
            for name in ("offer", "take", "wake", "wake_all", "may_resume", "pick", "release")
        ]
        m.d.comb += [
            unit.frame.eq(self.wake_frame),
            unit.new_entry.frame.eq(self.frame),
            unit.new_entry.stamp.port.eq(self.port),
            Assume(unit.ready | ~(self.offer | changes | self.pick)),
            Assume(~self.take | (was_offered & unit.free & ~wakes & ~self.release & ~self.offer)),
            Assume(~self.release | (may_leave & ~self.pick & ~self.offer)),
            Assume(~self.pick | (unit.asks & ~self.take)),
        ]
        m.d.sync += was_offered.eq((was_offered & ~changes) | self.offer)
        with m.If(self.pick):
            m.d.sync += [picked.eq(unit.slot), may_leave.eq(1)]
        with m.Elif(self.release):
            m.d.sync += may_leave.eq(0)

        self.follow(m, picked)
        self.claim(m, picked, may_leave, was_offered)
        return m

    def follow(self, m: Module, picked: Signal) -> None:
        """What becomes of every entry."""
        unit, rows = self.unit, self.rows
        # The free slots, in the order in which they are taken.
        first, second, free = Signal(init=0), Signal(init=1), Signal(range(ENTRIES + 1), init=ENTRIES)
        with m.If(self.take):
            m.d.sync += [first.eq(second), free.eq(free - 1)]
        with m.If(self.release):
            m.d.sync += free.eq(free + 1)
            with m.If(free == 0):
                m.d.sync += first.eq(picked)
            with m.Else():
                m.d.sync += second.eq(picked)

        due = [
            each.used & (each.woken | (each.age == LATE)) & self.may_resume.bit_select(each.port, 1) for each in rows
        ]
        for i, each in enumerate(rows):
            here = self.pick & (unit.slot == i)
            with m.If(here):
                m.d.sync += each.woken.eq(0)
            with m.If(self.wake_all | (self.wake & (each.frame == self.wake_frame))):
                m.d.sync += each.woken.eq(1)
            with m.If(each.age != LATE):
                m.d.sync += each.age.eq(each.age + 1)
            with m.If(~due[i] | here):
                m.d.sync += each.others.eq(0)
            with m.Elif(self.pick & ~each.others.all()):
                m.d.sync += each.others.eq(each.others + 1)
            with m.If(self.release & (picked == i)):
                m.d.sync += each.used.eq(0)
            with m.If(self.take & (first == i)):
                m.d.sync += [each.eq(0), each.used.eq(1), each.frame.eq(self.frame), each.port.eq(self.port)]
            m.d.comb += Assert(each.others <= 1, "passed over twice")

        # Whichever is to be looked at, one asks.
        for i in range(ENTRIES):
            waited = Signal(range(WAIT + 2), name=f"waited_{i}")
            with m.If(unit.asks | self.pick | self.release | ~due[i]):
                m.d.sync += waited.eq(0)
            with m.Elif(waited <= WAIT):
                m.d.sync += waited.eq(waited + 1)
            m.d.comb += Assert(waited <= WAIT, "forgotten")
        self.all_due = Cat(due).all()

    def claim(self, m: Module, picked: Signal, may_leave: Signal, was_offered: Signal) -> None:
        """What the unit says of them."""
        unit, rows = self.unit, self.rows
        used = [each.used for each in rows]
        chosen = Signal(READ)
        m.d.comb += chosen.eq(Mux(unit.slot, rows[1], rows[0]))
        with m.If(unit.asks):
            m.d.comb += [
                Assert(chosen.used & self.may_resume.bit_select(chosen.port, 1), "none that may go on"),
                Assert(unit.port == chosen.port, "another's port"),
                Assert(chosen.woken | (chosen.age >= PARK_CYCLES), "neither woken nor late"),
                Assert(unit.expired == ~chosen.woken, "woken, and yet late, or the reverse"),
            ]
        with m.If(was_offered):
            m.d.comb += Assert(unit.free == ~Cat(used).all(), "a slot is lost, or comes from nowhere")
        with m.If(may_leave):
            m.d.comb += Assert(unit.entry.frame == Mux(picked, rows[1].frame, rows[0].frame), "another entry")
        m.d.comb += [
            Assert(unit.count == sum(used), "entries are lost count of"),
            Cover(unit.asks & self.pick & unit.expired & self.all_due),
            Cover(self.pick & ~unit.expired & (rows[0].others == 1)),
            Cover(self.release & (unit.count == ENTRIES) & ~unit.expired),
        ]
        return m


PROPERTIES = (
    Property(
        name="parking.turns",
        shows="invariants 10, 11: a parked READ that is woken or late is looked at soon, in turn, until it leaves",
        design=ParkedReads,
        method=Pdr(),
        cover=24,
    ),
)
