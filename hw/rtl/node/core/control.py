"""ADMIT; BIND, SET_PARTITION, DROP_PARTITION, SET_MODEL, RETIRE, SET_EPOCH.

The judgements of `pymodel.spec.slice._admit`, `pymodel.spec.validate` and `admin`.
"""

from amaranth import Const, Module, Mux, Signal, Value

from hw.params.protocol import ModelState, Status
from hw.rtl.node.core import streaming
from hw.rtl.node.core.emission import Emission
from hw.rtl.node.core.guards import first
from hw.rtl.node.core.tables import Tables
from hw.rtl.node.layouts import Bind, Kind
from hw.rtl.node.scopes import ScopeOp

BY_KEY = (Kind.LOOKUP, Kind.ALLOC, Kind.DROP)
BY_HANDLE = (Kind.WRITE, Kind.SEAL, Kind.ABORT, Kind.READ)
BY_FRAME = (Kind.LANDED, Kind.READ_DONE)
IN_SESSION = (Kind.ALLOC, Kind.CLOSE_SESSION, Kind.MIGRATE, Kind.ANSWER_FENCE)
OF_PARTITION = (Kind.SET_PARTITION, Kind.DROP_PARTITION)
OF_MODEL = (Kind.SET_MODEL, Kind.RETIRE)
ADMINISTRATIVE = (Kind.BIND, *OF_PARTITION, *OF_MODEL, Kind.SET_EPOCH)
TOLD = (Kind.DROP, Kind.SEALED, Kind.READ_DONE)
"""What may tell ports of the block whose row it reads; and so does ALLOC, of a victim."""


def is_in(op: Value, kinds: tuple[Kind, ...]) -> Value:
    """Whether the operation is of one of `kinds`."""
    return op.kind.matches(*kinds)


def malformed(t: Tables) -> Value:
    """Whether a field is outside its type, or names what does not exist."""
    op, params, tables = t.op, t.params, t.params.tables
    configured = t.replacement.usage.configured
    handle = (op.handle.node != 0) | (op.handle.slice != t.number) | (op.handle.frame >= params.frames)
    ring = (op.ring.port >= tables.ports) | (op.ring.ring >= tables.rings_per_port)
    partition = op.partition >= tables.partitions
    limits = op.limits.pool >= len(params.pools)
    return (
        op.malformed
        | (is_in(op, (*BY_KEY, *OF_MODEL)) & (op.model >= tables.models))
        | (is_in(op, BY_HANDLE) & handle)
        | (is_in(op, (Kind.ALLOC, Kind.WRITE, Kind.SEAL)) & (op.length == 0))
        | (is_in(op, (Kind.READ,)) & (op.count == 0))
        | (is_in(op, IN_SESSION) & (op.slot.slot >= tables.sessions))
        | (is_in(op, (Kind.UNPIN,)) & (op.slot.slot >= tables.pins_per_ring))
        | (is_in(op, (Kind.BIND,)) & (ring | ((op.bind == Bind.PARTITION) & (partition | ~configured))))
        | (is_in(op, OF_PARTITION) & partition)
        | (is_in(op, (Kind.SET_PARTITION,)) & limits)
        | (is_in(op, (Kind.DROP_PARTITION,)) & ~configured)
        | (is_in(op, (Kind.SET_EPOCH,)) & (op.epoch == 0))
    )


def foreign(t: Tables) -> Value:
    """Whether the operation names what another partition has, or takes out of a public one."""
    if not t.params.strict:
        return Const(0)
    op, mine = t.op, t.ring.partition
    owner = t.pool_of(op.handle.frame)
    return (
        (is_in(op, IN_SESSION) & (op.slot.slot[: len(t.share)] != mine))
        | (is_in(op, BY_HANDLE) & (owner != mine) & ~((op.kind == Kind.READ) & t.reads(mine, owner)))
        | ((op.kind == Kind.DROP) & t.public.bit_select(mine, 1))
    )


def admit(m: Module, t: Tables, e: Emission) -> None:
    """What needs no table but those of rings and scopes; then the first read of what is left."""
    op, ring = t.op, t.ring
    privileged = op.stamp.registers | ring.administrative
    unbound = op.stamp.registers | ring.administrative | ~ring.bound
    lost = ~op.stamp.registers & ring.lost
    administrative = is_in(op, ADMINISTRATIVE)
    m.d.comb += [
        t.partition_scopes.query.eq(ring.partition),
        t.model_scopes.query.eq(op.model),
    ]
    refused, refusal = first(
        (malformed(t), Status.INVALID),
        ((t.epoch == 0) & (op.kind != Kind.SET_EPOCH), Status.UNAVAILABLE),
        (lost, Status.UNAVAILABLE),
        (administrative & ~privileged, Status.DENIED),
        (is_in(op, BY_KEY) & t.model_scopes.closed, Status.UNAVAILABLE),
        (is_in(op, BY_KEY) & ~unbound & t.partition_scopes.closed, Status.UNAVAILABLE),
        (~administrative & unbound, Mux(op.kind == Kind.LOOKUP, Status.MISS, Status.DENIED)),
        (foreign(t), Status.DENIED),
    )
    # Where no partition is, a LOOKUP finds what it would in an empty one: a run ends, a bitmap goes on.
    misses = (refusal == Status.MISS) & ~op.run
    unasked = t.public & t.read_masks[ring.partition] & ~(1 << ring.partition)[: len(t.unasked)]
    m.d.sync += [
        t.unasked.eq(unasked),
        t.probing.eq(0),
        t.pending.eq(0),
    ]
    stamp = t.ring_index(op.stamp)
    with m.If(t.failing):
        m.next = "IDLE"
        with m.If(~is_in(op, (Kind.LANDED, Kind.LOST))):
            e.answer(Status.UNAVAILABLE)
    with m.Elif(is_in(op, BY_FRAME)):
        t.read_frame(op.handle.frame)
        m.next = "OWNER"
    with m.Elif(op.kind == Kind.LOST):
        m.next = "JUDGE"
    with m.Elif(refused):
        e.answer(refusal, complete=~misses | op.last, outcome=Mux(misses, Status.OK, refusal))
    with m.Elif((op.kind == Kind.LOOKUP) & (unasked == 0)):
        streaming.begin(m, t)
    with m.Elif(is_in(op, BY_KEY)):
        t.look_up(ring.partition)
        t.read_session(op.slot.slot)
        m.d.comb += [t.pins.offer.eq(1), t.pins.offer_table.eq(stamp)]
        m.next = "CAM"
    with m.Elif(is_in(op, BY_HANDLE)):
        t.read_frame(op.handle.frame)
        m.d.comb += t.parking.offer.eq(1)
        m.next = "OWNER"
    with m.Elif(op.kind == Kind.UNPIN):
        t.read_pin(stamp, op.slot.slot)
        m.next = "PIN"
    with m.Else():
        t.read_session(op.slot.slot)
        t.offer_session()
        m.next = "JUDGE"


def cases(m: Module, t: Tables, e: Emission) -> None:
    """The cases of JUDGE."""
    with m.Case(Kind.BIND):
        _bind(m, t, e)
    with m.Case(Kind.SET_PARTITION):
        _set_partition(m, t, e)
    with m.Case(Kind.DROP_PARTITION):
        _drop_partition(m, t, e)
    with m.Case(Kind.SET_MODEL):
        _set_model(m, t, e)
    with m.Case(Kind.RETIRE):
        _retire(m, t, e)
    with m.Case(Kind.SET_EPOCH):
        _set_epoch(m, t, e)


def _bind(m: Module, t: Tables, e: Emission) -> None:
    """A ring in use is lost first, and changes hands once nothing of it is left.

    Isolated, a partition has rings of its own ports alone.
    """
    op = t.op
    target, row = t.rings[t.ring_index(op.ring)], Signal.like(t.ring)
    m.d.comb += row.eq(target)
    in_use = row.bound | row.administrative
    itself = ~op.stamp.registers & (op.ring == op.stamp)
    quiet = (row.pins == 0) & (row.sessions == 0) & (row.outstanding == 0) & ~itself
    strange = (op.bind == Bind.PARTITION) & (op.ring.port[: len(t.share)] != op.partition)
    with m.If(strange if t.params.strict else Const(0)):
        e.answer(Status.RANGE)
    with m.Else():
        with m.If(in_use):
            t.sweep(t.share_of(op.ring.port))
        with m.If(quiet):
            m.d.sync += [
                target.lost.eq(0),
                target.bound.eq(op.bind == Bind.PARTITION),
                target.administrative.eq(op.bind == Bind.ADMINISTRATIVE),
                target.partition.eq(op.partition),
            ]
            m.d.comb += t.rebound.eq(1)
            e.answer(Status.OK)
        with m.Else():
            m.d.sync += target.lost.eq(row.lost | in_use)
            e.answer(Mux(itself, Status.UNAVAILABLE, Status.PENDING))


def _set_partition(m: Module, t: Tables, e: Emission) -> None:
    """A quota may fall below use; the pool changes only while no frame is used.

    Isolated, a partition has the pool of its number, and stays public while frames are used.
    """
    op = t.op
    usage = t.replacement.usage
    limits, now = op.limits, usage.limits_of
    frames = Signal.like(limits.quota)
    with m.Switch(limits.pool):
        for i, pool in enumerate(t.params.pools):
            with m.Case(i):
                m.d.comb += frames.eq(pool.frames)
    hides = t.public.bit_select(op.partition, 1) & ~op.public
    moves = ~usage.configured | (now.pool != limits.pool)
    refused, refusal = first(
        ((limits.guarantee > limits.quota) | (limits.quota > frames), Status.RANGE),
        (usage.promised + limits.guarantee > frames, Status.RANGE),
        ((limits.pool != op.partition) if t.params.strict else Const(0), Status.RANGE),
        ((moves | (hides if t.params.strict else Const(0))) & (usage.used != 0), Status.PENDING),
    )
    with m.If(refused):
        e.answer(refusal)
    with m.Else():
        m.d.comb += [usage.set.eq(1), t.replacement.clock.rewind.eq(moves)]
        m.d.sync += [
            t.public.bit_select(op.partition, 1).eq(op.public),
            t.read_masks[op.partition].eq(op.read_mask),
        ]
        e.answer(Status.OK)


def _drop_partition(m: Module, t: Tables, e: Emission) -> None:
    """Everything in the partition dies."""
    op = t.op
    m.d.comb += [t.partition_scopes.op.eq(ScopeOp.BUMP), t.partition_scopes.index.eq(op.partition)]
    e.notices.invalidate(of_model=False)
    t.sweep(t.share_of(op.partition))
    e.answer(Status.OK)


def _set_model(m: Module, t: Tables, e: Emission) -> None:
    """LIVE or READ_ONLY."""
    op = t.op
    m.d.sync += t.models[op.model].eq(Mux(op.live, ModelState.LIVE, ModelState.READ_ONLY))
    e.answer(Status.OK)


def _retire(m: Module, t: Tables, e: Emission) -> None:
    """Everything of the model dies."""
    op = t.op
    m.d.comb += [t.model_scopes.op.eq(ScopeOp.BUMP), t.model_scopes.index.eq(op.model)]
    m.d.sync += t.models[op.model].eq(ModelState.RETIRED)
    e.notices.invalidate(of_model=True)
    t.sweep()
    e.answer(Status.OK)


def _set_epoch(m: Module, t: Tables, e: Emission) -> None:
    """Once a life."""
    op = t.op
    with m.If(t.epoch == 0):
        m.d.sync += t.epoch.eq(op.epoch)
        e.answer(Status.OK)
    with m.Else():
        e.answer(Status.DENIED)
