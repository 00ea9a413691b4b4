"""Sessions on their way from one ring to another."""

from amaranth import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for, exact_log2

from hw.params.params import Params
from hw.params.protocol import TAG_BITS
from hw.rtl.arbiter import next_in_turn
from hw.rtl.node.layouts import COUNT_BITS, Kind, fence_layout, ring_layout
from hw.rtl.node.rota import Turn, rota_member
from hw.rtl.timer import tick


class Fences(wiring.Component):
    """The migrations under way, and which of them goes on by itself.

    A migration asks for FENCED once its writes have landed, for STEP_SESSIONS when the ring that the session was
    moving to is lost, and for EXPIRED_FENCE when its time is up: after `fence_cycles` at least, and twice as long at
    most.

    Parameters
    ----------
    params
        `tables.fences`, `tables.fence_cycles`, and the `shares` that the fences are divided into: fence i is of share
        i modulo `shares`.

    Interface
    ---------
    rota : In, `turn_layout(params)`
        Only where partitions are isolated: whose migrations may ask.
    lost : In, a bit a ring
        The ring is lost.
    share : In
        Whose session would begin to move.
    room, free : Out
        It may, and the number that its fence will have.
    begin, new_slot, target, tag : In
        It does, as that command of that ring asked for.
    index : In
        The fence that `fence`, `answer`, `land` and `end` are about.
    fence : Out, `fence_layout()`
        It, in the same cycle.
    answer, writes : In
        The old ring has answered.
    land : In(1)
        The writes that were counted have landed.
    end : In(1)
        The migration is over.
    asks, kind, slot : Out
        One asks for an operation, which one, and of which session.
    pick : In(1)
        The operation is begun.

    Latency and throughput
    ----------------------
    `asks` in the cycle after whatever it follows from.

    Ordering and stalls
    -------------------
    Those that ask are picked in turn. One that is picked for FENCED asks again only if `land` comes again; the others
    ask until they end.

    Reset and errors
    ----------------
    Reset ends all migrations.

    Invariants
    ----------
    Part of 9, 10 and 11.

    Counters
    --------
    None.
    """

    def __init__(self, params: Params):
        self._params = params
        number = bits_for(params.tables.fences - 1)
        slot = bits_for(params.tables.sessions - 1)
        super().__init__(
            {
                **rota_member(params),
                "lost": In(params.rings),
                "share": In(exact_log2(params.shares)),
                "room": Out(1),
                "free": Out(number),
                "begin": In(1),
                "new_slot": In(slot),
                "target": In(ring_layout()),
                "tag": In(TAG_BITS),
                "index": In(number),
                "fence": Out(fence_layout()),
                "answer": In(1),
                "writes": In(COUNT_BITS),
                "land": In(1),
                "end": In(1),
                "asks": Out(1),
                "kind": Out(Kind),
                "slot": Out(slot),
                "pick": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        tables = self._params.tables
        row = data.StructLayout(
            {"used": 1, "landed": 1, "aged": 1, "late": 1, "slot": len(self.slot), "fence": fence_layout()}
        )
        rows = Signal(data.ArrayLayout(row, tables.fences))
        now = tick(m, tables.fence_cycles)
        forsaken = Signal(tables.fences)
        m.d.comb += self.fence.eq(rows[self.index].fence)
        for i in reversed(range(tables.fences)):
            with m.If(~rows[i].used & (self.share == i % self._params.shares)):
                m.d.comb += [self.room.eq(1), self.free.eq(i)]

        turn = Turn(self._params, self)
        asking, last = Signal(tables.fences), turn.each(len(self.index), name="last")
        chosen = next_in_turn(m, asking, last)
        for i in range(tables.fences):
            each, target = rows[i], rows[i].fence.target
            mine = self.index == i
            m.d.comb += [
                forsaken[i].eq(self.lost.bit_select(target.port * tables.rings_per_port + target.ring, 1)),
                asking[i].eq(turn.only(each.used & (each.landed | each.late | forsaken[i]), i)),
            ]
            with m.If(now):
                m.d.sync += [each.aged.eq(1), each.late.eq(each.aged)]
            with m.If(self.pick & (chosen == i)):
                m.d.sync += each.landed.eq(0)
            with m.If(self.land & mine):
                m.d.sync += each.landed.eq(1)
            with m.If(self.answer & mine):
                m.d.sync += [each.fence.answered.eq(1), each.fence.writes.eq(self.writes)]
            with m.If(self.end & mine):
                m.d.sync += each.used.eq(0)
            with m.If(self.begin & (self.free == i)):
                m.d.sync += [
                    each.eq(0),
                    each.used.eq(1),
                    each.slot.eq(self.new_slot),
                    each.fence.target.eq(self.target),
                    each.fence.tag.eq(self.tag),
                ]

        ask = rows[chosen]
        m.d.comb += [
            self.asks.eq(asking.any()),
            self.slot.eq(ask.slot),
            self.kind.eq(
                Mux(
                    forsaken.bit_select(chosen, 1),
                    Kind.STEP_SESSIONS,
                    Mux(ask.landed, Kind.FENCED, Kind.EXPIRED_FENCE),
                )
            ),
        ]
        with m.If(self.pick):
            m.d.sync += last.eq(chosen)
        return m
