"""What the core tells ports unasked: what has become of a block, that a partition or model has died, that a session is
to move."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.hdl import ValueLike
from amaranth.lib import data, stream

from hw.params.commands import Fate
from hw.params.protocol import MessageKind
from hw.rtl.layouts import slot_id_layout
from hw.rtl.node.core.tables import Tables
from hw.rtl.node.layouts import frame_layout, operation_layout, ring_layout


class Notices:
    """Collects what a judgement tells ports; the message leaves three cycles later, when the CAM has told the key.

    Whoever tells of a block has asked for its key (`Tables.read_tag`) in the cycle before. Judgements that tell are
    four cycles apart at least, so one message is under way at a time, and its rings are still as they were.
    """

    def __init__(self, m: Module, t: Tables, messages: stream.Interface) -> None:
        self._m, self._t = m, t
        self._happens, self._dies, self._moves = Signal(), Signal(), Signal()
        self._fate, self._of_model = Signal(Fate), Signal()
        row, op = frame_layout(t.params), operation_layout(t.params)
        model_bits, partition_bits = (
            (count - 1).bit_length() for count in (t.params.tables.models, t.params.tables.partitions)
        )
        told = Signal(
            data.StructLayout(
                {
                    "event": 1,
                    "fate": Fate,
                    "of_model": 1,
                    "partition": row["partition"].shape,
                    "model": op["model"].shape,
                    "frame": len(t.index),
                    "generation": row["generation"].shape,
                    "fence": 1,
                    "ring": ring_layout(),
                    "slot": slot_id_layout(),
                }
            )
        )
        under_way = Signal(3)
        m.d.sync += under_way.eq(Cat(self._happens | self._dies | self._moves, under_way))
        with m.If(self._happens):
            m.d.sync += [
                told.event.eq(1),
                told.fence.eq(0),
                told.fate.eq(self._fate),
                told.of_model.eq(0),
                told.partition.eq(t.frame.partition),
                told.frame.eq(t.index),
                told.generation.eq(t.frame.generation),
            ]
        with m.If(self._dies):
            m.d.sync += [
                told.event.eq(0),
                told.fence.eq(0),
                told.of_model.eq(self._of_model),
                told.partition.eq(t.op.partition),
                told.model.eq(t.op.model),
            ]

        with m.If(self._moves):
            m.d.sync += [
                told.event.eq(0),
                told.fence.eq(1),
                told.ring.eq(t.owner.ring),
                told.slot.eq(t.op.slot),
            ]

        content, notice = t.cam.contents.payload, messages.payload.notice
        message = notice.message
        m.d.comb += [
            messages.valid.eq(under_way[2] & ~t.failing),
            messages.payload.ports.eq(self._ports(told)),
        ]
        with m.If(told.fence):
            m.d.comb += [
                message.kind.eq(MessageKind.FENCE),
                message.ring.eq(told.ring.ring),
                message.slot.eq(told.slot),
            ]
        with m.Elif(told.event):
            m.d.comb += [
                notice.lost.eq(~content.found),
                message.kind.eq(MessageKind.EVENT),
                message.fate.eq(told.fate),
                Cat(message.key, message.model[:model_bits], message.partition[:partition_bits]).eq(content.tag),
                message.handle.slice.eq(t.number),
                message.handle.frame.eq(told.frame),
                message.handle.generation.eq(told.generation),
                message.handle.epoch.eq(t.epoch),
            ]
        with m.Else():
            m.d.comb += [
                message.kind.eq(MessageKind.INVALIDATE),
                message.flags.of_model.eq(told.of_model),
                message.flags.of_partition.eq(~told.of_model),
                message.model.eq(Mux(told.of_model, told.model, 0)),
                message.partition.eq(Mux(told.of_model, 0, told.partition)),
            ]

    def _ports(self, told: data.View) -> Signal:
        """Return the ports with a live ring that may read the partition, or for a model with any; for a fence, that of
        the ring: two cycles later."""
        m, t, tables = self._m, self._t, self._t.params.tables
        readers, ports = Signal(tables.partitions), Signal(tables.ports)
        rings = [ring.bound & ~ring.lost & readers.bit_select(ring.partition, 1) for ring in t.rings]
        per_port = tables.rings_per_port
        m.d.sync += [
            readers.eq(Cat(told.of_model | t.reads(i, told.partition) for i in range(tables.partitions))),
            ports.eq(Cat(Cat(rings[i : i + per_port]).any() for i in range(0, len(rings), per_port))),
        ]
        with m.If(told.fence):
            m.d.sync += ports.eq(1 << told.ring.port)
        return ports

    def event(self, fate: Fate, *, when: ValueLike = 1) -> None:
        """The block in hand was stored, or has gone alone, if `when`: for the ports that may read it."""
        self._m.d.comb += [self._happens.eq(when), self._fate.eq(fate)]

    def invalidate(self, *, of_model: bool) -> None:
        """The model of the operation has died, or its partition: for the ports that could read of it."""
        self._m.d.comb += [self._dies.eq(1), self._of_model.eq(of_model)]

    def fence(self) -> None:
        """The session that was read is asked for: for the port of its ring."""
        self._m.d.comb += self._moves.eq(1)
