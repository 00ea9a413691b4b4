"""What the engines of requesters do, without a clock (docs/write-back.md): the commands of each task, and its end."""

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import NamedTuple

import google_crc32c

from hw.params import commands as c
from hw.params.commands import Command, Completion
from hw.params.params import Params
from hw.params.protocol import REGISTERS, RingId, Status
from hw.params.tasks import Flush, Put, Task

Commands = Generator[Command, Completion, Completion]
"""Yields a command of the node, is sent its completion, and returns that of the task."""


class Name(NamedTuple):
    """A task under way; the command that it has under way goes by the same name."""

    ring: RingId
    tag: int


def put_commands(name: Name, put: Put, *, refused: bool = False) -> Commands:
    """ALLOC, WRITE, SEAL, and ABORT when WRITE or SEAL has failed. ``refused``: memory refuses some of its bytes."""
    if not put.data:
        return Completion(*name, Status.INVALID)
    granted = yield c.Alloc(put.model, put.key, len(put.data), put.session)
    if granted.status is Status.EXISTS:
        return Completion(*name, Status.EXISTS, handle=granted.handle)
    if granted.status is not Status.GRANTED or granted.handle is None:
        return Completion(*name, granted.status)
    written = yield c.Write(granted.handle, 0, put.data)
    ended = Status.INVALID if refused else written.status
    if ended is Status.OK:
        ended = (yield c.Seal(granted.handle, len(put.data), google_crc32c.value(bytes(put.data)))).status
    if ended is not Status.OK:
        yield c.Abort(granted.handle)
        return Completion(*name, ended, written.count)
    return Completion(*name, Status.OK, written.count, handle=granted.handle)


@dataclass(slots=True, eq=False)
class _Job:
    """A task under way: the ``command`` that it waits for, or, of a FLUSH, the PUTs ``before`` it."""

    task: Task
    slice: int
    commands: Commands | None = None
    command: Command | None = None
    before: set[Name] = field(default_factory=set)


class Engines:
    """Those of all requesters: whoever has them gives the commands of each task to the node, one at a time.

    ``ended`` has the completions of tasks, in the order of their ends; it is emptied by whoever reads it.
    """

    def __init__(self, params: Params) -> None:
        self.ended: list[Completion] = []
        self._there = params.requester.slots > 0
        self._jobs: dict[Name, _Job] = {}

    def command(self, ring: RingId, tag: int) -> Command | None:
        """What a task has under way, if it is one."""
        job = self._jobs.get(Name(ring, tag))
        return None if job is None else job.command

    def begin(self, ring: RingId, tag: int, task: Task, slice_: int, *, refused: bool = False) -> Command | None:
        """Begin a task; returns its first command, if it has any. INVALID: there is no such engine, or no ring."""
        name = Name(ring, tag)
        if not self._there or ring == REGISTERS:
            self.ended.append(Completion(*name, Status.INVALID))
            return None
        job = self._jobs[name] = _Job(task, slice_)
        match task:
            case Put():
                job.commands = put_commands(name, task, refused=refused)
                return self._go_on(name, job, None)
            case Flush(session):
                job.before = {
                    other
                    for other, its in self._jobs.items()
                    if other.ring == ring
                    and isinstance(its.task, Put)
                    and (session is None or (its.task.session == session and its.slice == slice_))
                }
                self._end_flushes()
        return None

    def go_on(self, completion: Completion) -> Command | None:
        """A task's command has ended; returns its next one, if it has any."""
        name = Name(completion.ring, completion.tag)
        return self._go_on(name, self._jobs[name], completion)

    def _go_on(self, name: Name, job: _Job, completion: Completion | None) -> Command | None:
        assert job.commands is not None, "a task that has had a command"
        try:
            job.command = next(job.commands) if completion is None else job.commands.send(completion)
        except StopIteration as end:
            self._end(name, end.value)
            return None
        return job.command

    def _end(self, name: Name, completion: Completion) -> None:
        self.ended.append(completion)
        self.forget(*name)

    def forget(self, ring: RingId, tag: int) -> None:
        """A task has ended, in whatever way; nothing if there is no such."""
        if self._jobs.pop(Name(ring, tag), None) is None:
            return
        for job in self._jobs.values():
            job.before.discard(Name(ring, tag))
        self._end_flushes()

    def _end_flushes(self) -> None:
        """End each FLUSH that waits for nothing any more."""
        over = [name for name, job in self._jobs.items() if isinstance(job.task, Flush) and not job.before]
        for name in over:
            del self._jobs[name]
            self.ended.append(Completion(*name, Status.OK))
