"""Which frame an ALLOC gets: a FREE one, or a victim."""

from amaranth import Module, Mux
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from hw.params.params import Params
from hw.rtl.node.clock import Clock
from hw.rtl.node.free_queues import FreeQueues
from hw.rtl.node.usage import Usage


class Replacement(wiring.Component):
    """Chooses frames, as `pymodel.spec.replacement.Replacement` does.

    Below its quota a partition takes the oldest FREE frame of its pool, if it is entitled to one, else a victim of the
    partition that is furthest above its guarantee, or else one of its own; at its quota, a victim of its own.

    Parameters
    ----------
    params
        Pools, partitions, and the sizes of words and queues.

    Interface
    ---------
    choose, partition : In
        Find a frame for `partition`, which stands from a cycle before `choose` until `done`. `usage` is asked for it.
    frozen : In(1)
        The partition takes no victim.
    done : Out(1)
        The choice stands, until the next `choose`.
    found, frame : Out
        Whether there is a frame, and which.
    evict : Out(1)
        It is a victim, and not FREE.
    at_quota : Out(1)
        The partition was at its quota, or above.
    take : In(1)
        Take the FREE frame that was found out of its queue.
    give, give_frame, give_pool : In
        A frame is FREE again.
    idle : In(1)
        In this cycle there is no choice, nothing is given or marked, and `frame` is needed no more: the scrubbers may
        work.
    uncorrectable : Out(1)
        What was read of a table, by a choice or by a scrubber, is lost.

    The ports of `Usage`, `Clock` and `PackedWords` that the commands drive are those of `usage`, `clock` and
    `clock.words`.

    Latency and throughput
    ----------------------
    Three cycles for a FREE frame; for a victim, three more than `Clock`.

    Ordering and stalls
    -------------------
    One choice at a time; nothing else is asked meanwhile.

    Reset and errors
    ----------------
    As its parts: `ready` when all of them are. After `uncorrectable` a choice still ends, but is not to be trusted.

    Invariants
    ----------
    Invariants 5 (only what nothing holds is chosen) and 8.

    Counters
    --------
    Those of `Clock`.
    """

    def __init__(self, params: Params):
        self._params = params
        frame = bits_for(params.frames - 1)
        pool = bits_for(len(params.pools) - 1)
        self.usage = Usage(params)
        self.clock = Clock(params)
        sizes = [p.frames for p in params.pools]
        self._free = FreeQueues(
            firsts=[sum(sizes[:i]) for i in range(len(sizes))], sizes=sizes, width=frame, ecc=params.tables.ecc
        )
        super().__init__(
            {
                "ready": Out(1),
                "choose": In(1),
                "partition": In(bits_for(params.tables.partitions - 1)),
                "frozen": In(1),
                "done": Out(1),
                "found": Out(1),
                "frame": Out(frame),
                "evict": Out(1),
                "at_quota": Out(1),
                "take": In(1),
                "give": In(1),
                "give_frame": In(frame),
                "give_pool": In(pool),
                "idle": In(1),
                "uncorrectable": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.usage = usage = self.usage
        m.submodules.clock = clock = self.clock
        m.submodules.free = free = self._free
        m.d.comb += [
            self.ready.eq(clock.ready & free.ready),
            clock.idle.eq(self.idle),
            free.idle.eq(self.idle),
            self.uncorrectable.eq(clock.uncorrectable | free.uncorrectable),
            free.pop.eq(self.take),
            free.push.eq(self.give),
            free.push_queue.eq(self.give_pool),
            free.push_item.eq(self.give_frame),
            free.queue.eq(usage.limits_of.pool),
            clock.pool.eq(usage.limits_of.pool),
            clock.partition.eq(Mux(usage.full, self.partition, usage.donor)),
            usage.query.eq(self.partition),
            self.frame.eq(Mux(self.evict, clock.victim, free.item)),
        ]
        other = ~usage.full & (usage.donor != self.partition)
        with m.FSM():
            with m.State("IDLE"), m.If(self.choose):
                m.d.sync += self.done.eq(0)
                m.next = "OFFER"
            with m.State("OFFER"):
                m.d.comb += free.offer.eq(1)
                m.d.sync += self.at_quota.eq(usage.full)
                m.next = "DECIDE"
            with m.State("DECIDE"):
                with m.If(~usage.full & usage.entitled & free.any):
                    m.d.sync += [self.done.eq(1), self.found.eq(1), self.evict.eq(0)]
                    m.next = "IDLE"
                with m.Elif(self.frozen):
                    m.d.sync += [self.done.eq(1), self.found.eq(0)]
                    m.next = "IDLE"
                with m.Else():
                    m.d.comb += clock.start.eq(1)
                    m.next = "SEARCH"
            with m.State("SEARCH"), m.If(clock.done):
                with m.If(~clock.found & other):
                    m.d.comb += [clock.start.eq(1), clock.partition.eq(self.partition)]
                    m.next = "OWN"
                with m.Else():
                    m.d.sync += [self.done.eq(1), self.found.eq(clock.found), self.evict.eq(1)]
                    m.next = "IDLE"
            with m.State("OWN"), m.If(clock.done):
                m.d.sync += [self.done.eq(1), self.found.eq(clock.found), self.evict.eq(1)]
                m.next = "IDLE"
        return m
