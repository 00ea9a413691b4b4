"""FREE frames and victims."""

from hw.formal.guard import Guard
from hw.rtl.node.clock import Clock
from hw.rtl.node.free_queues import FreeQueues

GUARDS = (
    Guard(
        "a FREE frame that is popped is not offered again",
        FreeQueues,
        "Mux(popping, following, oldest[self.queue])",
        "oldest[self.queue]",
        "replacement.free",
    ),
    Guard(
        "only what may be evicted is a victim",
        Clock,
        "with m.If(word.evictable.bit_select(bit, 1) & ~word.referenced.bit_select(bit, 1)):",
        "with m.If(~word.referenced.bit_select(bit, 1)):",
        "replacement.victim",
    ),
)
