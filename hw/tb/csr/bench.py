"""cocotb tests of `hw.rtl.csr.registers`, for any register map.

Two kinds of manager drive the bus: the AXI4-Lite master of cocotbext-axi, written by others, and channels of our own
for orders and stalls that it does not make. The monitor compares every cycle with the model in both cases.
"""

from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import cocotb
from cocotb.triggers import Combine
from cocotbext.axi import AxiLiteBus, AxiLiteMaster

from hw.params import PRESETS
from hw.rdl import Kind, Register, register_map
from hw.tb.axi import LITE_FIELDS, ChannelSink, ChannelSource
from hw.tb.bench import Bench
from hw.tb.csr.accesses import PAGE, RandomAccesses
from hw.tb.csr.agents import HardwareSide, RegisterMonitor
from hw.tb.csr.checker import RegisterChecker
from hw.tb.csr.model import OKAY, SLVERR, RegisterModel
from hw.tb.pace import Pace, always, bursts, never, randomly
from hw.tb.scoreboard import CheckError

ONES = 0xFFFFFFFF


class RegisterBench(Bench):
    """Registers, their hardware's side and the monitor; who drives the bus is the subclass's business."""

    def __init__(self, dut: Any):
        super().__init__(dut)
        self.params = PRESETS[self.settings["preset"]]
        self.registers = register_map(Path(self.settings["rdl"]))
        self.random = self.rng("accesses")
        self.accesses = RandomAccesses(self.registers, self.random)
        model = RegisterModel(self.registers, self.params)
        self.hardware = HardwareSide(self, model)
        self.checker = RegisterChecker(model)
        self.monitor = RegisterMonitor(self, self.checker, self.hardware)


class MasterBench(RegisterBench):
    """The bus is driven by the AXI4-Lite master of cocotbext-axi."""

    def __init__(self, dut: Any):
        super().__init__(dut)
        self.master = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "axi_"), dut.clk, dut.rst)
        for side in (self.master.write_if, self.master.read_if):
            side.log.setLevel("WARNING")

    def pause(self) -> None:
        """Hold each channel back at random."""
        write, read = self.master.write_if, self.master.read_if
        for channel in (write.aw_channel, write.w_channel, write.b_channel, read.ar_channel, read.r_channel):
            channel.set_pause_generator(cycle([self.random.random() < 0.4 for _ in range(997)]))

    async def read(self, address: int) -> int:
        """Return the word there; OKAY is expected."""
        answer = await self.master.read(address, 4)
        self.same(f"RRESP of {address:#x}", OKAY, int(answer.resp))
        return int.from_bytes(answer.data, "little")

    async def write(self, address: int, data: int, expected: int = OKAY) -> None:
        """Write a word; the response is as expected."""
        answer = await self.master.write(address, data.to_bytes(4, "little"))
        self.same(f"BRESP of {data:#x} to {address:#x}", expected, int(answer.resp))

    def same(self, what: str, expected: int, found: int) -> None:
        """Raise CheckError unless both are equal."""
        if expected != found:
            raise CheckError(f"{what}: expected {expected:#x}, found {found:#x}")


def kept(register: Register) -> int:
    """Bits of a register that read as they were written."""
    return sum(f.mask for f in register.fields if f.kind is Kind.STORED)


def stored(bench: RegisterBench) -> list[Register]:
    """Registers with bits that read as they were written, and no lock."""
    return [register for register in bench.registers.values() if kept(register) and not register.locked]


@cocotb.test()
async def reset_values(dut: Any) -> None:
    """Every register reads its reset value; what hardware shows is 0 here."""
    async with MasterBench(dut) as bench:
        for register in bench.registers.values():
            bench.same(register.name, register.reset(bench.params), await bench.read(register.offset))
            await bench.write(register.offset, 0, OKAY if register.mask(writable=True) else SLVERR)


@cocotb.test()
async def walking_ones(dut: Any) -> None:
    """Each bit of each register alone: kept where it may be written, refused without any change where not."""
    async with MasterBench(dut) as bench:
        for register in bench.registers.values():
            writable, stays = register.mask(writable=True), kept(register)
            clears = sum(f.mask for f in register.fields if f.kind is Kind.EVENT)
            word = await bench.read(register.offset)
            for bit in range(32):
                good = bool(writable >> bit & 1)
                await bench.write(register.offset, 1 << bit, OKAY if good else SLVERR)
                if good:
                    word = (word & ~stays | (1 << bit & stays)) & ~(1 << bit & clears)
                if writable or bit % 8 == 0:
                    bench.same(f"{register.name} after bit {bit}", word, await bench.read(register.offset))
            if stays:
                await bench.write(register.offset, ONES & writable)
                await bench.write(register.offset, 0)


@cocotb.test()
async def aliasing(dut: Any) -> None:
    """Every register keeps a value of its own while all others are written; nothing answers for another address."""
    async with MasterBench(dut) as bench:
        registers = stored(bench)
        values = {r.name: (0x9E3779B1 * (i + 1) & ONES) & kept(r) for i, r in enumerate(registers)}
        for register in registers:
            await bench.write(register.offset, values[register.name])
        taken = {register.offset for register in bench.registers.values()}
        free = [address for address in range(0, PAGE, 4) if address not in taken]
        near = {offset ^ 1 << bit for offset in taken for bit in range(2, 12)} - taken
        for address in sorted(near) + bench.random.sample(free, 50):
            await bench.write(address, 0, SLVERR)
            answer = await bench.master.read(address, 4)
            bench.same(f"RRESP of {address:#x}", SLVERR, int(answer.resp))
            bench.same(f"RDATA of {address:#x}", 0, int.from_bytes(answer.data, "little"))
        for register in registers:
            found = await bench.read(register.offset) & kept(register)
            bench.same(register.name, values[register.name], found)


@cocotb.test()
async def misaligned(dut: Any) -> None:
    """An address within a word is refused, in both directions; bytes from the start of a word on are not."""
    async with MasterBench(dut) as bench:
        for register in stored(bench):
            stays, word = kept(register), await bench.read(register.offset)
            for count in range(1, 5):
                data = (bench.random.getrandbits(32) & stays).to_bytes(4, "little")[:count]
                answer = await bench.master.write(register.offset, data)
                bench.same(f"BRESP of {count} bytes", OKAY, int(answer.resp))
                lanes = (1 << 8 * count) - 1
                word = word & ~(stays & lanes) | int.from_bytes(data, "little")
                bench.same(f"{register.name}, {count} bytes", word, await bench.read(register.offset))
            for first in range(1, 4):
                answer = await bench.master.write(register.offset + first, bytes(4 - first))
                bench.same(f"BRESP of byte {first}", SLVERR, int(answer.resp))
                answer = await bench.master.read(register.offset + first, 4 - first)
                bench.same(f"RRESP of byte {first}", SLVERR, int(answer.resp))
            bench.same(register.name, word, await bench.read(register.offset))


@cocotb.test()
async def locks(dut: Any) -> None:
    """A register refuses every write while its lock is not 0, and takes them again afterwards."""
    async with MasterBench(dut) as bench:
        for register in bench.registers.values():
            if register.locked:
                name, _, field = register.locked.partition(".")
                lock = bench.registers[name].field(field)
                for held in (1, 0):
                    if lock.kind is Kind.STATUS:
                        bench.hardware.set(name.lower(), field, held)
                        await bench.cycles(2)
                    else:
                        await bench.write(bench.registers[name].offset, held << lock.low)
                    await bench.write(register.offset, register.mask(writable=True), SLVERR if held else OKAY)
        await bench.read(0)


@cocotb.test()
async def crowded(dut: Any) -> None:
    """Reads and writes at once, as many as the master keeps under way, all channels paused, hardware active."""
    async with MasterBench(dut) as bench:
        bench.pause()
        bench.hardware.active = True
        events = []
        for _ in range(300):
            write = bench.accesses.write()
            address, data = write.address & ~3, write.data.to_bytes(4, "little")
            first = bench.random.choice([0, 0, 0, 1, 2, 3])
            last = bench.random.randint(first + 1, 4)
            events.append(cocotb.start_soon(bench.master.write(address + first, data[first:last])))
            events.append(cocotb.start_soon(bench.master.read(bench.accesses.address() & ~3, 4)))
        await Combine(*events)


class ChannelBench(RegisterBench):
    """The bus is driven channel by channel, each at its own pace."""

    def __init__(self, dut: Any, **paces: Pace):
        super().__init__(dut)
        self.sources = {
            name: ChannelSource(self, f"axi__{name}", LITE_FIELDS[name], paces.get(name, always))
            for name in ("aw", "w", "ar")
        }
        self.sinks = {name: ChannelSink(self, f"axi__{name}", paces.get(name, always)) for name in ("b", "r")}

    def write(self, address: int, data: int, strobe: int = 15) -> None:
        """Queue a write."""
        self.sources["aw"].send(addr=address, prot=self.random.getrandbits(3))
        self.sources["w"].send(data=data, strb=strobe)

    def read(self, address: int) -> None:
        """Queue a read."""
        self.sources["ar"].send(addr=address, prot=self.random.getrandbits(3))

    def traffic(self, count: int) -> None:
        """Queue random reads and writes."""
        for _ in range(count):
            self.write(*self.accesses.write())
            self.read(self.accesses.address())

    async def done(self) -> None:
        """Wait until everything queued was taken."""
        await self.until(lambda: not any(source.pending for source in self.sources.values()))


PACES: dict[str, Pace] = {"always": always, "half": randomly(0.5), "bursts": bursts(12, 12)}


def paces() -> Iterator[str]:
    """Each channel in turn at another pace than the others, and all alike."""
    yield from PACES
    for channel in LITE_FIELDS:
        yield f"{channel} half"
        yield f"{channel} bursts"


@cocotb.test()
@cocotb.parametrize(pace=list(paces()))
async def random_traffic(dut: Any, pace: str) -> None:
    """Everything at random, for each channel that may stall; hardware active."""
    channel, _, name = pace.rpartition(" ")
    held = {channel: PACES[name]} if channel else dict.fromkeys(LITE_FIELDS, PACES[name])
    async with ChannelBench(dut, **held) as bench:
        bench.hardware.active = True
        bench.traffic(200)
        await bench.done()


@cocotb.test()
async def byte_strobes(dut: Any) -> None:
    """Every set of strobes on every register, with data that it takes and with data that it refuses."""
    async with ChannelBench(dut) as bench:
        for register in bench.registers.values():
            for strobe in range(16):
                for data in (bench.random.getrandbits(32) & register.mask(writable=True), bench.random.getrandbits(32)):
                    bench.write(register.offset, data, strobe)
                    await bench.done()
                    bench.read(register.offset)


@cocotb.test()
@cocotb.parametrize(first=["aw", "w"])
async def one_long_before_the_other(dut: Any, first: str) -> None:
    """Address long before data, and data long before address; the next of the first one waits meanwhile."""
    async with ChannelBench(dut) as bench:
        registers = stored(bench)
        for register in registers:
            transfers = {
                "aw": {"addr": register.offset, "prot": 0},
                "w": {"data": bench.random.getrandbits(32) & kept(register), "strb": 15},
            }
            second = "w" if first == "aw" else "aw"
            bench.sources[first].send(**transfers[first])
            bench.sources[first].send(**transfers[first])
            await bench.cycles(bench.random.randint(5, 15))
            if bench.sources[first].pending != 1:
                raise CheckError(f"{first}: {bench.sources[first].pending} transfers wait, expected the second one")
            bench.sources[second].send(**transfers[second])
            bench.sources[second].send(**transfers[second])
            await bench.done()
            bench.read(register.offset)


@cocotb.test()
@cocotb.parametrize(stalled=["b", "r"])
async def responses_not_taken(dut: Any, stalled: str) -> None:
    """Responses of one direction are not taken for long: it stops, nothing is lost, and the other one goes on."""
    async with ChannelBench(dut, **{stalled: never}) as bench:
        bench.hardware.active = True
        going = bench.checker.reads if stalled == "b" else bench.checker.writes
        bench.traffic(60)
        await bench.cycles(200)
        if going.compared != 60:
            raise CheckError(f"{going.compared} accesses of the other direction have ended, expected 60")
        bench.sinks[stalled].set_pace(always)
        await bench.done()


@cocotb.test()
async def latency_and_rate(dut: Any) -> None:
    """Two cycles from the last request to the response; a write and a read every two cycles."""
    async with ChannelBench(dut) as bench:
        offset = stored(bench)[0].offset
        bench.write(offset, 0)
        bench.read(offset)
        await bench.until(lambda: bench.checker.writes.compared == 1 and bench.checker.reads.compared == 1)
        offered, accepted = bench.monitor.offered, bench.monitor.accepted
        found = offered["b"] - max(accepted["aw"], accepted["w"]), offered["r"] - accepted["ar"]
        if found != (2, 2):
            raise CheckError(f"responses came {found} cycles after their requests, expected (2, 2)")
        begin = bench.cycle
        for _ in range(50):
            bench.write(offset, 0)
            bench.read(offset)
        await bench.until(lambda: bench.checker.writes.compared == 51 and bench.checker.reads.compared == 51)
        if bench.cycle - begin > 2 * 50 + 4:
            raise CheckError(f"50 writes and 50 reads took {bench.cycle - begin} cycles, expected 2 cycles each")


@cocotb.test()
async def reset_in_traffic(dut: Any) -> None:
    """Reset in mid-access leaves nothing behind; registers start with random values."""
    async with ChannelBench(dut, b=randomly(0.5), r=randomly(0.5)) as bench:
        bench.hardware.active = True
        for _ in range(20):
            bench.traffic(10)
            await bench.cycles(bench.random.randint(1, 25))
            await bench.reset()
        bench.traffic(10)
        await bench.done()
