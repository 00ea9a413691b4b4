"""Talk with a core in the Amaranth simulator: one operation after the other, and what it said."""

from dataclasses import replace

import google_crc32c
import pytest
from amaranth.sim import SimulatorContext

from hw.params import commands as c
from hw.params.protocol import REGISTERS, Handle, ModelState, Opcode, RingId, SlotId, Status
from hw.params.sections import CamParams
from hw.params.toeplitz import diagonals
from hw.rtl.emit import describe
from hw.rtl.node.core import Core
from hw.rtl.node.layouts import Kind, operation_layout, verdict_layout
from hw.tb.core.operations import Encoder, Fields
from hw.tb.payload import Codec
from tests.hw.corebench import small
from tests.hw.flips import Content

RING = RingId(0, 0)
PARAMS = replace(small(), cam=CamParams(banks=2, ways=4, sets=4))
"""The CAM has a place for every key of the stories."""

FRAMES = PARAMS.pools[0].frames


class Talk:
    """Speaks with a core, one operation after the other.

    - `events`: frames whose rows were mended or lost. `entries`: what the log has got.
    - `said`: verdicts since the last command.
    - `cycle`: cycles so far; `taken`: that in which the last operation was taken; `cycles`: from an operation to each
      verdict.
    """

    def __init__(self, ctx: SimulatorContext, dut: Core, contents: list[Content]) -> None:
        self.ctx, self.dut, self.contents = ctx, dut, contents
        self._operations, self._verdicts = (
            Codec(describe(layout)) for layout in (operation_layout(PARAMS), verdict_layout())
        )
        self._encoder = Encoder(PARAMS, self._operations)
        self.session = SlotId(0, 0)
        self.events: list[tuple[int, bool]] = []
        self.entries = self.cycle = self.taken = 0
        self.cycles: list[int] = []
        self.said: list[Fields] = []

    @property
    def frames(self) -> Content:
        """The frame table."""
        return next(content for content in self.contents if content.table._lost)

    @property
    def seals(self) -> Content:
        """What is stored again of SEALs that wait."""
        return next(content for content in self.contents if content.table._lost == 0)

    async def tick(self, cycles: int = 1) -> None:
        """Let time pass."""
        for _ in range(cycles):
            ctx, dut = self.ctx, self.dut
            if ctx.get(dut.verdicts.valid):
                self.said.append(self._verdicts.unpack(ctx.get(dut.verdicts.payload.as_value())))
                self.cycles.append(self.cycle - self.taken)
            if ctx.get(dut.table_events.valid):
                event = ctx.get(dut.table_events.payload)
                self.events.append((event.frame, bool(event.uncorrectable)))
            self.entries += ctx.get(dut.log.valid)
            await ctx.tick()
            self.cycle += 1

    async def operation(self, fields: Fields) -> None:
        """Have an operation taken."""
        self.ctx.set(self.dut.operations.valid, 1)
        self.ctx.set(self.dut.operations.payload.as_value(), self._operations.pack(fields))
        for _ in range(200):
            taken = self.ctx.get(self.dut.operations.ready)
            if taken:
                self.taken = self.cycle
            await self.tick()
            if taken:
                break
        else:
            pytest.fail("the core takes no operation any more")
        self.ctx.set(self.dut.operations.valid, 0)

    def encode(self, command: c.Command, ring: RingId = RING) -> list[Fields]:
        """The operations of a command."""
        return self._encoder.command(ring, 0, command)

    async def internal(self, kind: Kind, frame: int, *, wait: int = 10, **fields: int) -> None:
        """An internal operation of a frame, and some cycles."""
        blank = self._encoder.blank(kind)
        await self.operation(blank | fields | {"handle": blank["handle"] | {"frame": frame}})
        await self.tick(wait)

    async def ask(self, command: c.Command, ring: RingId = RING) -> Fields:
        """A command's last verdict."""
        self.said.clear()
        items = self.encode(command, ring)
        for item in items:
            await self.operation(item)
        for _ in range(400):
            answers = [said for said in self.said if said["kind"] == items[0]["kind"]]
            if answers and (answers[-1]["complete"] or command.opcode is Opcode.READ):
                return answers[-1]
            await self.tick()
        pytest.fail(f"no verdict on {command}")

    async def status(self, command: c.Command, ring: RingId = RING) -> Status:
        """The status of a command's last verdict."""
        return Status((await self.ask(command, ring))["status"])

    async def begin(self) -> None:
        """Out of reset: a ring, a session, a partition with the whole of the first pool."""
        self.ctx.set(self.dut.diagonals, diagonals(PARAMS))
        self.ctx.set(self.dut.verdicts.ready, 1)
        self.ctx.set(self.dut.log.ready, 1)
        await self.ctx.tick().until(self.dut.ready)
        for command in (c.SetEpoch(99), c.SetPartition(0, quota=FRAMES), c.SetModel(0, ModelState.LIVE)):
            assert await self.status(command, REGISTERS) is Status.OK
        assert await self.status(c.Bind(RING, 0), REGISTERS) is Status.OK
        self.session = SlotId(**(await self.ask(c.OpenSession()))["slot"])

    async def alloc(self, key: int, length: int = 512) -> Handle | None:
        """A block, if there is room for it."""
        said = await self.ask(c.Alloc(0, key, length, self.session))
        return Handle(**said["handle"]) if said["status"] == Status.GRANTED else None

    async def write(self, handle: Handle) -> None:
        """Its one segment, and memory's answer."""
        assert await self.status(c.Write(handle, 0, bytes(512))) is Status.OK
        await self.internal(Kind.LANDED, handle.frame, count=1, ok=1)

    async def store(self, key: int) -> Handle:
        """A sealed block."""
        handle = await self.alloc(key)
        assert handle is not None
        await self.write(handle)
        assert await self.status(c.Seal(handle, 512, google_crc32c.value(bytes(512)))) is Status.OK
        return handle

    def lose(self, frame: int) -> None:
        """Two bits of a frame's row are flipped."""
        self.frames.flip(self.ctx, frame, 0, 1)

    async def lookup(self, key: int) -> Status:
        """Whether a block is there."""
        return await self.status(c.Lookup(0, [key]))
