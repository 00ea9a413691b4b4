"""The small machines around the core: use, scopes, slots and parked READs."""

from hw.formal.guard import Guard
from hw.rtl.node.free_queues import FreeQueues
from hw.rtl.node.parking import Parking
from hw.rtl.node.scopes import ScopeTable
from hw.rtl.node.slots import SlotTables
from hw.rtl.node.usage import Usage

GUARDS = (
    Guard(
        "a partition at its quota is full",
        Usage,
        "used[self.query] >= asked.quota",
        "used[self.query] > asked.quota",
        "usage.quota",
    ),
    Guard(
        "what others are guaranteed is not borrowed",
        Usage,
        "< serving[asked.pool]",
        "<= serving[asked.pool]",
        "usage.quota",
    ),
    Guard(
        "the frame that reaches the guarantee is not borrowed",
        Usage,
        ">= gaining.guarantee",
        "> gaining.guarantee",
        "usage.quota",
    ),
    Guard("a tie goes to the lowest", Usage, "wins = high[0] > low[0]", "wins = high[0] >= low[0]", "usage.quota"),
    Guard(
        "a donor is of the same pool", Usage, "configured[p] & (limits[p].pool == pool)", "configured[p]", "usage.quota"
    ),
    Guard("a new guarantee replaces the old", Usage, "- was + now", "+ now", "usage.quota"),
    Guard(
        "quarantined frames do not serve",
        Usage,
        "serving[self.quarantine_pool] - 1",
        "serving[self.quarantine_pool]",
        "usage.quota",
    ),
    Guard(
        "what is repaid to another pool is not lent",
        Usage,
        "borrows & ~(repays & (gaining.pool == losing.pool))",
        "borrows & ~repays",
        "usage.quota",
    ),
    Guard("a stamp does not come back", ScopeTable, "~old.closed & ~old.bumps.all()", "~old.closed", "scopes.death"),
    Guard(
        "a scope opens when the last of the dead has left",
        ScopeTable,
        "last.eq(old.stale == 1)",
        "last.eq(1)",
        "scopes.death",
    ),
    Guard("the dead do not count as alive", ScopeTable, "new.live.eq(0)", "new.live.eq(old.live)", "scopes.death"),
    Guard(
        "what leaves a closed scope is dead",
        ScopeTable,
        "~old.closed & (self.stamp == old.generation)",
        "self.stamp == old.generation",
        "scopes.death",
    ),
    Guard("nothing is alive in a closed scope", ScopeTable, "~asked.data.closed & (asked", "(asked", "scopes.death"),
    Guard(
        "what is worn out is not given again",
        SlotTables,
        "m.Case(SlotOp.RELEASE), m.If(~saturated)",
        "m.Case(SlotOp.RELEASE)",
        "slots.names",
    ),
    Guard(
        "a name is given once",
        SlotTables,
        "released.generation.eq(self.generation + 1)",
        "released.generation.eq(self.generation)",
        "slots.names",
    ),
    Guard(
        "a slot is released to its own table",
        SlotTables,
        "push_queue.eq(asked.table)",
        "push_queue.eq(offered)",
        "slots.names",
    ),
    Guard(
        "a slot is taken from the table that offered it",
        SlotTables,
        "Cat(self.free_slot, offered)",
        "Cat(self.free_slot, self.offer_table)",
        "slots.names",
    ),
    Guard("what is taken is offered no more", SlotTables, "free.pop.eq(1)", "free.pop.eq(0)", "slots.names"),
    Guard(
        "a queue goes round at its end",
        FreeQueues,
        "end >= sizes[self.push_queue]",
        "end > sizes[self.push_queue]",
        "slots.names",
    ),
    Guard(
        "a slot that is popped is not offered again",
        FreeQueues,
        "Mux(popping, following, oldest",
        "Mux(0, following, oldest",
        "slots.names",
    ),
    Guard(
        "what is pushed counts for its own queue",
        FreeQueues,
        "count[self.push_queue].eq(",
        "count[offered].eq(",
        "slots.names",
    ),
    Guard("all are woken at once", Parking, "self.wake_all[i % self._params.shares] | ", "", "parking.turns"),
    Guard("one that has left does not ask", Parking, "each.used & (each.woken", "(each.woken", "parking.turns"),
    Guard("those that ask have turns", Parking, "behind.eq(asking & ~passed)", "behind.eq(asking)", "parking.turns"),
    Guard(
        "none is late before the second tick", Parking, "each.late.eq(each.aged)", "each.late.eq(1)", "parking.turns"
    ),
    Guard(
        "the one that was picked leaves",
        Parking,
        "self.release & (picked == i)",
        "self.release & (self.slot == i)",
        "parking.turns",
    ),
    Guard(
        "none asks for a port that may not go on",
        Parking,
        " & self.may_resume.bit_select(each.port, 1)",
        "",
        "parking.turns",
    ),
    Guard("time passes", Parking, "each.aged.eq(1), ", "", "parking.turns"),
)
