"""The block CAM: banks x sets x ways of SRAM behind one request a cycle."""

from typing import Any

from amaranth import Cat, Module, Mux, ResetInserter, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hw.params import Params
from hw.params.toeplitz import diagonal_bits
from hw.rtl.layouts import (
    CamOp,
    cam_content_layout,
    cam_event_layout,
    cam_request_layout,
    cam_response_layout,
    place_layout,
)
from hw.rtl.node.cam.bank import CamBank
from hw.rtl.node.cam.entry import EntryFormat
from hw.rtl.node.cam.reader import CamReader
from hw.rtl.node.cam.scrubber import CamScrubber
from hw.rtl.node.cam.selection import CamSelection


class Cam(wiring.Component):
    """The block CAM: looks up whole tags, and says where a new one goes.

    A request takes one *slot* of a pipeline that never stalls, and touches the SRAM in the same stage whatever it is,
    so the order of requests is the order of their effects; nothing is forwarded. An insert is a LOOKUP, which says
    where the tag would go, and an UPDATE of that place; a removal is an UPDATE of a known place. A READ says which tag
    a known place has. Slots without a request belong to the scrubber.

    Stages: hash and encode; SRAM; compare; select. Registers after each. For a READ the last two are: take the entry;
    decode it.

    Parameters
    ----------
    params
        `cam.banks`, `cam.ways` and the number of sets (one bank with one set is a true CAM), `tables.ecc`,
        `tables.isolation` (strict: a partition has sets of its own), and the widths of tag and frame.

    Interface
    ---------
    diagonals : In, a hash matrix of each bank
        As `hw.params.toeplitz.diagonals` gives them. Change them only before reset or `clear`.
    clear : In(1)
        Invalidate everything, as reset does; requests taken up to this cycle come first.
    requests : In, stream of `cam_request_layout(params)`
        LOOKUP, UPDATE and READ. `ready` is low while the content is initialised, and high from then on.
    responses : Out, stream of `cam_response_layout(params)`, always ready
        One for each LOOKUP, in order.
    contents : Out, stream of `cam_content_layout(params)`, always ready
        One for each READ, in order.
    events : Out, stream of `cam_event_layout(params)`, always ready
        Errors that the scrubber has found, one event an entry.

    Latency and throughput
    ----------------------
    One request a cycle. A response or content is valid four cycles after its request was taken, whatever it says.
    Initialising takes a cycle a set.

    Ordering and stalls
    -------------------
    LOOKUP and READ see all UPDATEs taken before them, and no other. No stalls once initialised.

    Reset and errors
    ----------------
    Reset and `clear` invalidate every way; responses under way are lost in reset, and come after `clear`. One flipped
    bit in each of valid bit, tag and frame changes no response; two in one of them make the entry a miss, and its
    place is not offered until an UPDATE has written it. A READ finds nothing where valid bit or tag have two. A tag
    must be in one place at most, and UPDATE and READ must name a place that exists: both are the initiator's duty.

    Invariants
    ----------
    Part of 2, 4 and 6: a hit has the whole tag.

    Counters
    --------
    None here: `events` are to be counted.
    """

    def __init__(self, params: Params):
        self._params = params
        self._entries = EntryFormat(params)
        self._set_shape = place_layout(params)["set"].shape
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
        params, entries = self._params, self._entries
        banks, ways = range(params.cam.banks), params.cam.ways
        request = self.requests.payload

        sweeping, sweep = self._sweep(m)
        taken = Signal()
        lookup, update, read = Signal(), Signal(), Signal()
        m.d.comb += [
            taken.eq(self.requests.valid & self.requests.ready),
            lookup.eq(taken & (request.op == CamOp.LOOKUP)),
            update.eq(taken & (request.op == CamOp.UPDATE)),
            read.eq(taken & (request.op == CamOp.READ)),
        ]
        m.submodules.scrubber = scrubber = ResetInserter(sweeping)(CamScrubber(params))
        m.d.comb += [
            scrubber.idle.eq(~taken & ~sweeping),
            scrubber.update.eq(update),
            scrubber.update_place.eq(request.place),
        ]

        # Hash and encode. A set is known, but for a LOOKUP.
        place = Signal(place_layout(params))
        entry = Signal(entries.layout)
        known = Signal(self._set_shape)
        m.d.comb += [place.eq(Mux(taken, request.place, scrubber.place)), known.eq(Mux(sweeping, sweep, place.set))]
        with m.If(taken):
            m.d.comb += entry.eq(entries.encode(valid=request.valid, tag=request.tag, frame=request.frame))
        with m.Elif(~sweeping):
            m.d.comb += entry.eq(scrubber.entry)

        access, access_lookup, access_read = Signal(), Signal(), Signal()
        access_entry = Signal(entries.layout, reset_less=True)
        access_sets = Signal(data.ArrayLayout(self._set_shape, len(banks)), reset_less=True)
        access_writes = Signal(data.ArrayLayout(ways, len(banks)), reset_less=True)
        m.d.sync += [
            access.eq(sweeping | taken | scrubber.read | scrubber.write),
            access_lookup.eq(lookup),
            access_read.eq(read),
            access_entry.eq(entry),
        ]
        way = Signal(ways)
        m.d.comb += way.eq(Cat((update | scrubber.write) & (place.way == i) for i in range(ways)))
        for bank in banks:
            hashed = _home_set(params, self.diagonals[bank], request.tag)
            m.d.sync += [
                access_sets[bank].eq(Mux(lookup, hashed, known)),
                access_writes[bank].eq(sweeping.replicate(ways) | Mux(place.bank == bank, way, 0)),
            ]

        # SRAM and comparison.
        tag = Signal(entries.tag.bits, reset_less=True)
        m.d.sync += tag.eq(access_entry.tag)
        m.submodules.selection = selection = CamSelection(params)
        m.submodules.reader = reader = CamReader(params)
        for i in banks:
            m.submodules[f"bank_{i}"] = bank = CamBank(params)
            m.d.comb += [
                bank.enable.eq(access),
                bank.write.eq(access_writes[i]),
                bank.set.eq(access_sets[i]),
                bank.entry.eq(access_entry),
                bank.tag.eq(tag),
                reader.rows[i].eq(bank.row),
                selection.found[i].eq(bank.found),
            ]

        # Selection; set numbers, the place and what is asked go along from the access.
        m.d.comb += [
            selection.sets.eq(_delayed(m, access_sets, 2)),
            self.responses.valid.eq(_delayed(m, access_lookup, 3)),
            self.responses.payload.eq(selection.response),
            reader.bank.eq(_delayed(m, place.bank, 2)),
            reader.way.eq(_delayed(m, place.way, 2)),
            scrubber.found.eq(reader.entry),
            self.contents.valid.eq(_delayed(m, access_read, 3)),
            self.contents.payload.eq(reader.content),
            self.events.valid.eq(scrubber.events.valid),
            self.events.payload.eq(scrubber.events.payload),
        ]
        return m

    def _sweep(self, m: Module) -> tuple[Signal, Signal]:
        """Return whether the initialising sweep has all slots to itself, and the set it writes."""
        sweeping = Signal(init=1)
        sweep = Signal(self._set_shape)
        ready = Signal()
        with m.If(sweeping):
            m.d.sync += sweep.eq(sweep + 1)
            with m.If(sweep == self._params.cam_sets - 1):
                m.d.sync += [sweeping.eq(0), ready.eq(1)]
        with m.If(self.clear):
            m.d.sync += [sweeping.eq(1), ready.eq(0)]
        m.d.comb += self.requests.ready.eq(ready)
        return sweeping, sweep


def _delayed(m: Module, value: Any, cycles: int) -> Any:
    """Return `value` as it was `cycles` cycles ago."""
    for _ in range(cycles):
        before = Signal.like(value)
        m.d.sync += before.eq(value)
        value = before
    return value


def _home_set(params: Params, diagonal: Value, tag: Value) -> Value:
    """Return the set of `tag`, as `hw.params.toeplitz.home_set` does."""
    share_bits = exact_log2(params.shares)
    bits = exact_log2(params.cam_sets) - share_bits
    hashed = ((diagonal[bit : bit + len(tag)] & tag).xor() for bit in range(bits))
    return Cat(*hashed, tag[len(tag) - share_bits :])
