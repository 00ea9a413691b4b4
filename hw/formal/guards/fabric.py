"""Links."""

from functools import partial

from hw.formal.guard import Guard
from hw.formal.property import Bounded
from hw.rtl.fabric import Receiver, Transmitter
from hw.rtl.queue import Queue

NEAR = Bounded(12, "the failure is near, and abc's cannot be read back where what a memory holds matters")

QueueGuard = partial(Guard, method=NEAR)

GUARDS = (
    Guard("a flit needs a credit", Transmitter, "& (count != 0)", "", "fabric.conservation"),
    Guard(
        "a credit that comes back while a flit is sent is kept",
        Transmitter,
        "count - sent + self",
        "count - sent + ~sent & self",
        "fabric.conservation",
    ),
    Guard(
        "a credit comes back when a flit is taken",
        Receiver,
        "output.valid & output.ready",
        "output.valid",
        "fabric.conservation",
    ),
    Guard("channels take turns", Transmitter, "turn.eq(chosen)", "turn.eq(len(inputs) - 1)", "fabric.conservation"),
    QueueGuard(
        "an offer is not withdrawn",
        Queue,
        "valid.eq(held != 0)",
        "valid.eq((held != 0) & ~self.i.valid)",
        "fabric.stream",
    ),
    QueueGuard(
        "a flit stays as it is", Queue, "data.eq(self.i.payload)", "data.eq(~self.i.payload.as_value())", "fabric.order"
    ),
)
