"""A small migration on the bench, in every interleaving of who takes part."""

from collections.abc import Iterator

from specbench import A_FAR, SEGMENT, A, Bench, block_bytes

from hw.params import commands as c
from hw.params import orderlog as log
from hw.params.commands import Command
from hw.params.orderlog import Operation, Taken

DATA = block_bytes(2)
WRITE_0, WRITE_1, ANSWER, MIGRATE, READ = range(100, 105)
"""Tags of the commands that are interleaved."""


class Story:
    """A writes two segments and answers the FENCE; A_FAR asks for the session and parks a READ of the whole block."""

    def __init__(self) -> None:
        self.bench = Bench(audited=False)
        self.session = self.bench.open(A)
        self.handle = self.bench.alloc(A, self.session, 1, 2 * SEGMENT)
        self.old: list[tuple[int, Command]] = [
            (WRITE_0, c.Write(self.handle, 0, DATA[:SEGMENT])),
            (WRITE_1, c.Write(self.handle, 1, DATA[SEGMENT:])),
            (ANSWER, c.AnswerFence(self.session, 2)),
        ]
        self.new: list[tuple[int, Command]] = [
            (MIGRATE, c.Migrate(self.session)),
            (READ, c.Read(self.handle, 0, 2, park=True)),
        ]

    def next_steps(self, fault: Operation | None) -> list[tuple[str, Operation]]:
        """What may come next, by who does it; the FENCE is answered when it has been heard."""
        core = self.bench.core
        steps: list[tuple[str, Operation]] = [("slice", op) for op in self.bench.slice.possible()]
        fenced = any(isinstance(message, c.Fence) for message in self.bench.heard)
        if self.old and (self.old[0][0] != ANSWER or fenced):
            steps.append(("old", Taken(A, *self.old[0])))
        if self.new:
            steps.append(("new", Taken(A_FAR, *self.new[0])))
        if isinstance(fault, log.Lost) or (isinstance(fault, log.Expired) and fault.slot in core.fenced):
            steps.append(("fault", fault))
        return steps

    def take(self, who: str, op: Operation) -> None:
        """Go on by one step."""
        if who in ("old", "new"):
            getattr(self, who).pop(0)
        self.bench.execute(op)


def stories(fault: Operation | None = None) -> Iterator[Story]:
    """Every interleaving, played to its end; the fault strikes once, at every place that it can."""
    open_paths: list[list[tuple[str, Operation]]] = [[]]
    while open_paths:
        path = open_paths.pop()
        story = Story()
        for step in path:
            story.take(*step)
        struck = any(who == "fault" for who, _ in path)
        while steps := story.next_steps(None if struck else fault):
            open_paths += [[*path, other] for other in steps[1:]]
            path.append(steps[0])
            story.take(*steps[0])
            struck = struck or steps[0][0] == "fault"
        story.bench.slice.monitor.audit()
        yield story
