"""The index and the frames of the core: which block is found under a tag, and by whom."""

from typing import Any

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.hdl import Assert, Cover
from amaranth.lib import data

from hw.formal.node.bench import CoreBench, claim_kinds, claim_rows, require_rows
from hw.formal.node.placed_cam import PlacedCam
from hw.formal.node.stories import FOUND
from hw.formal.property import Induction, Property
from hw.params.protocol import Status
from hw.rtl.node.layouts import Kind, State


class Index(CoreBench):
    """Frames and CAM agree between operations: what is WRITING or SEALED lies in its place, under the tag that it was
    claimed for, and nothing else does; so a tag has one such frame at most."""

    def __init__(self) -> None:
        super().__init__({"Cam": PlacedCam})

    def claim(self, m: Module) -> None:
        t, e, op, state, frames = self.t, self.e, self.t.op, self.state, range(self.params.frames)
        rows, places = t.frames.rows, t.cam.places
        claim_kinds(m, self)
        claim_rows(m, self)
        require_rows(m, self)
        key_bits = len(t.cam.tag) - len(rows[0].model) - len(rows[0].partition)
        keys = Signal(data.ArrayLayout(key_bits, self.params.frames))
        with m.If(state("CLAIM") & t.frames.write):
            m.d.sync += keys[t.index].eq(op.key)
        self.tags = [Cat(keys[f], rows[f].model, rows[f].partition) for f in frames]

        # A victim leaves the index before it is claimed; a dead block of the same key, when its place is.
        evicted = [state("REACH", "OLD", "REPLACE", "FETCH", "CLAIM") & (t.chosen == f) for f in frames]
        live = [rows[f].state.matches(State.WRITING, State.SEALED) for f in frames]
        self.linked = [live[f] & ~evicted[f] for f in frames]
        replaced = state("FETCH", "CLAIM") & t.found.hit & (t.found.frame != t.chosen)
        with m.If(t.frames_ready):
            for f in frames:
                place = places[rows[f].place]
                with m.If(self.linked[f]):
                    m.d.comb += Assert(
                        place.valid & (place.frame == f) & (place.tag == self.tags[f]), "not in its place"
                    )
                m.d.comb += [
                    Assert(~t.replacement.free.bit_select(f, 1) | (rows[f].state == State.FREE)),
                    Assert(~t.replacement.clock.words.may_evict.bit_select(f, 1) | (rows[f].state == State.SEALED)),
                ]
                for g in range(f):
                    same = self.tags[f] == self.tags[g]
                    m.d.comb += Assert(~(self.linked[f] & self.linked[g] & same), "two frames of one tag")
            for number, place in enumerate(places):
                there = Mux(replaced & (t.found.place.as_value() == number), 1, 0)
                linked = Cat(self.linked).bit_select(place.frame, 1) & (rows[place.frame].place.as_value() == number)
                m.d.comb += Assert(~place.valid | linked | there, "a place of nothing")
        with m.Else():
            m.d.comb += [Assert(~place.valid) for place in places]
            m.d.comb += [Assert(state("IDLE") & ~e._chained), Assert(t.replacement.clock.words.may_evict == 0)]
        self._in_hand(m)

    def _in_hand(self, m: Module) -> None:
        """What is known of the operation in hand, while it may wait."""
        t, state, places = self.t, self.state, self.t.cam.places
        tag = t.tag(t.ring.partition)
        with m.If(state("CHOOSE")):
            there = places[t.found.place]
            stored = Cat(place.valid & (place.tag == tag) for place in places).any()
            m.d.comb += Assert(Mux(t.found.hit, there.valid & (there.tag == tag), ~there.valid & ~stored))
            m.d.comb += Assert(~t.found.hit | (there.frame == t.found.frame))


class Hits(Index):
    """A HIT names a SEALED frame that was claimed for the key and model asked for, in the own partition or in a public
    one that the read mask has, and whose scopes are alive."""

    def claim(self, m: Module) -> None:
        super().claim(m)
        t, e, op = self.t, self.e, self.t.op
        after, latest = Signal.like(t.cam.tag), Signal.like(t.cam.tag)
        m.d.sync += after.eq(t.cam.tag)
        m.d.sync += latest.eq(after)
        asked = Signal.like(t.cam.tag)
        with m.If(t.cam.responses.valid):
            m.d.sync += asked.eq(t.cam.tag)
        said = e._verdicts.i.payload
        streamed = self.state("STREAM") & e._verdicts.i.valid & (said.status == Status.HIT)
        judged = self.state("JUDGE") & e._answers & (op.kind == Kind.LOOKUP) & (e._status == Status.HIT)
        known = op.model < self.params.tables.models
        m.d.comb += Assert(~self.state("STREAM", "CAM", "PROBE") | known)
        may_ask = t.public & t.read_masks[t.ring.partition]
        looks = self.state("CAM", "OWNER", "JUDGE", "PROBE") & (op.kind == Kind.LOOKUP)
        m.d.comb += Assert(~looks | (t.unasked & ~may_ask == 0))
        self._hit(m, streamed, said.handle.frame, latest, None)
        self._hit(m, judged, t.index, asked, op.key)
        m.d.comb += [
            Cover(streamed),
            Cover(judged & (t.frame.partition == t.ring.partition)),
            Cover(judged & (t.frame.partition != t.ring.partition)),
            Cover(self.state("CLAIM") & t.found.hit & (t.found.frame != t.chosen)),
            Cover(self.state("EVICT")),
        ]

    def _hit(self, m: Module, when: Value, frame: Value, tag: Value, key: Value | None) -> None:
        t, op = self.t, self.t.op
        row = t.frames.rows[frame]
        alive = Value.cast(1)
        for scopes, index, stamp in (
            (self.scopes("partition"), row.partition, row.partition_stamp),
            (self.scopes("model"), row.model, row.model_stamp),
        ):
            alive &= ~scopes[index].closed & (scopes[index].generation == stamp)
        mask = t.read_masks[t.ring.partition]
        shared = t.public.bit_select(row.partition, 1) & mask.bit_select(row.partition, 1)
        with m.If(when):
            m.d.comb += [
                Assert(row.state == State.SEALED, "a HIT of what is not SEALED"),
                Assert(_choose(self.tags, frame) == tag, "a HIT of another tag"),
                Assert(alive, "a HIT of the dead"),
                Assert(row.model == op.model, "a HIT of another model"),
                Assert((row.partition == t.ring.partition) | shared, "a HIT that may not be told"),
            ]
            if key is not None:
                m.d.comb += Assert(tag[: len(key)] == key, "a HIT of another key")


def _choose(values: list[Any], index: Value) -> Value:
    result = values[0]
    for number, value in enumerate(values):
        result = Mux(index == number, value, result)
    return result


PROPERTIES = (
    Property(
        name="core_tags.index",
        shows="invariant 6: one live frame a tag at most; frames and index agree",
        design=Index,
        method=Induction(8),
        cover=(),
    ),
    Property(
        name="core_tags.hits",
        shows="invariants 2, 4: a HIT is of the same key and model, of a partition that may be read, and alive",
        design=Hits,
        method=Induction(8),
        cover=FOUND,
    ),
)
