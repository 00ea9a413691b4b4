"""The tables of a slice, and what an operation does to them: the vocabulary of the core's judgements."""

from amaranth import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.hdl import ValueLike
from amaranth.lib import data
from amaranth.utils import bits_for, exact_log2

from hw.params import crc32c
from hw.params.params import Params
from hw.params.protocol import SLICE_BITS, STATUS_BITS, Status
from hw.rtl.layouts import CamOp, cam_response_layout, frame_bits
from hw.rtl.node.cam import Cam
from hw.rtl.node.core.guards import first
from hw.rtl.node.fences import Fences
from hw.rtl.node.layouts import State, frame_layout, levels_layout, operation_layout, seal_layout, session_layout
from hw.rtl.node.parking import Parking
from hw.rtl.node.replacement import Replacement
from hw.rtl.node.rota import Turn
from hw.rtl.node.scopes import ScopeOp, ScopeTable
from hw.rtl.node.slots import SlotOp, SlotTables
from hw.rtl.table import Table

HANDS_EVERY = 16
"""Operations, a LOOKUP with all its keys being one, after which hands and scrubbers have a turn."""


def ring_row_layout(params: Params) -> data.StructLayout:
    """Return the layout of what the core keeps of a ring; the fields are those of `pymodel.spec.state.Ring`."""
    tables = params.tables
    return data.StructLayout(
        {
            "bound": 1,
            "administrative": 1,
            "lost": 1,
            "partition": bits_for(tables.partitions - 1),
            "pins": bits_for(tables.pins_per_ring),
            "sessions": bits_for(tables.sessions),
            "outstanding": 16,
        }
    )


class Tables:
    """The operation in hand (`op`, `ring`), what has been read for it (`frame`, `session`), and all tables.

    `frame` is the row that was read last, of frame `index`, two cycles after the read; `arriving` is the same in the
    cycle before. They and `session` stand while nothing else is read, up to the next `idle`: then the scrubbers have
    the read registers. The methods add statements to the module where they are called: in one state of the core, each
    table is used once.
    """

    def __init__(self, m: Module, params: Params, turn: Turn) -> None:
        self.m = m
        self.params = params
        self.turn = turn
        tables = params.tables
        scopes = {"stamp_bits": tables.stamp_bits, "frames": params.frames}
        m.submodules.cam = self.cam = Cam(params)
        m.submodules.replacement = self.replacement = Replacement(params)
        m.submodules.partition_scopes = self.partition_scopes = ScopeTable(entries=tables.partitions, **scopes)
        m.submodules.model_scopes = self.model_scopes = ScopeTable(entries=tables.models, **scopes)
        m.submodules.sessions = self.sessions = SlotTables(
            tables=params.shares,
            slots=tables.sessions // params.shares,
            generation_bits=tables.slot_generation_bits,
            shape=session_layout(params),
            ecc=tables.ecc,
        )
        m.submodules.pins = self.pins = SlotTables(
            tables=params.rings,
            slots=tables.pins_per_ring,
            generation_bits=tables.slot_generation_bits,
            shape=frame_bits(params),
            ecc=tables.ecc,
        )
        m.submodules.parking = self.parking = Parking(params)
        m.submodules.fences = self.fences = Fences(params)
        row = frame_layout(params)
        m.submodules.frames = self.frames = Table(
            shape=row, depth=params.frames, ecc=tables.ecc, lost=row.const({"state": State.QUARANTINED}).as_bits()
        )
        if tables.ecc:
            m.submodules.seals = self.seals = Table(shape=seal_layout(), depth=params.frames, ecc=True, lost=0)
        self.parts = (
            self.replacement,
            self.partition_scopes,
            self.model_scopes,
            self.sessions,
            self.pins,
            self.parking,
        )

        self.number = Signal(SLICE_BITS)
        self.epoch = Signal(64)
        self.rings = Signal(data.ArrayLayout(ring_row_layout(params), params.rings))
        self.models = Signal(data.ArrayLayout(2, tables.models))
        self.public = Signal(tables.partitions)
        self.read_masks = Signal(data.ArrayLayout(tables.partitions, tables.partitions))

        self.op = Signal(operation_layout(params))
        self.ring_number = Signal(range(params.rings))
        self.ring = Signal(ring_row_layout(params))
        self.share = self.ring.partition[: exact_log2(params.shares)]
        self._lost_rings, self._owner_lost = Signal(params.rings), Signal()
        self.found = Signal(cam_response_layout(params))
        self.index = Signal(frame_bits(params))
        self.arriving, self.frame, self.row = Signal(row), Signal(row, reset_less=True), Signal(row)
        self.owner, self.fence = self.sessions.entry, self.fences.fence
        self.seal, self.ends_lost_seal = Signal(seal_layout(), reset_less=True), Signal()
        self._writes = Signal()
        self.idle, self.failed, self.failing = Signal(), Signal(), Signal()
        self._derive()
        self._fetch()
        if tables.ecc:
            self._keep_seals()
        self._guard()
        self._initialise(m)
        self._remember()

    def _remember(self) -> None:
        """What single commands keep between their states, and the hands between their steps."""
        params, tables = self.params, self.params.tables
        turn = self.turn
        self.stopped = turn.each(1, name="stopped")
        self.first_key, self.asked_all, self.ended = Signal(), Signal(), Signal()
        self.sweeps_of = turn.bank(range(params.frames + 1), name="sweeps")
        self.sweeps = turn.mine(self.sweeps_of)
        self.begun, self.pins_found = turn.each(range(HANDS_EVERY + 3), name="begun"), Signal()
        self.stepped = turn.each(1, name="stepped")
        self.pin_table = Signal(range(params.rings))
        self.session_status = Signal(STATUS_BITS)
        self.unasked = Signal(tables.partitions)
        self.probing, self.pending = Signal(), Signal()
        self.pending_frame = Signal(frame_bits(params))
        self.pending_generation = Signal(tables.generation_bits)
        self.advanced = Signal(crc32c.WIDTH)
        self.advancing = Signal(range(exact_log2(params.memory.segment_bytes)))
        self.chosen = Signal(frame_bits(params))
        self.evicted, self.refused, self.discard, self.rebound = Signal(), Signal(), Signal(), Signal()
        self.resumed, self.stays = Signal(), Signal()
        self.ring_hand = turn.each(range(params.rings // params.shares), name="ring_hand")
        self.pin_hand = turn.each(range(tables.pins_per_ring), name="pin_hand")
        self.session_hand = turn.each(range(tables.sessions // params.shares), name="session_hand")
        self.frame_hand = turn.each(range(max(self.swept)), name="frame_hand")
        self._aim()

    def _aim(self) -> None:
        """The ring, session and frame that the hands are at: those of a share have numbers of their own."""
        self.hand_ring, self.hand_session, self.hand_frame = self.ring_hand, self.session_hand, self.frame_hand
        self.hand_frames: Value = Const(self.params.frames)
        if not self.params.strict:
            return
        tables, share = self.params.tables, self.turn.now.share
        port, ring = self.ring_hand // tables.rings_per_port, self.ring_hand % tables.rings_per_port
        self.hand_ring = (port * self.params.shares + share) * tables.rings_per_port + ring
        self.hand_session = Cat(share[: len(self.share)], self.session_hand)
        firsts = [sum(self.swept[:i]) for i in range(len(self.swept))]
        self.hand_frame = self.frame_hand + Array(Const(first, range(self.params.frames)) for first in firsts)[share]
        self.hand_frames = Array(Const(count, range(self.params.frames + 1)) for count in self.swept)[share]

    def ring_index(self, stamp: data.View) -> Value:
        """The row of a ring."""
        return stamp.port * self.params.tables.rings_per_port + stamp.ring

    def is_lost(self, stamp: data.View) -> Value:
        """Whether a ring is lost."""
        return self._lost_rings.bit_select(self.ring_index(stamp), 1)

    def count(self, ring: Value, name: str, change: ValueLike) -> None:
        """Count what a ring holds; each of its counts once a cycle."""
        held = self.rings[ring][name]
        self.m.d.sync += held.eq(held + change)

    def _derive(self) -> None:
        """What follows from the operation in hand and what was read: alive, owned, held."""
        m, frame = self.m, self.frame
        self.scopes_alive = Signal()
        self.alive = Signal()
        self.writing = Signal()
        self.sealed = Signal()
        self.quarantined = Signal()
        self.named = Signal()
        self.owned = Signal()
        self.worn = Signal()
        m.d.comb += [
            self.ring_number.eq(self.ring_index(self.op.stamp)),
            self.ring.eq(self.rings[self.ring_number]),
            self._lost_rings.eq(Cat(ring.lost for ring in self.rings)),
            self._owner_lost.eq(self.is_lost(self.owner.ring)),
            self.row.eq(frame),
            self.frames.write.eq(self._writes & ~self.quarantined),
            self.frames.write_data.eq(self.row),
            self.frames.write_address.eq(self.index),
            self.partition_scopes.query.eq(frame.partition),
            self.partition_scopes.query_stamp.eq(frame.partition_stamp),
            self.model_scopes.query.eq(frame.model),
            self.model_scopes.query_stamp.eq(frame.model_stamp),
            self.writing.eq(frame.state == State.WRITING),
            self.sealed.eq(frame.state == State.SEALED),
            self.quarantined.eq(frame.state == State.QUARANTINED),
            self.worn.eq(frame.generation.all()),
            self.scopes_alive.eq(self.partition_scopes.alive & self.model_scopes.alive),
            self.alive.eq(
                self.scopes_alive & (self.sealed | (self.writing & self.session_lives(frame.session_generation)))
            ),
            self.named.eq(
                (self.op.handle.epoch == self.epoch)
                & (self.op.handle.generation == frame.generation)
                & (self.writing | self.sealed)
            ),
            self.owned.eq(self.owner.ring == self.op.stamp),
            self.sessions.new_entry.eq(self.owner),
            self.fences.lost.eq(self._lost_rings),
            self.fences.index.eq(self.owner.fence),
            self.parking.frame.eq(self.index),
            self.parking.share.eq(self.share),
            self.fences.share.eq(self.share),
        ]
        if self.params.strict:
            m.d.comb += [part.rota.eq(self.turn.now) for part in (self.parking, self.fences)]
            m.d.comb += self.replacement.frozen.eq(self.public.bit_select(self.ring.partition, 1))

    def _fetch(self) -> None:
        """Two cycles from the SRAM to `frame`, for the sake of the decoder.

        A row that is read while it is written, as happens to one that neighbouring keys of a LOOKUP hit, comes to be
        as it was before; what such a write changes is forwarded.
        """
        m, frames = self.m, self.frames
        collided = Signal()
        before = Signal.like(self.frame, reset_less=True)
        m.d.sync += [
            collided.eq(frames.read & frames.write & (frames.read_address == frames.write_address)),
            before.eq(self.frame),
            self.frame.eq(self.arriving),
        ]
        m.d.comb += self.arriving.eq(Mux(collided, before, frames.read_data))

    def _keep_seals(self) -> None:
        """What a row says of a SEAL that waits is stored twice, so that it is answered when the row is lost.

        `seal` is read with the row; of a row that is lost it says what waits until `ends_lost_seal`. A SEAL waits for
        memory, and so is in no row that is read and written at once.
        """
        m, frames, seals = self.m, self.frames, self.seals
        m.d.comb += [
            seals.read.eq(frames.read),
            seals.read_address.eq(frames.read_address),
            seals.write.eq(frames.write | self.ends_lost_seal),
            seals.write_address.eq(frames.write_address),
            *(seals.write_data[name].eq(frames.write_data[name]) for name, _ in seal_layout()),
            seals.idle.eq(self.idle),
        ]
        m.d.sync += self.seal.eq(seals.read_data)

    def _guard(self) -> None:
        """The scrubbers' turn; and the end, when a word other than a frame's row is lost."""
        m, parts = self.m, (self.replacement, self.sessions, self.pins, self.parking)
        m.d.comb += [part.idle.eq(self.idle) for part in (self.frames, *parts)]
        m.d.comb += self.failing.eq(self.failed | Cat(part.uncorrectable for part in parts).any())
        m.d.sync += self.failed.eq(self.failing)

    def levels(self) -> data.View:
        """What is in use, counted as it changes."""
        m, params = self.m, self.params
        levels = Signal(levels_layout(params), init={"frames": [params.frames]})
        with m.If(self.frames_ready & self.frames.write):
            for state, count in zip(State, levels.frames, strict=True):
                m.d.sync += count.eq(count + (self.row.state == state) - (self.frame.state == state))
        for table, count in ((self.pins, levels.pins), (self.sessions, levels.sessions)):
            m.d.sync += count.eq(count + (table.op == SlotOp.TAKE) - (table.op == SlotOp.RELEASE))
        m.d.comb += levels.parked.eq(self.parking.count)
        return levels

    def _initialise(self, m: Module) -> None:
        """Every frame FREE, in generation 0."""
        self.frames_ready = Signal()
        swept = Signal(range(self.params.frames))
        with m.If(~self.frames_ready):
            m.d.comb += [
                self.frames.write.eq(1),
                self.frames.write_address.eq(swept),
                self.frames.write_data.as_value().eq(0),
            ]
            m.d.sync += [swept.eq(swept + 1), self.frames_ready.eq(swept == self.params.frames - 1)]

    # Reads: what they find stands from the next state on, the row of a frame from the one after that.

    def read_frame(self, index: Value) -> None:
        """Read a row of the frame table."""
        self.m.d.comb += [self.frames.read.eq(1), self.frames.read_address.eq(index)]
        self.m.d.sync += self.index.eq(index)

    def read_session(self, slot: Value) -> None:
        """Read an entry of the session table."""
        share_bits = len(self.share)
        self.m.d.comb += [
            self.sessions.read.eq(1),
            self.sessions.table.eq(slot[:share_bits]),
            self.sessions.slot.eq(slot[share_bits:]),
        ]

    def offer_session(self) -> None:
        """Ask for a free slot of the ring's share; its number is `free_session`."""
        self.m.d.comb += [self.sessions.offer.eq(1), self.sessions.offer_table.eq(self.share)]

    @property
    def free_session(self) -> Value:
        """The number of the slot that is offered: slot i of the table is of share i modulo the shares."""
        return Cat(self.share, self.sessions.free_slot)

    def read_pin(self, table: Value, slot: Value) -> None:
        """Read an entry of a ring's pin table."""
        self.m.d.comb += [self.pins.read.eq(1), self.pins.table.eq(table), self.pins.slot.eq(slot)]
        self.m.d.sync += self.pin_table.eq(table)

    def look_up(self, partition: Value, key: Value | None = None) -> None:
        """Ask the CAM for a key, by default the operation's; its answer comes four cycles later."""
        request = self.cam.requests
        self.m.d.comb += [
            request.valid.eq(1),
            request.payload.op.eq(CamOp.LOOKUP),
            request.payload.tag.eq(self.tag(partition, key)),
        ]

    def read_tag(self) -> None:
        """Ask the CAM for the tag of the block whose row arrives; its answer comes four cycles later."""
        request = self.cam.requests
        self.m.d.comb += [
            request.valid.eq(1),
            request.payload.op.eq(CamOp.READ),
            request.payload.place.eq(self.arriving.place),
        ]

    def tag(self, partition: Value, key: Value | None = None) -> Value:
        """The tag of a key, by default the operation's, in a partition, as `hw.params.toeplitz.pack_tag` packs it."""
        tables = self.params.tables
        model_bits, partition_bits = (tables.models - 1).bit_length(), (tables.partitions - 1).bit_length()
        key = self.op.key if key is None else key
        return Cat(key, self.op.model[:model_bits], partition[:partition_bits])

    # Life and death of a block, as in `pymodel.spec.core`.

    def write_frame(self, **changes: object) -> None:
        """Write the row of `index` back, changed; that of a QUARANTINED frame is never written."""
        self.m.d.comb += self._writes.eq(1)
        self.m.d.comb += [self.row[name].eq(value) for name, value in changes.items()]

    def write_pins(self, index: Value, pins: Value) -> None:
        """Write the row in hand to `index`, with so many pins: it is hit, referenced, and nothing to evict."""
        words = self.replacement.clock.words
        self.m.d.comb += [
            self._writes.eq(1),
            self.frames.write_address.eq(index),
            self.row.pins.eq(pins),
            words.mark.eq(1),
            words.frame.eq(index),
            words.evictable.eq(0),
            words.referenced.eq(1),
        ]

    def session_lives(self, generation: Value) -> Value:
        """Whether the session that was read is that of `generation`, and its ring not lost."""
        return self.is_session(generation) & ~self._owner_lost

    def note_evictable(self) -> None:
        """Tell the clock of a frame whose row is written: SEALED, held by nothing, with a generation to go."""
        words, row = self.replacement.clock.words, self.row
        held = (row.pins != 0) | (row.reads != 0)
        self.m.d.comb += [
            words.mark.eq(1),
            words.frame.eq(self.index),
            words.evictable.eq((row.state == State.SEALED) & ~held & ~self.worn),
        ]

    def unlink(self) -> None:
        """The block leaves the index and its scopes."""
        frame, request = self.frame, self.cam.requests
        self.m.d.comb += [
            request.valid.eq(1),
            request.payload.op.eq(CamOp.UPDATE),
            request.payload.place.eq(frame.place),
            request.payload.valid.eq(0),
        ]
        self.leave_scopes()

    def leave_scopes(self) -> None:
        """The block leaves its scopes."""
        frame = self.frame
        self.m.d.comb += [
            self.partition_scopes.op.eq(ScopeOp.LEAVE),
            self.partition_scopes.index.eq(frame.partition),
            self.partition_scopes.stamp.eq(frame.partition_stamp),
            self.model_scopes.op.eq(ScopeOp.LEAVE),
            self.model_scopes.index.eq(frame.model),
            self.model_scopes.stamp.eq(frame.model_stamp),
        ]

    def lose_use(self) -> None:
        """The frame leaves its partition."""
        usage = self.replacement.usage
        self.m.d.comb += [usage.lose.eq(1), usage.lose_index.eq(self.frame.partition)]

    def retire(self) -> None:
        """The frame, which no partition has, leaves service."""
        usage = self.replacement.usage
        self.m.d.comb += [usage.quarantine.eq(1), usage.quarantine_pool.eq(self.pool_of(self.index))]

    def pool_of(self, frame: Value) -> Value:
        """The pool that a frame is in."""
        firsts = [sum(pool.frames for pool in self.params.pools[:i]) for i in range(1, len(self.params.pools))]
        return sum((frame >= first for first in firsts), Const(0, 1))

    @property
    def swept(self) -> tuple[int, ...]:
        """How many frames the hand of each share goes over: those of its pool, or all."""
        return tuple(pool.frames for pool in self.params.pools) if self.params.strict else (self.params.frames,)

    def share_of(self, number: Value) -> Value | None:
        """The share that a port or partition is of; None where there are no shares."""
        return number[: len(self.share)] if self.params.shares > 1 else None

    def sweep(self, share: Value | None = None) -> None:
        """Something has died: every frame and parked READ, of a share or of all, is to be looked at once more."""
        for i, frames in enumerate(self.swept):
            died = frames if share is None else Mux(share == i, frames, self.sweeps_of[i])
            self.m.d.sync += self.sweeps_of[i].eq(died)
        self.wake_all(share)

    def wake_all(self, share: Value | None = None) -> None:
        """Every parked READ, of a share or of all, is to be looked at once more."""
        self.m.d.comb += self.parking.wake_all.eq(~0 if share is None else 1 << share)

    # Words of one ring or partition.

    def reads(self, reader: Value, owner: Value) -> Value:
        """Whether rings of partition `reader` may read sealed blocks of `owner`."""
        shared = self.public.bit_select(owner, 1) & self.read_masks[reader].bit_select(owner, 1)
        return (reader == owner) | shared

    def standing(self, generation: Value, *, writing: bool = False) -> Value:
        """What the ring may do in the session that was read, asked for in `generation`: a status.

        A ring that has answered a fence may still be `writing` what it has counted.
        """
        owner, fence = self.owner, self.fence
        moves_here = owner.moving & (fence.target == self.op.stamp)
        related = self.owned | (owner.moved & (owner.former == self.op.stamp)) | moves_here
        counted = (owner.written < fence.writes) if writing else Const(0)
        _, status = first(
            (~self.is_session(generation), Status.STALE),
            (~related | ~self.is_neighbour, Status.DENIED),
            (self._owner_lost, Status.STALE),
            (self.owned & (~owner.moving | ~fence.answered | counted), Status.OK),
            (moves_here, Status.PENDING),
            (1, Status.STALE),
        )
        return status

    def is_session(self, generation: Value) -> Value:
        """Whether the session that was read is that of `generation`."""
        return self.sessions.used & (self.sessions.generation == generation)

    @property
    def is_neighbour(self) -> Value:
        """Whether the session that was read is of the ring's partition."""
        return self.rings[self.ring_index(self.owner.ring)].partition == self.ring.partition

    @property
    def is_ownerless(self) -> Value:
        """Whether the session that was read has lost its ring."""
        return self._owner_lost

    def change_session(self, **changes: ValueLike) -> None:
        """Write the session that was read back, changed."""
        self.m.d.comb += self.sessions.op.eq(SlotOp.UPDATE)
        self.m.d.comb += [self.sessions.new_entry[name].eq(value) for name, value in changes.items()]

    def settle(self, count: Value) -> None:
        """Of the block that is being written, memory has answered so many segments, or will answer them to nobody."""
        owner, fence = self.owner, self.fence
        settled = Signal.like(owner.settled)
        self.m.d.comb += settled.eq(owner.settled + count)
        with self.m.If(self.writing & self.is_session(self.frame.session_generation)):
            self.change_session(settled=settled)
            self.m.d.comb += self.fences.land.eq(owner.moving & fence.answered & (settled >= fence.writes))

    @staticmethod
    def product(matrix: crc32c.Matrix, vector: Value) -> Value:
        """Matrix times vector: each row of the matrix is one parity."""
        return Cat((vector & row).xor() for row in crc32c.rows(matrix))

    def release_slot(self, table: SlotTables) -> None:
        """Release the entry that was read."""
        self.m.d.comb += table.op.eq(SlotOp.RELEASE)
