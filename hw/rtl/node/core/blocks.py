"""LOOKUP, WRITE, SEAL, ABORT, READ, UNPIN, DROP: the judgements of `pymodel.spec.blocks` (ALLOC has its own file)."""

from amaranth import Array, Module, Mux, Signal, Value
from amaranth.utils import exact_log2

from hw.params import crc32c
from hw.params.commands import Fate
from hw.params.protocol import Status
from hw.rtl.node.core.emission import Emission
from hw.rtl.node.core.guards import first
from hw.rtl.node.core.tables import Tables
from hw.rtl.node.layouts import Kind, State
from hw.rtl.node.slots import SlotOp


def drain(m: Module, t: Tables, e: Emission, *, seal: Status = Status.STALE, **changes: Value) -> None:
    """WRITING or SEALED to DRAINING; a SEAL that waits is answered with `seal`; FREE follows if nothing holds it."""
    t.unlink()
    drop(m, t, e, seal=seal, **changes)


def drop(m: Module, t: Tables, e: Emission, *, seal: Status = Status.STALE, **changes: Value) -> None:
    """As `drain`, of a block whose tag is left to be overwritten."""
    t.write_frame(state=State.DRAINING, sealing=0, **changes)
    t.note_evictable()
    m.d.comb += [t.discard.eq(t.writing), t.parking.wake.eq(1)]
    t.settle(t.frame.accepted - t.frame.answered)
    with m.If(t.writing & t.frame.sealing):
        answer_seal(t, e, seal)
    drained(m, t, e)


def answer_seal(t: Tables, e: Emission, status: Status) -> None:
    """The SEAL that waits for the block in hand ends."""
    e.answer_other(Kind.SEAL, t.frame.sealing_stamp, t.frame.sealing_tag, status)


def drained(m: Module, t: Tables, e: Emission) -> None:
    """If the row as it is written is DRAINING, and waits for nothing, DRAINED follows."""
    row = t.row
    idle = (row.pins == 0) & (row.reads == 0) & (row.answered == row.accepted)
    with m.If((row.state == State.DRAINING) & idle):
        e.follow(Kind.DRAINED)


def cases(m: Module, t: Tables, e: Emission) -> None:
    """The cases of JUDGE."""
    with m.Case(Kind.LOOKUP):
        _lookup(m, t, e)
    with m.Case(Kind.WRITE):
        _write(m, t, e)
    with m.Case(Kind.SEAL):
        _seal(m, t, e)
    with m.Case(Kind.ABORT):
        _abort(m, t, e)
    with m.Case(Kind.READ):
        _read(m, t, e)
    with m.Case(Kind.UNPIN):
        _unpin(m, t, e)
    with m.Case(Kind.DROP):
        _drop(m, t, e)


def by_handle(t: Tables, *, writing: bool = False) -> tuple[Value, Value, Value]:
    """Whether, and with what, a handle is refused before its command is looked at; and whether it is PENDING.

    It is while the session of its block is on its way to this ring.
    """
    frame = t.frame
    standing = t.standing(frame.session_generation, writing=writing)
    own = frame.partition == t.ring.partition
    refused, refusal = first(
        (~t.named, Status.STALE),
        (~own, Status.DENIED),
        (t.writing & (standing == Status.DENIED), Status.DENIED),
        (~t.alive, Status.STALE),
        (t.writing & (standing == Status.STALE), Status.STALE),
    )
    return refused, refusal, t.writing & (standing == Status.PENDING)


def _write(m: Module, t: Tables, e: Emission) -> None:
    """Segment `item` of a WRITE is appended at `accepted`; a short one takes longer, for its CRC."""
    frame = t.frame
    op = t.op
    refused, refusal, moving = by_handle(t, writing=True)
    size = t.params.memory.segment_bytes
    end = op.segment * size + op.length
    with m.If(refused):
        e.answer(refusal)
    with m.Elif((op.segment + ~frame.whole > frame.accepted) | (end > frame.bound)):
        e.answer(Status.RANGE)
    with m.Elif(moving):
        e.answer(Status.PENDING)
    with m.Elif(op.segment != frame.accepted):
        e.answer(Status.WRITE_ONCE)
    with m.Elif(op.length != size):
        m.d.sync += [t.advanced.eq(frame.crc), t.advancing.eq(0)]
        m.next = "ADVANCE"
    with m.Else():
        _append(t, e, t.product(crc32c.zeros(size), frame.crc))


def _append(t: Tables, e: Emission, advanced: Value) -> None:
    """The segment joins the block, whose CRC has been advanced by the segment's length."""
    frame, op, size = t.frame, t.op, t.params.memory.segment_bytes
    t.write_frame(
        accepted=frame.accepted + 1,
        length=op.segment * size + op.length,
        whole=op.length == size,
        crc=advanced ^ op.crc,
    )
    t.change_session(written=t.owner.written + 1)
    e.answer(Status.OK, complete=op.last)


def _seal(m: Module, t: Tables, e: Emission) -> None:
    """The length is declared, and the CRC; the done bit waits for memory."""
    frame = t.frame
    op = t.op
    refused, refusal, moving = by_handle(t)
    with m.If(refused):
        e.answer(refusal)
    with m.Elif(moving):
        e.answer(Status.PENDING)
    with m.Elif(~t.writing | frame.sealing):
        e.answer(Status.WRITE_ONCE)
    with m.Elif(op.length != frame.length):
        e.answer(Status.INCOMPLETE)
    with m.Elif(op.crc != frame.crc):
        drain(m, t, e)
        e.answer(Status.CRC)
    with m.Else():
        t.write_frame(sealing=1, sealing_stamp=op.stamp, sealing_tag=op.tag, bound=frame.length)
        with m.If(frame.answered == frame.accepted):
            e.follow(Kind.SEALED)
        e.wait()


def _abort(m: Module, t: Tables, e: Emission) -> None:
    """WRITING to DRAINING."""
    refused, refusal, moving = by_handle(t)
    with m.If(refused):
        e.answer(refusal)
    with m.Elif(moving):
        e.answer(Status.PENDING)
    with m.Elif(~t.writing):
        e.answer(Status.WRITE_ONCE)
    with m.Else():
        drain(m, t, e)
        e.answer(Status.OK)


def reading(t: Tables) -> tuple[Value, Value]:
    """Whether, and with what, a READ is refused; PENDING if its block may still come to be as it wants it."""
    frame = t.frame
    op = t.op
    end = op.segment + op.count
    size = t.params.memory.segment_bytes
    most = Mux(t.sealed, frame.accepted, (frame.bound + (size - 1)) >> exact_log2(size))
    mine = t.sessions.used & (t.sessions.generation == frame.session_generation) & t.owned
    own = frame.partition == t.ring.partition
    readable = own | (t.sealed & t.reads(t.ring.partition, frame.partition))
    return first(
        (~t.named, Status.STALE),
        (~readable, Status.DENIED),
        (~t.alive, Status.STALE),
        (end > most, Status.RANGE),
        (~t.sealed & ~(mine & (end <= frame.landed)), Status.PENDING),
    )


def start(t: Tables, e: Emission) -> None:
    """The READ holds its frame until READ_DONE."""
    t.write_frame(reads=t.frame.reads + 1)
    t.note_evictable()
    e.answer(Status.OK, complete=0)


def _read(m: Module, t: Tables, e: Emission) -> None:
    """It starts, or parks, or is refused."""
    op, entry = t.op, t.parking.new_entry
    refused, why = reading(t)
    with m.If(~refused):
        start(t, e)
    with m.Elif((why == Status.PENDING) & op.park & t.parking.free):
        m.d.comb += [
            t.parking.take.eq(1),
            entry.frame.eq(t.index),
            entry.generation.eq(op.handle.generation),
            *(entry[name].eq(op[name]) for name in ("stamp", "tag", "segment", "count")),
        ]
        e.park()
    with m.Else():
        e.answer(why)


def _unpin(m: Module, t: Tables, e: Emission) -> None:
    """A pin of this ring goes back."""
    op = t.op
    with m.If(t.pins.used & (t.pins.generation == op.slot.generation)):
        unpin(m, t, e)
        e.answer(Status.OK)
    with m.Else():
        e.answer(Status.STALE)


def _drop(m: Module, t: Tables, e: Emission) -> None:
    """A live block of the own partition is unreachable at once."""
    with m.If(t.found.hit & t.alive):
        e.notices.event(Fate.DROPPED, when=t.sealed)
        drain(m, t, e)
        e.answer(Status.OK)
    with m.Else():
        e.answer(Status.MISS)


def unpin(m: Module, t: Tables, e: Emission) -> None:
    """The pin that was read goes back to its table."""
    t.write_frame(pins=t.frame.pins - 1)
    t.note_evictable()
    t.release_slot(t.pins)
    t.count(t.pin_table, "pins", -1)
    drained(m, t, e)


def _lookup(m: Module, t: Tables, e: Emission) -> None:
    """A HIT ends the search; without, the public partitions that may be read are asked in turn, lowest first."""
    op, frame = t.op, t.frame
    found = t.found.hit & t.alive
    goes_on = ~op.run & ~op.last

    with m.If(found & t.sealed & op.pin & ~t.pins.free):
        e.answer(Status.NO_SPACE)
    with m.Elif(found & t.sealed):
        with m.If(op.pin):
            m.d.comb += [t.pins.op.eq(SlotOp.TAKE), t.pins.new_entry.eq(t.index)]
            m.d.comb += t.replacement.clock.words.referenced.eq(1)
            t.count(t.ring_number, "pins", 1)
            t.write_frame(pins=frame.pins + 1)
            t.note_evictable()
        e.answer(Status.HIT, complete=op.last, outcome=Mux(op.run, Status.HIT, Status.OK))
        e.name(t.index, frame.generation)
        with m.If(op.pin):
            e.slot(t.pins.free_slot, t.pins.free_generation)
    with m.Else():
        with m.If(found & ~t.probing):
            m.d.sync += [t.pending.eq(1), t.pending_frame.eq(t.index), t.pending_generation.eq(frame.generation)]
        with m.If(t.unasked != 0):
            m.d.sync += t.probing.eq(1)
            m.next = "PROBE"
        with m.Elif(t.pending | (found & ~t.probing)):
            e.answer(Status.PENDING, complete=~goes_on, outcome=Mux(op.run, Status.PENDING, Status.OK))
            e.name(Mux(t.pending, t.pending_frame, t.index), Mux(t.pending, t.pending_generation, frame.generation))
        with m.Else():
            e.answer(Status.MISS, complete=~goes_on, outcome=Mux(op.run, Status.MISS, Status.OK))


def states(m: Module, t: Tables, e: Emission) -> None:
    """PROBE: the next public partition of a LOOKUP. ADVANCE: the CRC of a block, by the zeros of a short segment, a bit
    of its length a cycle. APPEND: the short segment joins it."""
    with m.State("PROBE"):
        lowest = Signal.like(t.unasked)
        number = Signal(range(len(t.unasked)))
        m.d.comb += lowest.eq(t.unasked & -t.unasked)
        for i in range(len(t.unasked)):
            with m.If(lowest[i]):
                m.d.comb += number.eq(i)
        m.d.sync += t.unasked.eq(t.unasked & ~lowest)
        t.look_up(number)
        m.next = "CAM"

    with m.State("ADVANCE"):
        bits = exact_log2(t.params.memory.segment_bytes)
        steps = Array(t.product(crc32c.zeros(1 << i), t.advanced) for i in range(bits))
        with m.If(t.op.length.bit_select(t.advancing, 1)):
            m.d.sync += t.advanced.eq(steps[t.advancing])
        m.d.sync += t.advancing.eq(t.advancing + 1)
        with m.If(t.advancing == bits - 1):
            m.next = "APPEND"

    with m.State("APPEND"):
        _append(t, e, t.advanced)
