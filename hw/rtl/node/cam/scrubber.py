"""The background scrubber of the block CAM."""

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.params import Params
from hw.rtl.layouts import cam_event_layout, place_layout
from hw.rtl.node.cam.entry import EntryFormat
from hw.rtl.secded import decode, syndrome


class CamScrubber(wiring.Component):
    """Reads way after way in slots that no request uses, and rewrites an entry with a flipped bit.

    An UPDATE of the same place between read and rewrite makes the rewrite stale; it is then left out.

    Parameters
    ----------
    params
        Geometry and widths. Without `tables.ecc` there is nothing to find: no slot is taken.

    Interface
    ---------
    idle : In(1)
        The slot of this cycle is free.
    update, update_place : In
        An UPDATE of this place takes the slot of this cycle.
    read, write : Out(1)
        Take the slot of this cycle, if it is idle, to read the set `place.set`, or to write `entry` at `place`.
    place, entry : Out
        See above.
    found : In, as `EntryFormat` has it
        The entry that was read, two cycles after `read`.
    events : Out, stream of `cam_event_layout(params)`, always ready
        One for each entry found with a mended or an uncorrectable error. Those of a free way do not matter and are
        left alone, unless one bit of it can be mended.

    Latency and throughput
    ----------------------
    One way in six cycles, if slots are idle; one more for a rewrite.

    Ordering and stalls
    -------------------
    Waits for idle slots for any time.

    Reset and errors
    ----------------
    Reset begins again at the first way. An uncorrectable entry is left as it is, and reported in each round.

    Invariants
    ----------
    No rewrite undoes an UPDATE.

    Counters
    --------
    None here: the events are to be counted.
    """

    def __init__(self, params: Params):
        self._params = params
        self._format = EntryFormat(params)
        super().__init__(
            {
                "idle": In(1),
                "update": In(1),
                "update_place": In(place_layout(params)),
                "read": Out(1),
                "write": Out(1),
                "place": Out(place_layout(params)),
                "entry": Out(self._format.layout),
                "found": In(self._format.layout),
                "events": Out(stream.Signature(cam_event_layout(params), always_ready=True)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        if not self._params.tables.ecc:
            return m
        codes = self._format.codes
        place = Signal(place_layout(self._params))
        word = Signal(self._format.layout, reset_less=True)
        mended = Signal(self._format.layout, reset_less=True)
        event = Signal(cam_event_layout(self._params), reset_less=True)
        event_valid = Signal()
        overtaken = Signal()
        m.d.comb += [
            self.place.eq(place),
            self.entry.eq(mended),
            self.events.payload.eq(event),
            self.events.valid.eq(event_valid),
        ]

        # The decoder of each field, with registers after the syndrome and after the verdict; what a free way has lost
        # does not matter.
        syndromes = {name: Signal(code.check_bits, name=f"{name}_syndrome") for name, code in codes.items()}
        fields = {name: decode(m, code, word[name], syndromes[name]) for name, code in codes.items()}
        corrected = Signal(reset_less=True)
        uncorrectable = Signal(reset_less=True)

        m.d.sync += event_valid.eq(0)
        with m.If(self.update & (self.update_place.as_value() == place.as_value())):
            m.d.sync += overtaken.eq(1)
        done = Signal()
        with m.FSM():
            with m.State("READ"), m.If(self.idle):
                m.d.comb += self.read.eq(1)
                m.d.sync += overtaken.eq(0)
                m.next = "FETCH"
            with m.State("FETCH"):
                m.next = "TAKE"
            with m.State("TAKE"):
                m.d.sync += word.eq(self.found)
                m.next = "CHECK"
            with m.State("CHECK"):
                m.d.sync += [syndromes[name].eq(syndrome(code, word[name])) for name, code in codes.items()]
                m.next = "MEND"
            with m.State("MEND"):
                lost = Cat(field.uncorrectable for field in fields.values()).any()
                m.d.sync += [
                    mended.eq(Cat(fields[name].word for name in codes)),
                    corrected.eq(Cat(field.corrected for field in fields.values()).any()),
                    uncorrectable.eq(lost & ~self._format.is_free(m, word)),
                ]
                m.next = "JUDGE"
            with m.State("JUDGE"):
                m.d.sync += [
                    event.eq(Cat(uncorrectable, place)),
                    event_valid.eq(corrected | uncorrectable),
                ]
                with m.If(corrected & ~uncorrectable):
                    m.next = "WRITE"
                with m.Else():
                    m.d.comb += done.eq(1)
                    m.next = "READ"
            with m.State("WRITE"), m.If(overtaken | self.idle):
                m.d.comb += [self.write.eq(~overtaken), done.eq(1)]
                m.next = "READ"

        self._advance(m, place, done)
        return m

    def _advance(self, m: Module, place: data.View, done: Value) -> None:
        """When `done`, go on to the next way, then the next bank, then the next set."""
        cam = self._params.cam
        for counter, count in ((place.way, cam.ways), (place.bank, cam.banks), (place.set, self._params.cam_sets)):
            last = counter == count - 1
            with m.If(done):
                m.d.sync += counter.eq(Mux(last, 0, counter + 1))
            done &= last
