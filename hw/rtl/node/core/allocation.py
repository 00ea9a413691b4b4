"""ALLOC: the judgement of `pymodel.spec.blocks.alloc`, and the states in which a block comes to its frame."""

from amaranth import Module, Mux, Signal

from hw.params.commands import Fate
from hw.params.protocol import ModelState, Status
from hw.rtl.layouts import CamOp
from hw.rtl.node.core.blocks import drop
from hw.rtl.node.core.emission import Emission
from hw.rtl.node.core.guards import first
from hw.rtl.node.core.tables import Tables
from hw.rtl.node.layouts import Kind, State
from hw.rtl.node.scopes import ScopeOp


def cases(m: Module, t: Tables, e: Emission) -> None:
    """The case of JUDGE."""
    op, frame, replacement, standing = t.op, t.frame, t.replacement, t.session_status
    with m.Case(Kind.ALLOC):
        sizes = Signal(32)
        with m.Switch(replacement.usage.limits_of.pool):
            for i, pool in enumerate(t.params.pools):
                with m.Case(i):
                    m.d.comb += sizes.eq(pool.frame_bytes)
        refused, refusal = first(
            (standing.matches(Status.DENIED, Status.STALE), standing),
            (t.models[op.model] != ModelState.LIVE, Status.RETIRED),
            (op.length > sizes, Status.RANGE),
            (standing == Status.PENDING, Status.PENDING),
        )
        with m.If(refused):
            e.answer(refusal)
        with m.Elif(t.found.hit & t.alive):
            e.answer(Mux(t.writing, Status.PENDING, Status.EXISTS))
            e.name(t.index, frame.generation)
            with m.If(t.sealed):
                m.d.comb += replacement.clock.words.referenced.eq(1)
                t.note_evictable()
        with m.Elif(~t.found.hit & t.found.full):
            m.d.comb += t.refused.eq(1)
            e.answer(Status.NO_SPACE)
        with m.Else():
            m.d.comb += replacement.choose.eq(1)
            m.next = "CHOOSE"


def states(m: Module, t: Tables, e: Emission) -> None:
    """CHOOSE waits for a frame. EVICT takes a victim from its partition. CLAIM makes the frame WRITING. VICTIM waits
    for a row. For a frame that turns out to be QUARANTINED, another is chosen.
    """
    replacement = t.replacement

    with m.State("CHOOSE"), m.If(replacement.done):
        m.d.sync += t.chosen.eq(replacement.frame)
        t.read_frame(replacement.frame)
        with m.If(~replacement.found | t.failing):
            e.answer(Mux(replacement.at_quota, Status.QUOTA, Status.NO_SPACE))
        with m.Elif(replacement.evict):
            m.next = "VICTIM"
        with m.Else():
            m.d.comb += replacement.take.eq(1)
            m.next = "REACH"

    with m.State("VICTIM"):
        t.read_tag()
        m.next = "EVICT"

    with m.State("EVICT"):
        with m.If(t.quarantined):
            t.note_evictable()
            m.d.comb += replacement.choose.eq(1)
            m.next = "CHOOSE"
        with m.Else():
            m.d.comb += t.evicted.eq(t.scopes_alive)
            e.notices.event(Fate.EVICTED, when=t.scopes_alive)
            t.unlink()
            t.lose_use()
            m.next = "REACH"

    _replace(m, t, e)

    with m.State("CLAIM"):
        with m.If(t.quarantined):
            t.retire()
            t.note_evictable()
            m.d.comb += replacement.choose.eq(1)
            m.next = "CHOOSE"
        with m.Else():
            _claim(m, t, e)


def _replace(m: Module, t: Tables, e: Emission) -> None:
    """REACH asks for the row of a dead block of the same key, if there is one; REPLACE drains it, and the new one takes
    its place in the CAM. OLD and FETCH wait for a row.
    """
    old = t.found.hit & (t.found.frame != t.chosen)

    with m.State("REACH"):
        m.next = "CLAIM"
        with m.If(old):
            t.read_frame(t.found.frame)
            m.next = "OLD"

    with m.State("OLD"):
        t.read_session(t.arriving.session_slot)
        m.next = "REPLACE"

    with m.State("REPLACE"):
        with m.If(t.writing | t.sealed):
            t.leave_scopes()
            drop(m, t, e)
        t.read_frame(t.chosen)
        m.next = "FETCH"

    with m.State("FETCH"):
        m.next = "CLAIM"


def _claim(m: Module, t: Tables, e: Emission) -> None:
    """The frame is the block's."""
    op, frame, replacement = t.op, t.frame, t.replacement
    request, words, usage = t.cam.requests, replacement.clock.words, replacement.usage
    generation = Signal.like(frame.generation)
    m.d.comb += [
        generation.eq(frame.generation + 1),
        t.partition_scopes.op.eq(ScopeOp.ENTER),
        t.partition_scopes.index.eq(t.ring.partition),
        t.model_scopes.op.eq(ScopeOp.ENTER),
        t.model_scopes.index.eq(op.model),
        words.claimed.eq(1),
        words.owner.eq(t.ring.partition),
        usage.gain.eq(1),
        usage.gain_index.eq(t.ring.partition),
        request.valid.eq(1),
        request.payload.op.eq(CamOp.UPDATE),
        request.payload.tag.eq(t.tag(t.ring.partition)),
        request.payload.frame.eq(t.chosen),
        request.payload.valid.eq(1),
        request.payload.place.eq(t.found.place),
    ]
    t.write_frame(
        state=State.WRITING,
        generation=generation,
        partition=t.ring.partition,
        partition_stamp=t.partition_scopes.generation,
        model=op.model,
        model_stamp=t.model_scopes.generation,
        session_slot=op.slot.slot,
        session_generation=op.slot.generation,
        bound=op.length,
        length=0,
        whole=1,
        accepted=0,
        answered=0,
        landed=0,
        crc=0,
        sealing=0,
        pins=0,
        reads=0,
        place=t.found.place,
    )
    t.note_evictable()
    e.answer(Status.GRANTED)
    e.name(t.chosen, generation)
