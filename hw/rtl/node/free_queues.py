"""Queues of what is free: the item that has been free longest is taken next."""

from collections.abc import Sequence

from amaranth import Array, Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from hw.rtl.table import Table


class FreeQueues(wiring.Component):
    """Queues over one memory, each as long as its number of items.

    Parameters
    ----------
    firsts
        The first item of each queue: after the sweep, queue `q` holds `firsts[q]`, `firsts[q] + 1`, ... in order.
    sizes
        Number of items of each queue.
    width
        Width of an item; what is pushed may carry more than its number.
    ecc
        Whether what is in SRAM is coded.

    Interface
    ---------
    ready : Out(1)
        The initialising sweep has passed.
    offer, queue : In
        Ask for the oldest item of `queue`, after a `pop` of this cycle; the answer stands from the next cycle until
        the next `offer`, `pop` or `push`.
    any, item : Out
        The answer: whether there is one, and which.
    pop : In(1)
        Take the item that is offered.
    push, push_queue, push_item : In
        Put an item at the end of a queue.
    idle : In(1)
        In this cycle nothing is asked or done, and no answer is needed any more: the scrubber may work.
    uncorrectable : Out(1)
        The answer that stands, or what the scrubber has read, is lost.

    Latency and throughput
    ----------------------
    One cycle from question to answer; a pop or a push a cycle.

    Ordering and stalls
    -------------------
    First in, first out. While `ready` is low, nothing may be asked.

    Reset and errors
    ----------------
    Reset begins the sweep. `pop` without `any`, `push` to a full queue, and both in one cycle, are the
    user's errors. After `uncorrectable`, no answer is to be trusted until reset.

    Invariants
    ----------
    Part of invariant 8: an item is in its queue once, or taken.

    Counters
    --------
    None.
    """

    def __init__(self, *, firsts: Sequence[int], sizes: Sequence[int], width: int, ecc: bool):
        self._firsts = firsts
        self._sizes = sizes
        self._width = width
        self._ecc = ecc
        queue = bits_for(len(sizes) - 1)
        super().__init__(
            {
                "ready": Out(1),
                "offer": In(1),
                "queue": In(queue),
                "any": Out(1),
                "item": Out(width),
                "pop": In(1),
                "push": In(1),
                "push_queue": In(queue),
                "push_item": In(width),
                "idle": In(1),
                "uncorrectable": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        queues = len(self._sizes)
        depth = sum(self._sizes)
        bases = Array(Const(sum(self._sizes[:q]), range(depth + 1)) for q in range(queues))
        sizes = Array(Const(size, range(depth + 1)) for size in self._sizes)
        m.submodules.items = items = Table(shape=self._width, depth=depth, ecc=self._ecc)

        oldest = Signal(data.ArrayLayout(bits_for(max(self._sizes) - 1), queues))
        count = Signal(data.ArrayLayout(bits_for(max(self._sizes)), queues))
        offered = Signal.like(self.queue)
        following = Signal.like(oldest[0])
        popping = self.pop & (offered == self.queue)
        m.d.comb += [
            following.eq(Mux(oldest[offered] + 1 == sizes[offered], 0, oldest[offered] + 1)),
            items.idle.eq(self.idle),
            self.uncorrectable.eq(items.uncorrectable),
            items.read.eq(self.offer),
            items.read_address.eq(bases[self.queue] + Mux(popping, following, oldest[self.queue])),
            self.any.eq(count[offered] != 0),
            self.item.eq(items.read_data),
        ]
        with m.If(self.offer):
            m.d.sync += offered.eq(self.queue)

        end = Signal(bits_for(2 * max(self._sizes)))
        m.d.comb += [
            end.eq(oldest[self.push_queue] + count[self.push_queue]),
            items.write.eq(self.push),
            items.write_address.eq(
                bases[self.push_queue] + Mux(end >= sizes[self.push_queue], end - sizes[self.push_queue], end)
            ),
            items.write_data.eq(self.push_item),
        ]
        with m.If(self.pop):
            m.d.sync += [
                oldest[offered].eq(following),
                count[offered].eq(count[offered] - 1),
            ]
        with m.Elif(self.push):
            m.d.sync += count[self.push_queue].eq(count[self.push_queue] + 1)

        # The sweep fills one queue after the other.
        queue = Signal.like(self.queue)
        place = Signal(range(depth))
        filled = Signal(range(depth + 1))
        firsts = Array(Const(first, self._width) for first in self._firsts)
        with m.If(~self.ready):
            m.d.comb += [items.write.eq(1), items.write_address.eq(place), items.write_data.eq(firsts[queue] + filled)]
            m.d.sync += [
                place.eq(place + 1),
                filled.eq(filled + 1),
                oldest[queue].eq(0),
                count[queue].eq(sizes[queue]),
            ]
            with m.If(filled + 1 == sizes[queue]):
                m.d.sync += [filled.eq(0), queue.eq(queue + 1)]
                with m.If(queue == queues - 1):
                    m.d.sync += [queue.eq(0), place.eq(0), self.ready.eq(1)]
        return m
