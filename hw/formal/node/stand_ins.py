"""Stand-ins for the parts of the core: each does all that the part may do by its docstring, and more."""

from amaranth import Array, Cat, Module, Mux, Signal
from amaranth.hdl import ShapeLike
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for, exact_log2

from hw.formal.node.free import anything
from hw.params import Params
from hw.params.toeplitz import diagonal_bits
from hw.rtl.layouts import (
    CamOp,
    cam_content_layout,
    cam_event_layout,
    cam_request_layout,
    cam_response_layout,
    frame_bits,
)
from hw.rtl.node import layouts
from hw.rtl.node.layouts import Kind, fence_layout, parked_layout
from hw.rtl.node.slots import SlotOp
from hw.rtl.table import table_event_layout

LATENCY = 4
"""Cycles from a request of the CAM to its response."""


class AnyTable(wiring.Component):
    """`hw.rtl.table.Table` without a code: a row that was read while it was written, or before an `idle`, is anything.

    Attributes
    ----------
    rows
        What is stored.
    content, known
        The row that was read last, and whether it stands.
    """

    def __init__(
        self, *, shape: ShapeLike, depth: int, lanes: int = 1, ecc: bool, lost: int | None = None, swept: bool = False
    ):
        self._depth, self._lanes = depth, lanes
        self.rows = Signal(data.ArrayLayout(shape, depth), reset_less=not swept)
        self._void = anything(shape, "row")
        self.content, self.known = Signal(len(self._void_value()), reset_less=True), Signal()
        super().__init__(
            {
                "write": In(lanes),
                "write_address": In(range(depth)),
                "write_data": In(shape),
                "read": In(1),
                "read_address": In(range(depth)),
                "read_data": Out(shape),
                "uncorrectable": Out(1),
                "idle": In(1),
                "events": Out(stream.Signature(table_event_layout(depth), always_ready=True)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        content, known = self.content, self.known
        collides = self.write.any() & (self.write_address == self.read_address)
        with m.If(self.read):
            m.d.sync += [content.eq(self.rows[self.read_address]), known.eq(~collides)]
        with m.Elif(self.idle):
            m.d.sync += known.eq(0)
        m.d.comb += self.read_data.eq(Mux(known, content, self._void_value()))
        width = len(content) // self._lanes
        new = Signal(len(content))
        m.d.comb += new.eq(self.write_data)
        for row in range(self._depth):
            with m.If(self.write_address == row):
                for lane in range(self._lanes):
                    with m.If(self.write[lane]):
                        part = new.word_select(lane, width)
                        m.d.sync += data.View(data.ArrayLayout(width, self._lanes), self._bits(row))[lane].eq(part)
        return m

    def _void_value(self) -> Signal:
        return self._void.as_value() if hasattr(self._void, "as_value") else self._void

    def _bits(self, row: int) -> Signal:
        found = self.rows[row]
        return found.as_value() if hasattr(found, "as_value") else found


class AnyQueue(wiring.Component):
    """A FIFO that nobody looks into: full whenever it likes."""

    def __init__(self, *, width: int, depth: int):
        self._full = anything(1, "full")
        super().__init__(
            {
                "w_data": In(width),
                "w_rdy": Out(1),
                "w_en": In(1),
                "r_data": Out(width),
                "r_rdy": Out(1),
                "r_en": In(1),
                "level": Out(bits_for(depth)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += [self.w_rdy.eq(~self._full), self.level.eq(self._full.replicate(len(self.level)))]
        return m


class AnyCam(wiring.Component):
    """`hw.rtl.node.cam.Cam` that answers in time, and anything."""

    def __init__(self, params: Params):
        self._answer = anything(cam_response_layout(params), "answer")
        self._content = anything(cam_content_layout(params), "content")
        super().__init__(
            {
                "diagonals": In(data.ArrayLayout(diagonal_bits(params), params.cam.banks)),
                "clear": In(1),
                "requests": In(stream.Signature(cam_request_layout(params))),
                "responses": Out(stream.Signature(cam_response_layout(params), always_ready=True)),
                "contents": Out(stream.Signature(cam_content_layout(params), always_ready=True)),
                "events": Out(stream.Signature(cam_event_layout(params), always_ready=True)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        asked = Signal(LATENCY)
        request = self.requests
        m.d.sync += asked.eq(Cat(request.valid & (request.payload.op == CamOp.LOOKUP), asked))
        m.d.comb += [
            request.ready.eq(1),
            self.responses.valid.eq(asked[-1]),
            self.contents.payload.eq(self._content),
            self.responses.payload.eq(self._answer),
        ]
        with m.If(~asked[-1]):
            m.d.comb += self.responses.payload.hit.eq(0)
        return m


class AnySlots(wiring.Component):
    """`hw.rtl.node.slots.SlotTables` that offers any slot that is not in use.

    Attributes
    ----------
    rows
        The entries, with `used`, `generation` and `entry`.
    entries
        The table that has them.
    offers, offered
        Whether an offer stands, and of which table.
    """

    def __init__(self, *, tables: int, slots: int, generation_bits: int, shape: ShapeLike, ecc: bool):
        table, slot = bits_for(tables - 1), bits_for(slots - 1)
        self._slot_bits = slot
        row = data.StructLayout({"used": 1, "generation": generation_bits, "entry": shape})
        self.entries = AnyTable(shape=row, depth=tables << slot, ecc=False, swept=True)
        self.rows = self.entries.rows
        self.offers, self.offered = Signal(), Signal(table)
        self.asked = Signal(range(tables << slot))
        name = "pin" if tables > 1 else "session"
        self._free = anything(1, f"{name}_free")
        self._slot = anything(slot, f"{name}_slot")
        super().__init__(
            {
                "ready": Out(1),
                "table": In(table),
                "slot": In(slot),
                "read": In(1),
                "used": Out(1),
                "generation": Out(generation_bits),
                "entry": Out(shape),
                "offer": In(1),
                "offer_table": In(table),
                "free": Out(1),
                "free_slot": Out(slot),
                "free_generation": Out(generation_bits),
                "op": In(SlotOp),
                "new_entry": In(shape),
                "idle": In(1),
                "uncorrectable": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.entries = entries = self.entries
        asked = self.asked
        place = Cat(self.free_slot, self.offered)
        m.d.comb += [
            self.ready.eq(1),
            entries.idle.eq(self.idle | (self.op != SlotOp.NONE)),
            entries.read.eq(self.read),
            entries.read_address.eq(Cat(self.slot, self.table)),
            self.used.eq(entries.read_data.used),
            self.generation.eq(entries.read_data.generation),
            self.entry.eq(entries.read_data.entry),
            self.free.eq(self._free & ~(self.offers & self.rows[place].used)),
            self.free_slot.eq(self._slot),
            self.free_generation.eq(self.rows[place].generation),
            entries.write.eq(self.op != SlotOp.NONE),
            entries.write_address.eq(Mux(self.op == SlotOp.TAKE, place, asked)),
            entries.write_data.used.eq(self.op != SlotOp.RELEASE),
            entries.write_data.generation.eq(self.generation + (self.op == SlotOp.RELEASE)),
            entries.write_data.entry.eq(self.new_entry),
        ]
        with m.If(self.op == SlotOp.TAKE):
            m.d.comb += entries.write_data.generation.eq(self.free_generation)
        with m.If(self.read):
            m.d.sync += asked.eq(entries.read_address)
        with m.If(self.offer):
            m.d.sync += [self.offered.eq(self.offer_table), self.offers.eq(1)]
        with m.Elif((self.op != SlotOp.NONE) | self.idle):
            m.d.sync += self.offers.eq(0)
        return m


class AnyParking(wiring.Component):
    """`hw.rtl.node.parking.Parking` that has room when it likes, and holds any READs."""

    def __init__(self, params: Params):
        slot = bits_for(params.tables.parked_reads - 1)
        self._answers = {
            "free": 1,
            "asks": 1,
            "slot": slot,
            "port": bits_for(params.tables.ports - 1),
            "expired": 1,
            "entry": parked_layout(params),
        }
        self._open = {name: anything(shape, f"parked_{name}") for name, shape in self._answers.items()}
        super().__init__(
            {
                "ready": Out(1),
                "offer": In(1),
                "share": In(exact_log2(params.shares)),
                "take": In(1),
                "new_entry": In(parked_layout(params)),
                "wake": In(1),
                "frame": In(frame_bits(params)),
                "wake_all": In(1),
                "may_resume": In(params.tables.ports),
                "pick": In(1),
                "release": In(1),
                "count": Out(bits_for(params.tables.parked_reads)),
                "idle": In(1),
                "uncorrectable": Out(1),
            }
            | {name: Out(shape) for name, shape in self._answers.items()}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += self.ready.eq(1)
        m.d.comb += [getattr(self, name).eq(value) for name, value in self._open.items()]
        return m


class AnyFences(wiring.Component):
    """`hw.rtl.node.fences.Fences` that says anything of a migration, and at any time."""

    def __init__(self, params: Params):
        number = bits_for(params.tables.fences - 1)
        slot = bits_for(params.tables.sessions - 1)
        self._answers = {"room": 1, "free": number, "fence": fence_layout(), "asks": 1, "slot": slot}
        self._open = {name: anything(shape, f"fence_{name}") for name, shape in self._answers.items()}
        self._kind = anything(2, "fence_kind")
        super().__init__(
            {
                "lost": In(params.rings),
                "share": In(exact_log2(params.shares)),
                "begin": In(1),
                "new_slot": In(slot),
                "target": In(layouts.ring_layout()),
                "tag": In(layouts.TAG_BITS),
                "index": In(number),
                "answer": In(1),
                "writes": In(layouts.COUNT_BITS),
                "land": In(1),
                "end": In(1),
                "kind": Out(Kind),
                "pick": In(1),
            }
            | {name: Out(shape) for name, shape in self._answers.items()}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        kinds = Array([Kind.STEP_SESSIONS, Kind.FENCED, Kind.EXPIRED_FENCE, Kind.FENCED])
        m.d.comb += [getattr(self, name).eq(value) for name, value in self._open.items()]
        m.d.comb += self.kind.eq(kinds[self._kind])
        return m
