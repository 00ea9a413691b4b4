"""LANDED, SEALED, READ_DONE, DRAINED, LOST and the steps of the hands: the judgements of `pymodel.spec.internal`."""

from amaranth import Cat, Const, Module, Mux, Value

from hw.params.commands import Fate
from hw.params.protocol import Status
from hw.rtl.node.core.blocks import answer_seal, drain, drained, unpin
from hw.rtl.node.core.emission import Emission
from hw.rtl.node.core.tables import HANDS_EVERY, Tables
from hw.rtl.node.layouts import Kind, State


def cases(m: Module, t: Tables, e: Emission) -> None:
    """The cases of JUDGE."""
    with m.Case(Kind.LANDED):
        _landed(m, t, e)
    with m.Case(Kind.SEALED):
        _sealed(m, t, e)
    with m.Case(Kind.READ_DONE):
        _read_done(m, t, e)
    with m.Case(Kind.DRAINED):
        _drained(m, t, e)
    with m.Case(Kind.STEP_FRAMES):
        _step_frames(m, t, e)
    with m.Case(Kind.STEP_PINS):
        _step_pins(m, t, e)
    with m.Case(Kind.LOST):
        _lost(m, t, e)


def _landed(m: Module, t: Tables, e: Emission) -> None:
    """Memory has answered writes, in order of segments; an error stops the landed prefix."""
    frame = t.frame
    op = t.op
    row = t.row
    whole = frame.landed == frame.answered
    t.write_frame(
        answered=frame.answered + op.count,
        landed=Mux(whole, frame.landed + op.count - ~op.ok, frame.landed),
    )
    t.settle(op.count)
    m.d.comb += t.parking.wake.eq(1)
    with m.If(t.writing & frame.sealing & (row.answered == row.accepted)):
        e.follow(Kind.SEALED)
    drained(m, t, e)
    _answer_lost(m, t, e)
    e.log()


def _sealed(m: Module, t: Tables, e: Emission) -> None:
    """The done bit, or MEM_ERROR, or STALE; MEM_ERROR and nothing else, if the row has been lost since."""
    frame = t.frame
    m.next = "IDLE"
    with m.If(~t.quarantined):
        with m.If(~t.alive):
            drain(m, t, e)
        with m.Elif(frame.landed != frame.accepted):
            drain(m, t, e, seal=Status.MEM_ERROR)
        with m.Else():
            t.write_frame(state=State.SEALED, sealing=0)
            t.note_evictable()
            answer_seal(t, e, Status.OK)
            m.d.comb += t.parking.wake.eq(1)
            e.notices.event(Fate.STORED)
        e.log()
    with m.Else():
        _answer_lost(m, t, e)


def _answer_lost(m: Module, t: Tables, e: Emission) -> None:
    """A SEAL that waits for a block whose row is lost ends, as soon as memory answers any of its writes."""
    with m.If(t.quarantined & t.seal.sealing):
        m.d.comb += t.ends_lost_seal.eq(1)
        e.answer_other(Kind.SEAL, t.seal.sealing_stamp, t.seal.sealing_tag, Status.MEM_ERROR)
        m.next = "EMIT"


def _read_done(m: Module, t: Tables, e: Emission) -> None:
    """The bytes have left; a damaged block dies."""
    frame = t.frame
    op = t.op
    with m.If(~op.ok & (t.writing | t.sealed)):
        e.notices.event(Fate.DAMAGED, when=t.sealed & t.alive)
        drain(m, t, e, reads=frame.reads - 1)
    with m.Else():
        t.write_frame(reads=frame.reads - 1)
        t.note_evictable()
        drained(m, t, e)
    e.answer(Mux(op.ok, Status.OK, Status.POISON))


def _drained(m: Module, t: Tables, e: Emission) -> None:
    """DRAINING to FREE; a frame with no generation left leaves service. Nothing, if the row has been lost since."""
    replacement = t.replacement
    m.next = "IDLE"
    m.d.comb += [replacement.give_frame.eq(t.index), replacement.give_pool.eq(t.pool_of(t.index))]
    with m.If(~t.quarantined):
        t.write_frame(state=Mux(t.worn, State.QUARANTINED, State.FREE))
        t.lose_use()
        m.d.comb += replacement.give.eq(~t.worn)
        with m.If(t.worn):
            t.retire()
        e.log()


def _step_frames(m: Module, t: Tables, e: Emission) -> None:
    """The sweep drains a dead block."""
    m.next = "IDLE"
    with m.If((t.writing | t.sealed) & ~t.alive):
        drain(m, t, e)
        e.log()


def _step_pins(m: Module, t: Tables, e: Emission) -> None:
    """A pin of a lost ring is returned."""
    m.next = "IDLE"
    with m.If(t.pins.used & t.rings[t.pin_table].lost):
        unpin(m, t, e)
        e.log()


def _lost(m: Module, t: Tables, e: Emission) -> None:
    """A ring is gone: its sessions are dead at once. What is told again has no effect, and is not logged."""
    op = t.op
    m.next = "IDLE"
    lost = t.rings[t.ring_index(op.ring)]
    with m.If((lost.bound | lost.administrative) & ~lost.lost):
        m.d.sync += lost.lost.eq(1)
        t.sweep(t.share_of(op.ring.port))
        e.log()


def due(t: Tables, begins: Value) -> Value:
    """In IDLE: whether no operation is taken, because hands and scrubbers have waited for long enough.

    An operation that is offered `begins`, unless it is a LOOKUP's key behind the first: no step comes before such.
    """
    return ~t.failed & ((t.begun > HANDS_EVERY) | (((t.begun == HANDS_EVERY) | urgent(t)) & begins))


def urgent(t: Tables) -> Value:
    """Whether a parked READ or a migration can go on: every second turn is theirs, whatever else there is to do."""
    return t.turn.lasts(t.parking.asks | t.fences.asks, t.params.times.other) & ~t.stepped


def turn(m: Module, t: Tables) -> None:
    """In IDLE, when no operation is taken: a step of a hand, or scrubbing.

    In a turn that was due the scrubbers have two cycles, which is what they need for a row, behind the hand's step, or
    in its place. Where partitions are isolated, hands rest at the end of their partition's turn.
    """
    with m.If(t.begun > HANDS_EVERY):
        m.d.comb += t.idle.eq(1)
        m.d.sync += t.begun.eq(Mux(t.begun == HANDS_EVERY + 2, 0, t.begun + 1))
    with m.Elif(urgent(t)):
        m.d.sync += t.stepped.eq(1)
        _go_on(m, t)
    with m.Elif(t.turn.lasts(Const(1), t.params.times.other)):
        m.d.sync += t.stepped.eq(0)
        _hands(m, t)
        with m.If(t.begun == HANDS_EVERY):
            m.d.sync += t.begun.eq(HANDS_EVERY + 1 + t.idle)
    with m.Else():
        m.d.comb += t.idle.eq(1)


def find_pins(m: Module, t: Tables) -> None:
    """In every state: a hand goes from ring to ring, one a cycle, and stays at a lost one until its pins are back.

    Where partitions are isolated, each has a hand, which goes in its turns, from port to port of its own.
    """
    held = Cat(_of_share(t, ring.lost & (ring.pins != 0), i) for i, ring in enumerate(t.rings))
    m.d.comb += t.pins_found.eq(held.bit_select(t.hand_ring, 1))
    with m.If(~t.pins_found):
        m.d.sync += t.ring_hand.eq(Mux(t.ring_hand == len(t.rings) // t.params.shares - 1, 0, t.ring_hand + 1))


def _of_share(t: Tables, value: Value, ring: int) -> Value:
    """`value`, if the ring of this number is of a port of whose turn it is."""
    return t.turn.only(value, ring // t.params.tables.rings_per_port)


def _go_on(m: Module, t: Tables) -> None:
    """A parked READ, or else a migration, is looked at."""
    op, parking, fences = t.op, t.parking, t.fences
    m.d.sync += op.as_value().eq(0)
    with m.If(parking.asks):
        m.d.comb += [parking.pick.eq(1), t.resumed.eq(1)]
        m.d.sync += [
            op.kind.eq(Mux(parking.expired, Kind.EXPIRED_READ, Kind.STEP_PARKED)),
            op.slot.slot.eq(parking.slot),
        ]
        m.next = "PARKED"
    with m.Else():
        m.d.comb += fences.pick.eq(1)
        m.d.sync += [op.kind.eq(fences.kind), op.slot.slot.eq(fences.slot)]
        t.read_session(fences.slot)
        m.next = "JUDGE"


def _hands(m: Module, t: Tables) -> None:
    """One step of a hand that has work. Pins and sessions of lost rings first, then frames, then scrubbers."""
    tables, shares, op = t.params.tables, t.params.shares, t.op
    ring_hand, pin_hand, session_hand = t.hand_ring, t.pin_hand, t.hand_session
    sessions_left = Cat(_of_share(t, ring.lost & (ring.sessions != 0), i) for i, ring in enumerate(t.rings)).any()

    m.d.sync += op.as_value().eq(0)
    with m.If(t.pins_found):
        m.d.sync += [
            op.kind.eq(Kind.STEP_PINS),
            op.ring.port.eq(ring_hand // tables.rings_per_port),
            op.ring.ring.eq(ring_hand % tables.rings_per_port),
            op.slot.slot.eq(pin_hand),
            pin_hand.eq(Mux(pin_hand == tables.pins_per_ring - 1, 0, pin_hand + 1)),
        ]
        t.read_pin(ring_hand, pin_hand)
        m.next = "PIN"
    with m.Elif(sessions_left):
        m.d.sync += [
            op.kind.eq(Kind.STEP_SESSIONS),
            op.slot.slot.eq(session_hand),
            t.session_hand.eq(Mux(t.session_hand == tables.sessions // shares - 1, 0, t.session_hand + 1)),
        ]
        t.read_session(session_hand)
        m.next = "JUDGE"
    with m.Elif(t.sweeps != 0):
        m.d.sync += [
            op.kind.eq(Kind.STEP_FRAMES),
            op.handle.frame.eq(t.hand_frame),
            t.frame_hand.eq(Mux(t.frame_hand == t.hand_frames - 1, 0, t.frame_hand + 1)),
            t.sweeps.eq(t.sweeps - 1),
        ]
        t.read_frame(t.hand_frame)
        m.next = "OWNER"
    with m.Else():
        m.d.comb += t.idle.eq(1)
