"""Links with replay."""

from functools import partial

from hw.formal.guard import Guard, Sign
from hw.formal.properties.link import LinkJoin
from hw.formal.property import Bounded
from hw.rtl.fabric import words
from hw.rtl.fabric.acceptance import Acceptance
from hw.rtl.fabric.credits import Credits
from hw.rtl.fabric.join import Join
from hw.rtl.fabric.link_end import LinkEnd
from hw.rtl.fabric.replay import Replay

JoinGuard = partial(Guard, needs="link.join", sign=Sign.FAILED)
"""What is on the wires in the beginning may matter, and the simulator has nothing there."""

NearGuard = partial(Guard, method=Bounded(20, "the failure is near, and the proof is long"))

GUARDS = (
    JoinGuard("who goes down is silent", Join, "& (quiet == 0)", ""),
    JoinGuard("it is so for a whole round trip", LinkJoin.elaborate, "2 * LATENCY", "2 * LATENCY - 2"),
    JoinGuard("an end that is down hears nobody who is up", Join, "Elif(self.said == Phase.INIT)", "Else()"),
    Guard(
        "a flit that comes in a cycle of hold is dropped",
        LinkEnd,
        "acceptance.take & ~self.hold",
        "acceptance.take",
        "link.held",
    ),
    Guard(
        "a hold forgets credits that have come",
        LinkEnd,
        "map(renew, (replay, acceptance, credits))",
        "renew(replay), renew(acceptance), credits",
        "link.held",
    ),
    NearGuard("what is behind a lost flit is not taken", Acceptance, "& (ahead == 0)", "", "link.order"),
    NearGuard(
        "numbers of flits that are under way differ", words.number_bits, "2 * sum(sent.values())", "1", "link.order"
    ),
    NearGuard("a flit stays until it is acknowledged", Replay, "kept.eq(first)", "kept.eq(position)", "link.order"),
    NearGuard("a credit is given once", Credits, "done + owed", "done", "link.credits"),
    NearGuard("a word has all credits", Credits, "due.eq(self.told[name])", "due.eq(due)", "link.credits"),
)
