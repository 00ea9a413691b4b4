"""The sessions that a requester has."""

from amaranth import Array, Cat, Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from hw.params import Params
from hw.params.protocol import ITEM_BITS
from hw.rtl.gpu.first import lowest
from hw.rtl.gpu.sessions.layouts import COUNT_BITS, entry_bits, name_layout


class SessionTable(wiring.Component):
    """Keeps the sessions of this requester, what the node has appended in each, and which are to move.

    Parameters
    ----------
    params
        Entries, rings, commands in flight.

    Interface
    ---------
    add, added : In, a flag and `name_layout(params)`
        A session has come to a ring.
    remove, removed : In, the same
        One has left it.
    drop : In(1)
        So has that of entry `at`.
    lost : In, a bit a ring
        None of their sessions is left.
    clear : In(1)
        None at all is left, and none comes.
    begin, began, counted, entry : In and Out
        A WRITE begins that names session `began`: whether that has an entry, and which, in the same cycle.
    end, ends, appended : In
        A WRITE that was counted in entry `ends` has ended, and appended so many segments.
    wrote, writer, segments : In, a flag, `name_layout(params)` and a number
        A PUT of the session `writer` has.
    fence, fenced, managed : In and Out
        The session `fenced` is to move; whether it has an entry, in the same cycle.
    at, there, name, count, busy : In and Out
        Of entry `at`: whether it is used, its session, its segments, and whether a WRITE of it is under way.
    moving, next : Out
        Some session is to move, and the entry of one.
    unmanaged : Out(1)
        One has come, and there was no place, in this cycle.
    used : Out
        Entries that are used.

    Latency and throughput
    ----------------------
    One cycle; all of it in every cycle.

    Ordering and stalls
    -------------------
    None.

    Reset and errors
    ----------------
    Reset empties it. A session that finds no place, or that it has, is not added.

    Invariants
    ----------
    Part of 9: an entry counts all that was appended in its session since that came. An entry that a WRITE is counted
    in is not used for another session.

    Counters
    --------
    None.
    """

    def __init__(self, params: Params):
        self._params = params
        name, entry = name_layout(params), entry_bits(params)
        super().__init__(
            {
                "add": In(1),
                "added": In(name),
                "remove": In(1),
                "removed": In(name),
                "drop": In(1),
                "lost": In(params.tables.rings_per_port),
                "clear": In(1),
                "begin": In(1),
                "began": In(name),
                "counted": Out(1),
                "entry": Out(entry),
                "end": In(1),
                "ends": In(entry),
                "appended": In(ITEM_BITS),
                "wrote": In(1),
                "writer": In(name),
                "segments": In(ITEM_BITS),
                "fence": In(1),
                "fenced": In(name),
                "managed": Out(1),
                "at": In(entry),
                "there": Out(1),
                "name": Out(name),
                "count": Out(COUNT_BITS),
                "busy": Out(1),
                "moving": Out(1),
                "next": Out(entry),
                "unmanaged": Out(1),
                "used": Out(bits_for(params.requester.sessions)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        entries = range(self._params.requester.sessions)
        used, moves = Signal(len(entries)), Signal(len(entries))
        names = [Signal(name_layout(self._params), name=f"name_{i}") for i in entries]
        counts = [Signal(COUNT_BITS, name=f"count_{i}") for i in entries]
        writes = [Signal(bits_for(self._params.requester.commands), name=f"writes_{i}") for i in entries]

        def matches(name: data.View, what: str) -> Signal:
            """Which entry is of this session, if any."""
            found = Signal(len(entries), name=f"{what}_matches")
            m.d.comb += found.eq(Cat(used[i] & (names[i].as_value() == name.as_value()) for i in entries))
            return found

        began, writer, fenced = (matches(getattr(self, what), what) for what in ("began", "writer", "fenced"))
        added, removed = matches(self.added, "added"), matches(self.removed, "removed")
        free, place, gone, wanted = Signal(len(entries)), Signal(len(entries)), Signal(len(entries)), Signal()
        m.d.comb += [
            free.eq(Cat(~used[i] & (writes[i] == 0) for i in entries)),
            wanted.eq(self.add & ~self.clear & ~(self.lost >> self.added.ring)[0] & ~added.any()),
            place.eq(free & (~free + 1) & wanted.replicate(len(entries))),
            self.unmanaged.eq(wanted & ~free.any()),
            self.counted.eq(self.begin & began.any()),
            self.entry.eq(lowest(m, began, name="entry_began")),
            self.managed.eq(self.fence & fenced.any()),
            self.there.eq((used >> self.at)[0]),
            self.name.eq(Array(names)[self.at]),
            self.count.eq(Array(counts)[self.at]),
            self.busy.eq(Array(writes)[self.at] != 0),
            self.moving.eq(moves.any()),
            self.next.eq(lowest(m, moves, name="first_moving")),
            self.used.eq(sum(used[i] for i in entries)),
        ]
        m.d.sync += [used.eq(used & ~gone | place), moves.eq((moves | self._of(fenced, self.fence)) & used & ~gone)]
        for i in entries:
            begins, ends = self.counted & began[i], self.end & (self.ends == i)
            m.d.comb += gone[i].eq(
                self.clear | (self.lost >> names[i].ring)[0] | (self.remove & removed[i]) | (self.drop & (self.at == i))
            )
            m.d.sync += [
                writes[i].eq(writes[i] + begins - ends),
                counts[i].eq(
                    counts[i]
                    + (self.appended & ends.replicate(ITEM_BITS))
                    + (self.segments & (self.wrote & writer[i]).replicate(ITEM_BITS))
                ),
            ]
            with m.If(place[i]):
                m.d.sync += [names[i].eq(self.added), counts[i].eq(0)]
        return m

    @staticmethod
    def _of(bits: Value, valid: Value) -> Value:
        """Return the bits, if they are valid."""
        return bits & valid.replicate(len(bits))
