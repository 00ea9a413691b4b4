"""What a command on a link, or in the registers, asks of the core."""

from amaranth import Module, Mux, Signal, Value
from amaranth.lib import data

from hw.params import Params
from hw.params.protocol import PORT_BITS, RING_BITS, Opcode
from hw.rtl.node.layouts import Bind, Kind, limits_layout

BY_MODEL = (Opcode.LOOKUP, Opcode.ALLOC, Opcode.DROP, Opcode.SET_MODEL, Opcode.RETIRE)


def decode(m: Module, params: Params, command: data.View, op: data.View) -> None:
    """Drive the fields of `op` that follow from `command` (a `COMMAND`), as far as it is one operation.

    `malformed` is set for an opcode that there is none of (then `kind` is NONE), and for a field that does not fit its
    place in the operation; what has a place but means nothing is the core's to judge.
    """
    settings, opcode = command.subject.settings, command.opcode
    known, wide = Signal(), Signal()
    m.d.comb += known.eq(opcode.matches(*(each.value for each in Opcode)))
    bind = settings.binding > max(Bind).value
    place = settings.port[PORT_BITS:].any() | settings.ring[RING_BITS:].any()
    pool = settings.pool >= 1 << len(op.limits.pool)
    mask = command.slot.read_mask[len(op.read_mask) :].any()
    with m.Switch(opcode):
        with m.Case(*(each.value for each in BY_MODEL)):
            m.d.comb += wide.eq(command.model[len(op.model) :].any())
        with m.Case(Opcode.BIND):
            m.d.comb += wide.eq(bind | place)
        with m.Case(Opcode.SET_PARTITION):
            m.d.comb += wide.eq(pool | mask)
    m.d.comb += [
        op.kind.eq(Mux(known, opcode, Kind.NONE)),
        op.malformed.eq(~known | wide),
        op.model.eq(command.model),
        op.key.eq(command.subject.key),
        op.handle.eq(command.subject.handle),
        op.slot.eq(command.slot.id),
        op.segment.eq(command.segment),
        op.count.eq(command.count),
        op.length.eq(command.length),
        op.crc.eq(command.crc),
        op.pin.eq(command.flags.pin),
        op.run.eq(command.flags.run),
        op.park.eq(command.flags.park),
        op.live.eq(command.flags.live),
        op.ring.port.eq(settings.port),
        op.ring.ring.eq(settings.ring),
        op.bind.eq(settings.binding),
        op.partition.eq(settings.partition),
        op.limits.pool.eq(settings.pool),
        op.limits.quota.eq(_frames(params, settings.quota)),
        op.limits.guarantee.eq(_frames(params, settings.guarantee)),
        op.public.eq(settings.public[0]),
        op.read_mask.eq(command.slot.read_mask),
        op.epoch.eq(command.slot.epoch),
    ]


def _frames(params: Params, count: Value) -> Value:
    """A number of frames, or the largest that has a place, which is too large for any pool."""
    width = limits_layout(params)["quota"].width
    return Mux(count[width:].any(), (1 << width) - 1, count[:width])
