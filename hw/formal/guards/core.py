"""The core."""

from functools import partial

from hw.formal.guard import Guard, Sign
from hw.rtl.node import usage
from hw.rtl.node.core import allocation, blocks, control, internal, streaming, tables

CoreGuard = partial(Guard, sign=Sign.OPEN)
"""A failure that begins with a reset may be too far for a solver."""

GUARDS = (
    CoreGuard(
        "a READ waits for what has landed",
        blocks.reading,
        "(~t.sealed & ~(mine & (end <= frame.landed)), Status.PENDING)",
        "(0, Status.PENDING)",
        "core_frames.unsealed",
    ),
    CoreGuard(
        "only its own session reads what is being written", blocks.reading, " & t.owned", "", "core_frames.unsealed"
    ),
    CoreGuard(
        "the done bit waits for what has landed",
        internal._sealed,
        "with m.Elif(frame.landed != frame.accepted):",
        "with m.Elif(0):",
        "core_frames.final",
    ),
    CoreGuard("a WRITE ends within the bound", blocks._write, "| (end > frame.bound)", "", "core_frames.final"),
    CoreGuard(
        "a WRITE appends at accepted",
        blocks._write,
        "with m.Elif(op.segment != frame.accepted):",
        "with m.Elif(0):",
        "core_frames.final",
    ),
    CoreGuard(
        "a frame with writes under way is not FREE",
        blocks.drained,
        " & (row.answered == row.accepted)",
        "",
        "core_frames.final",
    ),
    CoreGuard(
        "what is read is no victim",
        tables.Tables.note_evictable,
        "(row.pins != 0) | (row.reads != 0)",
        "row.pins != 0",
        "core_frames.pins",
    ),
    CoreGuard(
        "pins of one LOOKUP are forwarded",
        streaming._judge,
        "with m.If(earlier.valid & (earlier.index == index)):",
        "with m.If(0):",
        "core_frames.pins",
    ),
    CoreGuard(
        "a pin is given back by its generation",
        blocks._unpin,
        "t.pins.used & (t.pins.generation == op.slot.generation)",
        "t.pins.used",
        "core_frames.pins",
    ),
    CoreGuard(
        "a handle has the generation of its frame",
        tables.Tables._derive,
        "& (self.op.handle.generation == frame.generation)",
        "",
        "core_frames.handles",
    ),
    CoreGuard(
        "a handle has the epoch",
        tables.Tables._derive,
        "(self.op.handle.epoch == self.epoch)",
        "Const(1)",
        "core_frames.handles",
    ),
    CoreGuard(
        "a block dies with its model",
        tables.Tables._derive,
        "self.scopes_alive.eq(self.partition_scopes.alive & self.model_scopes.alive)",
        "self.scopes_alive.eq(self.partition_scopes.alive)",
        "core_frames.handles",
    ),
    CoreGuard("what drains leaves the index", blocks.drain, "t.unlink()", "t.leave_scopes()", "core_tags.index"),
    CoreGuard("a victim leaves the index", allocation.states, "t.unlink()", "t.leave_scopes()", "core_tags.index"),
    CoreGuard(
        "the partition is that of the ring",
        control.admit,
        "t.look_up(ring.partition)",
        "t.look_up(op.partition)",
        "core_tags.hits",
    ),
    CoreGuard(
        "only public partitions are asked",
        control.admit,
        "t.public & t.read_masks[ring.partition]",
        "t.read_masks[ring.partition]",
        "core_tags.hits",
    ),
    CoreGuard("a drained frame's use is given back", internal._drained, "t.lose_use()", "pass", "core_quota.use"),
    CoreGuard(
        "a partition at its quota takes its own",
        usage.Usage,
        "used[self.query] >= asked.quota",
        "used[self.query] > asked.quota",
        "core_quota.use",
    ),
    CoreGuard(
        "what is guaranteed is not lent",
        usage.Usage,
        "(borrowed[asked.pool] + promised[asked.pool] < serving[asked.pool])",
        "(borrowed[asked.pool] + promised[asked.pool] <= serving[asked.pool])",
        "core_quota.use",
    ),
    CoreGuard("a victim's use is given back", allocation.states, "t.lose_use()", "pass", "core_quota.use"),
    CoreGuard("a lost ring is refused", control.admit, "(lost, Status.UNAVAILABLE),", "", "core_lost.ring"),
    CoreGuard("a loss begins a sweep", internal._lost, "t.sweep(t.share_of(op.ring.port))", "pass", "core_lost.ring"),
    CoreGuard(
        "a LOOKUP ends when all keys are judged",
        streaming.states,
        "with m.If(t.ended & (busy == 0)):",
        "with m.If(0):",
        "core_time.bound",
    ),
)
