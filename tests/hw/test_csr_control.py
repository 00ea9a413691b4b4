"""What stands behind the registers of a slice: commands, error log, hash matrices, counters, interrupts."""

from random import Random
from typing import Any

import pytest

from hw.params import TINY
from hw.params.protocol import Opcode, Status
from hw.params.registers import Bound, ErrorKind
from hw.params.toeplitz import diagonal_bits, diagonals
from hw.rdl import register_map
from hw.rtl.csr import SliceControl
from hw.rtl.csr.control import LOGGED_ERRORS
from hw.rtl.node.slice import Slice
from tests.hw.simulate import simulate

OKAY, SLVERR = 0, 2


class Bus:
    """Reads and writes registers by name, one at a time."""

    def __init__(self, ctx: Any, dut: SliceControl | Slice):
        self.ctx = ctx
        self.axi = dut.axi

    async def write(self, register: str, value: int) -> int:
        """Write a register; return BRESP."""
        ctx, axi = self.ctx, self.axi
        ctx.set(axi.awaddr, register_map()[register].offset)
        ctx.set(axi.wdata, value)
        for signal, level in ((axi.wstrb, 15), (axi.awvalid, 1), (axi.wvalid, 1), (axi.bready, 1)):
            ctx.set(signal, level)
        await ctx.tick()
        ctx.set(axi.awvalid, 0)
        ctx.set(axi.wvalid, 0)
        (response,) = await ctx.tick().sample(axi.bresp).until(axi.bvalid)
        return response.value

    async def read(self, register: str) -> int:
        """Return the value of a register."""
        ctx, axi = self.ctx, self.axi
        ctx.set(axi.araddr, register_map()[register].offset)
        ctx.set(axi.arvalid, 1)
        ctx.set(axi.rready, 1)
        await ctx.tick()
        ctx.set(axi.arvalid, 0)
        response, data = await ctx.tick().sample(axi.rresp, axi.rdata).until(axi.rvalid)
        assert response.value == OKAY
        return data


def on_bus(test: Any) -> Any:
    """Make a test of a coroutine of a bus, its simulator and the control of a slice."""

    def run() -> None:
        dut = SliceControl(TINY)
        simulate(dut, lambda ctx, _: test(Bus(ctx, dut), ctx, dut))

    run.__name__ = test.__name__
    return run


@on_bus
async def test_a_command_is_offered_until_taken_and_its_status_kept(bus: Bus, ctx: Any, dut: SliceControl) -> None:
    await bus.write("ADMIN_PARTITION", 1 | 3 << 8 | 1 << 16)
    await bus.write("ADMIN_QUOTA", 100)
    await bus.write("ADMIN_GUARANTEE", 50)
    await bus.write("ADMIN_READ_MASK_LOW", 0x12345678)
    await bus.write("ADMIN_READ_MASK_HIGH", 0x9ABCDEF0)
    await bus.write("ADMIN_RING", 2 | 3 << 8 | Bound.ADMINISTRATIVE << 16)
    await bus.write("ADMIN_MODEL", 0x1234 | 2 << 16)
    assert not ctx.get(dut.commands.valid)
    await bus.write("ADMIN_COMMAND", Opcode.SET_PARTITION | 1 << 31)
    assert await bus.read("ADMIN_STATUS") == 1 << 31
    await ctx.tick().repeat(5)
    assert ctx.get(dut.commands.valid)
    command = ctx.get(dut.commands.payload)
    assert {field: command[field] for field in dut.commands.payload.shape().members} == {
        "opcode": Opcode.SET_PARTITION,
        "port": 2,
        "ring": 3,
        "binding": Bound.ADMINISTRATIVE,
        "partition": 1,
        "pool": 3,
        "public": 1,
        "quota": 100,
        "guarantee": 50,
        "read_mask": 0x9ABCDEF012345678,
        "model": 0x1234,
        "state": 2,
    }
    for register in ("ADMIN_COMMAND", "ADMIN_PARTITION", "ADMIN_QUOTA", "ADMIN_RING", "ADMIN_MODEL"):
        assert await bus.write(register, 0) == SLVERR
    ctx.set(dut.commands.ready, 1)
    await ctx.tick()
    ctx.set(dut.commands.ready, 0)
    assert not ctx.get(dut.commands.valid)
    assert await bus.read("ADMIN_STATUS") == 1 << 31
    await answer(ctx, dut, Status.RANGE)
    assert await bus.read("ADMIN_STATUS") == Status.RANGE
    assert await bus.read("INTERRUPT_STATUS") & 4
    assert await bus.write("ADMIN_QUOTA", 7) == OKAY
    assert not ctx.get(dut.commands.valid)


async def answer(ctx: Any, dut: SliceControl, status: Status) -> None:
    """Be the slice: a command has ended."""
    ctx.set(dut.statuses.valid, 1)
    ctx.set(dut.statuses.payload, status)
    await ctx.tick()
    ctx.set(dut.statuses.valid, 0)


@on_bus
async def test_a_command_that_is_taken_at_once_is_issued_once(bus: Bus, ctx: Any, dut: SliceControl) -> None:
    ctx.set(dut.commands.ready, 1)
    for status in (Status.OK, Status.INVALID):
        await bus.write("ADMIN_COMMAND", Opcode.RETIRE | 1 << 31)
        taken = 0
        for _ in range(6):
            taken += ctx.get(dut.commands.valid)
            await ctx.tick()
        assert taken <= 1
        assert await bus.read("ADMIN_STATUS") >> 31 == 1
        await answer(ctx, dut, status)
        assert await bus.read("ADMIN_STATUS") == status


@on_bus
async def test_the_first_errors_are_kept(bus: Bus, ctx: Any, dut: SliceControl) -> None:
    capacity = LOGGED_ERRORS
    errors = [
        {"kind": ErrorKind.POISON, "code": i, "port": i % 16, "ring": 15 - i % 16, "frame": 1000 + i}
        for i in range(capacity + 5)
    ]
    assert await bus.read("ERROR_ENTRY") >> 31 == 0
    for error in errors:
        ctx.set(dut.errors.payload, error)
        ctx.set(dut.errors.valid, 1)
        assert ctx.get(dut.errors.ready)
        await ctx.tick()
    ctx.set(dut.errors.valid, 0)
    assert await bus.read("INTERRUPT_STATUS") & 3 == 3
    for error in errors[:capacity]:
        entry = await bus.read("ERROR_ENTRY")
        assert entry == await bus.read("ERROR_ENTRY"), "reading changes nothing"
        assert entry == 1 << 31 | error["ring"] << 20 | error["port"] << 16 | error["code"] << 8 | error["kind"]
        assert await bus.read("ERROR_FRAME") == error["frame"]
        await bus.write("ERROR_POP", 1)
    assert await bus.read("ERROR_ENTRY") >> 31 == 0
    await bus.write("ERROR_POP", 1)
    assert await bus.read("ERROR_ENTRY") >> 31 == 0


@on_bus
async def test_hash_matrices_start_as_parameters_give_them_and_can_be_changed(
    bus: Bus, ctx: Any, dut: SliceControl
) -> None:
    width, banks = diagonal_bits(TINY), TINY.cam.banks
    words = range((width + 31) // 32)
    rng = Random(1)
    assert [ctx.get(dut.diagonals[bank]) for bank in range(banks)] == diagonals(TINY)
    wanted = [rng.getrandbits(32 * len(words)) for _ in range(banks)]
    for bank in range(banks):
        for word in words:
            await bus.write("CAM_HASH_SELECT", bank | word << 8)
            assert await bus.read("CAM_HASH_DATA") == diagonals(TINY)[bank] >> 32 * word & 0xFFFFFFFF
            await bus.write("CAM_HASH_DATA", wanted[bank] >> 32 * word & 0xFFFFFFFF)
    for select in (banks, 255, len(words) << 8, 255 << 8):
        await bus.write("CAM_HASH_SELECT", select)
        await bus.write("CAM_HASH_DATA", 0x5A5A5A5A)
        assert await bus.read("CAM_HASH_DATA") == 0
    kept = [value & (1 << width) - 1 for value in wanted]
    assert [ctx.get(dut.diagonals[bank]) for bank in range(banks)] == kept
    ctx.set(dut.started, 1)
    await bus.write("CAM_HASH_SELECT", 0)
    assert await bus.write("CAM_HASH_DATA", 1) == SLVERR
    assert await bus.read("CAM_HASH_DATA") == kept[0] & 0xFFFFFFFF


@on_bus
async def test_start_and_restart_are_pulses(bus: Bus, ctx: Any, dut: SliceControl) -> None:
    await bus.write("EPOCH_LOW", 0x89ABCDEF)
    await bus.write("EPOCH_HIGH", 0x01234567)
    for bit, pulse in ((1, dut.start), (2, dut.restart)):
        ctx.set(dut.axi.bready, 0)
        ctx.set(dut.axi.awaddr, register_map()["CONTROL"].offset)
        ctx.set(dut.axi.wdata, bit)
        ctx.set(dut.axi.awvalid, 1)
        ctx.set(dut.axi.wvalid, 1)
        await ctx.tick()
        ctx.set(dut.axi.awvalid, 0)
        ctx.set(dut.axi.wvalid, 0)
        seen = []
        for _ in range(6):
            seen.append(ctx.get(pulse))
            await ctx.tick()
        assert seen == [0, 1, 0, 0, 0, 0]
        ctx.set(dut.axi.bready, 1)
        await ctx.tick()
    assert ctx.get(dut.epoch) == 0x0123456789ABCDEF


@on_bus
async def test_counters_count_until_the_restart(bus: Bus, ctx: Any, dut: SliceControl) -> None:
    rng = Random(2)
    shape = dut.counts.shape()
    total = dict.fromkeys(shape.members, 0)
    for _ in range(20):
        counts = {name: rng.getrandbits(width) for name, width in shape.members.items()}
        total = {name: total[name] + counts[name] for name in total}
        ctx.set(dut.counts, counts)
        await ctx.tick()
    ctx.set(dut.counts, dict.fromkeys(total, 0))
    levels = {name: rng.getrandbits(width) for name, width in dut.levels.shape().members.items()}
    ctx.set(dut.levels, levels)
    statistics = {r.statistic: r.name for r in register_map().values() if r.statistic}
    assert {name: await bus.read(register) for name, register in statistics.items()} == total | levels
    await bus.write("CONTROL", 2)
    found = {name: await bus.read(register) for name, register in statistics.items()}
    assert found == dict.fromkeys(total, 0) | levels


@on_bus
async def test_interrupts_wait_for_their_enable(bus: Bus, ctx: Any, dut: SliceControl) -> None:
    ctx.set(dut.ready, 1)
    await ctx.tick().repeat(3)
    assert await bus.read("INTERRUPT_STATUS") == 8
    assert not ctx.get(dut.irq)
    await bus.write("INTERRUPT_ENABLE", 8)
    await ctx.tick()
    assert ctx.get(dut.irq)
    await bus.write("INTERRUPT_STATUS", 8)
    await ctx.tick()
    assert not ctx.get(dut.irq)
    assert await bus.read("INTERRUPT_STATUS") == 0


@pytest.mark.parametrize("register", ["ADMIN_STATUS", "STATUS", "ERROR_ENTRY", "COUNT_EVICTIONS", "ID"])
def test_what_hardware_shows_is_read_only(register: str) -> None:
    async def bench(bus: Bus, ctx: Any, dut: SliceControl) -> None:
        before = await bus.read(register)
        assert await bus.write(register, 0) == SLVERR
        assert await bus.read(register) == before

    on_bus(bench)()
