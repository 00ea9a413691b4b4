"""cocotb tests of `hw.rtl.node.data` with a memory that others wrote: cocotbext-axi's AxiRam, its checks on.

AxiRam has no user bits. `Sidecar` keeps them beside it: a CRC by address, from WUSER to RUSER.
"""

from collections import deque
from typing import Any

import cocotb
import google_crc32c
from cocotbext.axi import AxiBus, AxiRam, AxiReadBus, AxiWriteBus
from cocotbext.axi.axi_channels import AxiARBus, AxiRBus

from hw.tb.bench import Bench
from hw.tb.data.base import Block, DataBench
from hw.tb.pace import Pace, always, randomly
from hw.tb.scoreboard import CheckError


class RBusWithoutUser(AxiRBus):
    """AxiRam must not drive RUSER."""

    _optional_signals = ["rresp"]


class Sidecar:
    """The CRCs of one channel. AxiRam answers reads in the order of their addresses, so RUSER belongs to the oldest."""

    def __init__(self, bench: Bench, channel: str):
        self.bench = bench
        self.crcs: dict[int, int] = {}
        self._dut, self._channel = bench.dut, channel
        self._writes: deque[int] = deque()
        self._users: deque[int] = deque()
        self._reads: deque[int] = deque()
        bench.add(self)

    def drive(self) -> None:
        """Show the CRC of the read that is being answered."""
        self._signal("ruser").value = self.crcs.get(self._reads[0], 0) if self._reads else 0

    def sample(self) -> None:
        """Match the last beats of writes with their addresses, and follow the reads."""
        if self.bench.in_reset:
            return
        if self._fires("aw"):
            self._writes.append(int(self._signal("awaddr").value))
        if self._fires("w") and self._signal("wlast").value:
            self._users.append(int(self._signal("wuser").value))
        while self._writes and self._users:
            self.crcs[self._writes.popleft()] = self._users.popleft()
        if self._fires("ar"):
            self._reads.append(int(self._signal("araddr").value))
        if self._fires("r") and self._signal("rlast").value:
            self._reads.popleft()

    def reset(self) -> None:
        """Forget what is under way."""
        self._writes.clear()
        self._users.clear()
        self._reads.clear()

    def _fires(self, channel: str) -> bool:
        return bool(self._signal(f"{channel}valid").value) and bool(self._signal(f"{channel}ready").value)

    def _signal(self, name: str) -> Any:
        return getattr(self._dut, f"{self._channel}__{name}")


class AnswerWatch:
    """Tells the bench which writes AxiRam has answered: in the order of their addresses, on each channel."""

    def __init__(self, bench: DataBench, number: int):
        self._bench, self._number = bench, number
        self._addresses: deque[int] = deque()
        bench.add(self)

    def drive(self) -> None:
        """Nothing: it only watches."""

    def sample(self) -> None:
        """See addresses and answers."""
        dut, name = self._bench.dut, f"memory__{self._number}"
        if self._bench.in_reset:
            return
        if getattr(dut, f"{name}__awvalid").value and getattr(dut, f"{name}__awready").value:
            self._addresses.append(int(getattr(dut, f"{name}__awaddr").value))
        if getattr(dut, f"{name}__bvalid").value and getattr(dut, f"{name}__bready").value:
            self._bench.answered(self._number, self._addresses.popleft())

    def reset(self) -> None:
        """Forget what is under way."""
        self._addresses.clear()


class RamBench(DataBench):
    """The data path with an AxiRam on every channel."""

    def __init__(self, dut: Any, **paces: Pace):
        super().__init__(dut, **paces)
        self.rams, self.sidecars = [], []
        for i in range(self.stripes.channels):
            name = f"memory__{i}"
            read = AxiReadBus.from_channels(
                AxiARBus.from_prefix(dut, f"{name}_"), RBusWithoutUser.from_prefix(dut, f"{name}_")
            )
            bus = AxiBus(write=AxiWriteBus.from_prefix(dut, f"{name}_"), read=read)
            self.rams.append(AxiRam(bus, dut.clk, dut.rst, size=1 << self.stripes.address_bits))
            self.sidecars.append(Sidecar(self, name))
            AnswerWatch(self, i)

    def check_stored(self, block: Block) -> None:
        """Every segment is where striping has it, with its CRC."""
        for segment, data in enumerate(self.pieces(block)):
            channel, address = self.stripes.locate(block.frame, segment)
            if self.rams[channel].read(address, len(data)) != data:
                raise CheckError(f"segment {segment} of frame {block.frame} is not what was written")
            if self.sidecars[channel].crcs[address] != google_crc32c.value(data):
                raise CheckError(f"segment {segment} of frame {block.frame} has another CRC")


@cocotb.test()
@cocotb.parametrize(pace=["always", "half"])
async def write_then_read(dut: Any, pace: str) -> None:
    """All frames at once, blocks of any length, then READs of all of them."""
    willing = {"always": always, "half": randomly(0.5)}[pace]
    async with RamBench(dut, idle=willing, backpressure=willing, landed_pace=willing, done_pace=willing) as bench:
        blocks = [Block(frame, bench.random.randbytes(bench.length(frame))) for frame in range(bench.params.frames)]
        bench.write(*blocks)
        await bench.settled()
        for block in blocks:
            bench.check_stored(block)
        for i, block in enumerate(blocks):
            bench.read(block, 0, len(bench.pieces(block)), i % bench.params.tables.ports)
        await bench.settled()
