"""Stand-ins for the parts of the core: each does all that the part may do by its docstring, and more."""

from amaranth import Array, Cat, Module, Mux, Signal
from amaranth.hdl import ShapeLike
from amaranth.lib import data, wiring
from amaranth.utils import bits_for

from hw.formal.node.free import anything, ports
from hw.params import Params
from hw.rtl.layouts import CamOp, cam_content_layout, cam_response_layout
from hw.rtl.node.cam import Cam
from hw.rtl.node.fences import Fences
from hw.rtl.node.layouts import Kind
from hw.rtl.node.parking import Parking
from hw.rtl.node.slots import SlotOp, SlotTables
from hw.rtl.queue import Queue
from hw.rtl.table import Table

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
        super().__init__(ports(Table, shape=shape, depth=depth, lanes=lanes, ecc=ecc))

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
    """`hw.rtl.queue.Queue` that nobody looks into: full whenever it likes, and never with anything to take."""

    def __init__(self, shape: ShapeLike, *, depth: int):
        self._full = anything(1, "full")
        self.level = Signal(range(depth + 1))
        super().__init__(ports(Queue, shape, depth=depth))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += [self.i.ready.eq(~self._full), self.level.eq(self._full.replicate(len(self.level)))]
        return m


class AnyCam(wiring.Component):
    """`hw.rtl.node.cam.Cam` that answers in time, and anything."""

    def __init__(self, params: Params):
        self._answer = anything(cam_response_layout(params), "answer")
        self._content = anything(cam_content_layout(params), "content")
        super().__init__(ports(Cam, params))

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
        row = data.StructLayout({"used": 1, "generation": generation_bits, "entry": shape})
        self.entries = AnyTable(shape=row, depth=tables << slot, ecc=False, swept=True)
        self.rows = self.entries.rows
        self.offers, self.offered = Signal(), Signal(table)
        self.asked = Signal(range(tables << slot))
        name = "pin" if tables > 1 else "session"
        self._free = anything(1, f"{name}_free")
        self._slot = anything(slot, f"{name}_slot")
        super().__init__(
            ports(SlotTables, tables=tables, slots=slots, generation_bits=generation_bits, shape=shape, ecc=False)
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
        signature = ports(Parking, params)
        answers = ("free", "asks", "slot", "port", "expired", "entry")
        self._open = {name: anything(signature.members[name].shape, f"parked_{name}") for name in answers}
        super().__init__(signature)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += self.ready.eq(1)
        m.d.comb += [getattr(self, name).eq(value) for name, value in self._open.items()]
        return m


class AnyFences(wiring.Component):
    """`hw.rtl.node.fences.Fences` that says anything of a migration, and at any time."""

    def __init__(self, params: Params):
        signature = ports(Fences, params)
        answers = ("room", "free", "fence", "asks", "slot")
        self._open = {name: anything(signature.members[name].shape, f"fence_{name}") for name in answers}
        self._kind = anything(2, "fence_kind")
        super().__init__(signature)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        kinds = Array([Kind.STEP_SESSIONS, Kind.FENCED, Kind.EXPIRED_FENCE, Kind.FENCED])
        m.d.comb += [getattr(self, name).eq(value) for name, value in self._open.items()]
        m.d.comb += self.kind.eq(kinds[self._kind])
        return m
