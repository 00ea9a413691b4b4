"""What the hands of the core do when a ring is lost."""

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.hdl import Assert, Assume, Cover

from hw.formal.node.bench import CHOOSING, CoreBench, claim_kinds, claim_rows, require_rows
from hw.formal.node.free import anything
from hw.formal.node.stories import LOSS
from hw.formal.property import Induction, Property
from hw.formal.symbolic import constant
from hw.rtl.node.layouts import Kind, State
from hw.rtl.node.slots import SlotOp


class Lost(CoreBench):
    """Of any one ring that is lost: no pin is taken any more, and no frame claimed; after one turn of the hand for each
    entry of its pin table it has no pin; and after one turn for each frame none is WRITING for it.

    `Fences` gives FENCED only while the ring that the session moves to is not lost.
    """

    def own_inputs(self) -> None:
        super().own_inputs()
        self.ring_choice = anything(range(self.params.rings), "ring_choice")

    def claim(self, m: Module) -> None:
        claim_kinds(m, self)
        claim_rows(m, self)
        require_rows(m, self)
        t, op, state = self.t, self.t.op, self.state
        number = constant(m, self.ring_choice, "ring")
        ring = t.rings[number]
        fenced = state("JUDGE") & (op.kind == Kind.FENCED)
        m.d.comb += Assume(~fenced | ~t.is_lost(t.fence.target))

        m.d.comb += Assert(~state("CAM", "PROBE", "STREAM", *CHOOSING) | ~t.ring.lost)
        claimant = t.sessions.rows[op.slot.slot[: len(t.sessions.slot)]]
        own = claimant.used & (claimant.generation == op.slot.generation) & (claimant.entry.ring == op.stamp)
        m.d.comb += Assert(~state(*CHOOSING) | own)
        read = t.sessions.entries
        held = t.sessions.rows[t.sessions.asked]
        stands = read.known & (read.content == Value.cast(held)) & held.used
        m.d.comb += Assert(~state("ADVANCE", "APPEND") | stands)
        self._pins(m, number)
        self._frames(m, number)
        m.d.comb += Assert(~(ring.lost & state("CLAIM") & (t.ring_number == number)), "a lost ring gets a frame")

    def _pins(self, m: Module, number: Value) -> None:
        """What a hand has looked at since the loss is free, and stays so."""
        t, op, state, params = self.t, self.t.op, self.state, self.params
        ring = t.rings[number]
        slots = params.tables.pins_per_ring
        pins = [t.pins.rows[Cat(Const(slot, len(t.pins.slot)), number)] for slot in range(slots)]
        looked, turns = Signal(slots), Signal(range(slots + 1))
        step = state("JUDGE") & (op.kind == Kind.STEP_PINS) & (t.pin_table == number)
        stepped = Signal(range(slots))
        m.d.comb += stepped.eq(t.pins.asked[: len(t.pins.slot)])
        with m.If(~ring.lost):
            m.d.sync += [looked.eq(0), turns.eq(0)]
        with m.Elif(step):
            m.d.sync += looked.bit_select(stepped, 1).eq(1)
            with m.If(turns < slots):
                m.d.sync += turns.eq(turns + 1)
        m.d.comb += [
            Assert(ring.pins == sum(pin.used for pin in pins), "pins that are not counted"),
            Assert(~(ring.lost & (t.pins.op == SlotOp.TAKE) & (t.pins.offered == number)), "a lost ring takes a pin"),
            Assert((turns < slots) | looked.all() | (ring.pins == 0), "a pin is passed over"),
            Assert((turns < slots) | (ring.pins == 0), "a pin of a lost ring stays"),
        ]
        m.d.comb += [Assert(~(looked[slot] & pins[slot].used)) for slot in range(slots)]
        hand = t.pin_hand
        going = state("PIN", "OWNER", "JUDGE") & (op.kind == Kind.STEP_PINS) & (t.pin_table == number) & ring.lost
        m.d.comb += Assert((turns != 1) | (ring.pins == 0) | (looked == Mux(hand ^ going, 1, 2)))
        m.d.comb += Assert((turns != 0) | (looked == 0))
        m.d.comb += Assert((turns == 0) | (turns == slots) | (t.ring_hand == number) | (ring.pins == 0))
        m.d.comb += Cover((turns == slots) & (ring.pins == 0))

    def _frames(self, m: Module, number: Value) -> None:
        """What the sweep has looked at since the loss is not WRITING for the ring."""
        t, op, state, params = self.t, self.t.op, self.state, self.params
        ring = t.rings[number]
        frames = params.frames
        swept = Signal(frames)
        sweeps = state("JUDGE") & (op.kind == Kind.STEP_FRAMES)
        with m.If(~ring.lost):
            m.d.sync += swept.eq(0)
        with m.Elif(sweeps):
            m.d.sync += swept.bit_select(t.index, 1).eq(1)
        under_way = state("OWNER", "JUDGE") & (op.kind == Kind.STEP_FRAMES)
        with m.If(t.frames_ready):
            for f in range(frames):
                row = t.frames.rows[f]
                session = t.sessions.rows[row.session_slot]
                of_ring = session.used & (session.generation == row.session_generation)
                of_ring &= t.ring_index(session.entry.ring) == number
                distance = Signal(range(frames), name=f"distance_{f}")
                m.d.comb += distance.eq(f - t.frame_hand)
                comes = (distance < t.sweeps) | (under_way & (op.handle.frame == f))
                with m.If(ring.lost):
                    m.d.comb += Assert(~(swept[f] & (row.state == State.WRITING) & of_ring), "WRITING for a lost ring")
                    m.d.comb += Assert(swept[f] | comes, "a frame is passed over")
        m.d.comb += [
            Cover(swept.all() & (t.sweeps == 0)),
            Cover(sweeps & t.frames.write & ring.lost),
        ]


PROPERTIES = (
    Property(
        name="core_lost.ring",
        shows="invariant 11: after a counted number of turns nothing of a lost ring is pinned or WRITING",
        design=Lost,
        method=Induction(8),
        cover=LOSS,
    ),
)
