"""What the core tells ports unasked: what has become of a block, and that a partition or model has died."""

from amaranth import Cat, Module, Signal
from amaranth.hdl import ValueLike
from amaranth.lib import data, stream

from hw.params import records
from hw.params.commands import Fate
from hw.params.protocol import KEY_BITS, MessageKind
from hw.rtl.node.core.tables import Tables
from hw.rtl.node.layouts import frame_layout, operation_layout


class Notices:
    """Collects what a judgement tells ports; the message leaves three cycles later, when the CAM has said the key.

    Whoever tells of a block has asked for its key (`Tables.read_tag`) in the cycle before. Judgements that tell are
    four cycles apart at least, so one message is under way at a time, and its rings are still as they were.
    """

    def __init__(self, m: Module, t: Tables, messages: stream.Interface) -> None:
        self._m, self._t = m, t
        self._happens, self._dies = Signal(), Signal()
        self._fate, self._flags = Signal(Fate), Signal(8)
        row, op = frame_layout(t.params), operation_layout(t.params)
        said = Signal(
            data.StructLayout(
                {
                    "event": 1,
                    "fate": Fate,
                    "flags": 8,
                    "partition": row["partition"].shape,
                    "model": op["model"].shape,
                    "frame": len(t.index),
                    "generation": row["generation"].shape,
                }
            )
        )
        under_way = Signal(3)
        m.d.sync += under_way.eq(Cat(self._happens | self._dies, under_way))
        with m.If(self._happens):
            m.d.sync += [
                said.event.eq(1),
                said.fate.eq(self._fate),
                said.flags.eq(0),
                said.partition.eq(t.frame.partition),
                said.model.eq(t.frame.model),
                said.frame.eq(t.index),
                said.generation.eq(t.frame.generation),
            ]
        with m.If(self._dies):
            m.d.sync += [
                said.event.eq(0),
                said.flags.eq(self._flags),
                said.partition.eq(t.op.partition),
                said.model.eq(t.op.model),
            ]

        content, notice = t.cam.contents.payload, messages.payload
        message = notice.message
        m.d.comb += [
            messages.valid.eq(under_way[2] & ~t.failing),
            notice.ports.eq(self._ports(said)),
            message.flags.eq(said.flags),
            message.kind.eq(MessageKind.INVALIDATE),
        ]
        with m.If(said.event):
            m.d.comb += [
                notice.lost.eq(~content.found),
                message.kind.eq(MessageKind.EVENT),
                message.fate.eq(said.fate),
                message.key.eq(content.tag[:KEY_BITS]),
                message.handle.frame.eq(said.frame),
                message.handle.generation.eq(said.generation),
                message.handle.epoch.eq(t.epoch),
            ]
        with m.If(said.event | (said.flags == records.OF_PARTITION)):
            m.d.comb += message.partition.eq(said.partition)
        with m.If(said.event | (said.flags == records.OF_MODEL)):
            m.d.comb += message.model.eq(said.model)

    def _ports(self, said: data.View) -> Signal:
        """Return the ports with a live ring that may read the partition, or for a model with any: two cycles later."""
        m, t, tables = self._m, self._t, self._t.params.tables
        readers, ports = Signal(tables.partitions), Signal(tables.ports)
        rings = [ring.bound & ~ring.lost & readers.bit_select(ring.partition, 1) for ring in t.rings]
        per_port = tables.rings_per_port
        m.d.sync += [
            readers.eq(
                Cat((said.flags == records.OF_MODEL) | t.reads(i, said.partition) for i in range(tables.partitions))
            ),
            ports.eq(Cat(Cat(rings[i : i + per_port]).any() for i in range(0, len(rings), per_port))),
        ]
        return ports

    def event(self, fate: Fate, *, when: ValueLike = 1) -> None:
        """The block in hand was stored, or has gone alone, if `when`: for the ports that may read it."""
        self._m.d.comb += [self._happens.eq(when), self._fate.eq(fate)]

    def invalidate(self, flag: ValueLike) -> None:
        """The partition or model of the operation has died, as `flag` says: for the ports that could read of it."""
        self._m.d.comb += [self._dies.eq(1), self._flags.eq(flag)]
