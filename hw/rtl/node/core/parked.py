"""Parked READs: a step goes on with one of them; the time of another is up."""

from amaranth import Module

from hw.params.protocol import Status
from hw.rtl.node.core.blocks import reading, start
from hw.rtl.node.core.emission import Emission
from hw.rtl.node.core.tables import Tables
from hw.rtl.node.layouts import Kind


def cases(m: Module, t: Tables, e: Emission) -> None:
    """The cases of JUDGE."""
    with m.Case(Kind.STEP_PARKED):
        _step(m, t, e)
    with m.Case(Kind.EXPIRED_READ):
        m.d.comb += t.parking.release.eq(1)
        e.answer(Status.PENDING)


def _step(m: Module, t: Tables, e: Emission) -> None:
    """It is told what a new READ would be told; PENDING: nothing, and it waits on."""
    refused, why = reading(t)
    with m.If(~t.ring.lost & refused & (why == Status.PENDING)):
        m.d.comb += t.stays.eq(1)
        m.next = "IDLE"
    with m.Else():
        m.d.comb += t.parking.release.eq(1)
        with m.If(t.ring.lost | refused):
            e.answer(why)
        with m.Else():
            start(t, e)


def states(m: Module, t: Tables) -> None:
    """PARKED: the entry is the operation; its row is read."""
    op, entry = t.op, t.parking.entry
    with m.State("PARKED"):
        m.d.sync += [op[name].eq(entry[name]) for name in ("stamp", "tag", "segment", "count")]
        m.d.sync += [
            op.handle.frame.eq(entry.frame),
            op.handle.generation.eq(entry.generation),
            op.handle.epoch.eq(t.epoch),
        ]
        t.read_frame(entry.frame)
        m.next = "OWNER"
