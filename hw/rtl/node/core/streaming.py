"""LOOKUP at a key a cycle: the state STREAM, for rings that have no public partition to ask."""

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream

from hw.params.protocol import Status
from hw.rtl.node.core.emission import Emission
from hw.rtl.node.core.guards import first
from hw.rtl.node.core.tables import Tables
from hw.rtl.node.layouts import State, log_layout, verdict_layout
from hw.rtl.node.slots import SlotOp

STAGES = 6
"""Cycles from a key's request to its judgement: four of the CAM, one for the frame's row, one for its session."""


def begin(m: Module, t: Tables) -> None:
    """From ADMIT: the key in hand is the first."""
    m.d.sync += [t.first_key.eq(1), t.asked_all.eq(0), t.ended.eq(0)]
    m.next = "STREAM"


def states(m: Module, t: Tables, e: Emission, operations: stream.Interface) -> None:
    """The keys of one LOOKUP in a pipeline: CAM, ROW, SESSION, JUDGE.

    No other operation is taken meanwhile, so all that changes under a key are the pins of a frame that is hit again:
    they are forwarded. A key is asked for only while there is room for what it will say. A key that ends the command
    leaves those behind it without effect.
    """
    key = data.StructLayout({"item": len(t.op.item), "last": 1})
    busy = Signal(STAGES)
    keys = Signal(data.ArrayLayout(key, STAGES))
    hits = Signal(2)
    indices = Signal(data.ArrayLayout(len(t.index), 2))
    written = Signal(
        data.ArrayLayout(data.StructLayout({"valid": 1, "index": len(t.index), "pins": len(t.frame.pins)}), 2)
    )
    op, answer = t.op, t.cam.responses.payload

    with m.State("STREAM"):
        taken = operations.payload
        asks = t.first_key | (operations.valid & operations.ready)
        m.d.comb += operations.ready.eq(~t.first_key & ~t.asked_all & ~t.ended & e.room(STAGES + 1))
        item = Mux(t.first_key, op.item, taken.item)
        last = Mux(t.first_key, op.last, taken.last)
        with m.If(asks):
            t.look_up(t.ring.partition, Mux(t.first_key, op.key, taken.key))
            m.d.sync += [t.first_key.eq(0), t.asked_all.eq(last)]
        m.d.sync += [busy.eq(Cat(asks, busy)), keys[0].item.eq(item), keys[0].last.eq(last)]
        m.d.sync += [keys[stage].eq(keys[stage - 1]) for stage in range(1, STAGES)]

        # ROW, then SESSION: what was found goes along.
        with m.If(answer.hit):
            t.read_frame(answer.frame)
        with m.If(hits[0]):
            t.read_session(t.arriving.session_slot)
        m.d.comb += [t.pins.offer.eq(1), t.pins.offer_table.eq(t.ring_number)]
        m.d.sync += [
            hits.eq(Cat(answer.hit, hits)),
            indices[0].eq(answer.frame),
            indices[1].eq(indices[0]),
            written[0].valid.eq(0),
            written[1].eq(written[0]),
        ]

        # JUDGE.
        with m.If(busy[-1] & ~t.ended):
            found = hits[1] & t.scopes_alive
            _judge(m, t, e, key=keys[STAGES - 1], found=found, index=indices[1], written=written)
        with m.If(t.ended & (busy == 0)):
            m.next = "IDLE"


def _judge(
    m: Module, t: Tables, e: Emission, *, key: data.View, found: Value, index: Value, written: data.View
) -> None:
    """One key: HIT, PENDING, MISS, or no room for its pin."""
    op, row = t.op, t.frame
    sealed = found & (row.state == State.SEALED)
    pending = found & (row.state == State.WRITING) & t.session_lives(row.session_generation)
    _, status = first(
        (t.failing, Status.UNAVAILABLE),
        (sealed & op.pin & ~t.pins.free, Status.NO_SPACE),
        (sealed, Status.HIT),
        (pending, Status.PENDING),
        (1, Status.MISS),
    )
    hit = status == Status.HIT
    complete = t.failing | (status == Status.NO_SPACE) | key.last | (op.run & ~hit)
    pinned = hit & op.pin
    t.count(t.ring_number, "outstanding", (key.item == 0) - complete)
    with m.If(complete):
        m.d.sync += [t.ended.eq(1), t.stopped.eq(~t.asked_all)]

    pins = Signal.like(row.pins)
    m.d.comb += pins.eq(row.pins + 1)
    for earlier in (written[1], written[0]):
        with m.If(earlier.valid & (earlier.index == index)):
            m.d.comb += pins.eq(earlier.pins + 1)
    with m.If(pinned):
        m.d.comb += [t.pins.op.eq(SlotOp.TAKE), t.pins.new_entry.eq(index)]
        t.count(t.ring_number, "pins", 1)
        m.d.sync += [
            written[0].valid.eq(1),
            written[0].index.eq(index),
            written[0].pins.eq(pins),
        ]
        t.write_pins(index, pins)

    verdict, entry = Signal(verdict_layout()), Signal(log_layout())
    named = hit | (status == Status.PENDING)
    for said in (verdict, entry):
        m.d.comb += [said[name].eq(op[name]) for name in ("kind", "stamp", "tag")]
        m.d.comb += said.item.eq(key.item)
    m.d.comb += [
        verdict.outcome.eq(Mux(op.run | t.failing | (status == Status.NO_SPACE), status, Status.OK)),
        verdict.status.eq(status),
        verdict.complete.eq(complete),
        verdict.named.eq(named),
        verdict.handle.epoch.eq(Mux(named, t.epoch, 0)),
        verdict.handle.generation.eq(Mux(named, row.generation, 0)),
        verdict.handle.frame.eq(Mux(named, index, 0)),
        verdict.handle.slice.eq(Mux(named, t.number, 0)),
        verdict.pinned.eq(pinned),
        verdict.slot.slot.eq(Mux(pinned, t.pins.free_slot, 0)),
        verdict.slot.generation.eq(Mux(pinned, t.pins.free_generation, 0)),
    ]
    e.say(verdict, entry)
