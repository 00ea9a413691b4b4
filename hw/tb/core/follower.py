"""The specification, following a core's order log: says what verdicts the core owes for each entry."""

from collections.abc import Callable

from hw.params import commands as c
from hw.params.commands import Command, Completion, Message
from hw.params.orderlog import Expired, Hand, Operation, ReadDone, Step, Taken, Timer
from hw.params.params import Params
from hw.params.protocol import Handle, RingId, SlotId, Status
from hw.rtl.node.layouts import Kind
from hw.tb.core.operations import Fields, operation, ring_of
from pymodel.spec import Slice

Verdict = tuple[str, RingId, int, int, Status, Status | None, Handle | None, SlotId | None]
"""Kind, ring, tag, item, status; the outcome of the command, if it has ended; handle, slot."""


def verdict(fields: Fields) -> Verdict:
    """What a core said, in the specification's words."""
    named = Handle(**fields["handle"]) if fields["named"] else None
    given = SlotId(**fields["slot"]) if fields["pinned"] else None
    kind = "READ" if fields["kind"] == Kind.READ_DONE.value else Kind(fields["kind"]).name
    status, outcome = Status(fields["status"]), Status(fields["outcome"]) if fields["complete"] else None
    return kind, ring_of(fields["stamp"]), fields["tag"], fields["item"], status, outcome, named, given


class Follower:
    """Executes a core's log on the specification.

    `expect` is called with each verdict that is owed, in the order in which the core owes them; `heard` with all
    outputs of the specification. `number` is that of the slice in its node.
    """

    def __init__(
        self,
        params: Params,
        expect: Callable[[Verdict], None],
        heard: Callable[[list[Completion | Message]], None],
        *,
        number: int = 0,
    ) -> None:
        self.slice = Slice(params, index=number)
        self.commands: dict[tuple[RingId, int], Command] = {}
        self.entries = 0
        self._expect = expect
        self._heard = heard

    def follow(self, entry: Fields) -> Operation:
        """Execute one entry of the log."""
        op = operation(entry, self.commands)
        own = self._subject(op)
        outputs = self.slice.execute(op)
        self.entries += 1
        mine = None
        for output in outputs:
            if not isinstance(output, Completion):
                continue
            if (output.ring, output.tag) == own:
                mine = output
            else:
                kind = self.commands[output.ring, output.tag].opcode.name
                self._expect((kind, output.ring, output.tag, 0, output.status, output.status, None, None))
        if isinstance(op, Taken):
            self._command(op, mine)
        elif isinstance(op, ReadDone):
            assert mine is not None, "a READ that is done completes"
            self._expect(("READ", op.ring, op.tag, entry["item"], mine.status, mine.status, None, None))
        elif own is not None:
            outcome = None if mine is None else mine.status
            self._expect(("READ", *own, 0, outcome or Status.OK, outcome, None, None))
        self._heard(outputs)
        return op

    def _subject(self, op: Operation) -> tuple[RingId, int] | None:
        """Whose command the entry is of, or goes on with."""
        if isinstance(op, Taken | ReadDone):
            return op.ring, op.tag
        match op:
            case Step(Hand.PARKED, slot) | Expired(Timer.PARKED_READ, slot):
                parked = self.slice.core.parked.at(slot)
                return None if parked is None else (parked.ring.id, parked.tag)
        return None

    def _command(self, op: Taken, mine: Completion | None) -> None:
        """The verdict on a command's item."""
        kind = op.command.opcode.name
        result = mine or self.slice.core.outstanding[op.ring, op.tag]
        status, named = result.status, result.handle
        given: SlotId | None = result.session
        if isinstance(op.command, c.Lookup) and len(result.statuses) > op.item:
            status, named, given = result.statuses[op.item], result.handles[op.item], result.pins[op.item]
        elif isinstance(op.command, c.Seal | c.Migrate) and mine is None:
            return
        elif isinstance(op.command, c.Read) and mine is None and (op.ring, op.tag) not in self.slice.core.reads:
            status = Status.PENDING
        self._expect((kind, op.ring, op.tag, op.item, status, mine.status if mine else None, named, given))
