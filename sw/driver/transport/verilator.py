"""The RTL as a device, compiled into this process."""

from bisect import bisect, insort
from pathlib import Path
from random import Random

from hw.params.errors import KvnodeError
from hw.params.params import Params
from hw.rtl.emit import Emission
from hw.tb.harness import Memory
from hw.tb.harness.system import ADDRESSES, PAGE, SystemHarness
from sw.driver.errors import DeviceError, RegisterError
from sw.driver.transport.bus import Bus

SLEEP = 1_000
"""Cycles after which a wait ends without an interrupt."""

FIRST = 1 << 32
"""The first address that is given."""

REGISTER_BYTES = 4096
"""Of each unit."""


class VerilatorBus(Bus):
    """Runs the compiled system of some parameters: in accesses to registers, and in waits.

    The library is built at first use and kept in `build/sim`, by the content of the design. `harness` has what is not a
    driver's: the order log, statistics, errors to inject.

    - `seed`: of all that the models and the registers before reset have at random.
    - `memory`, `host`, `hbm`: how the memory of the slice, and that which requesters reach, behaves.
    - `scatter`: a seed to spread addresses over all 64 bits with; without it they ascend. No address is given twice
      as long as they ascend, nor to two ports at once, and no region is next to another.
    - `waves`: a VCD file to write. `emission`: the system, if it is not that of the RTL as it is.

    DeviceError if there is no library and none can be built; HarnessError, from whatever runs the device, if it breaks
    a rule of an interface.
    """

    def __init__(
        self,
        params: Params,
        *,
        seed: int = 0,
        memory: Memory | None = None,
        host: Memory | None = None,
        hbm: Memory | None = None,
        scatter: int | None = None,
        waves: Path | None = None,
        emission: Emission | None = None,
    ) -> None:
        try:
            self.harness = SystemHarness(
                params, seed=seed, memory=memory, host=host, hbm=hbm, waves=waves, emission=emission
            )
        except KvnodeError as error:
            raise DeviceError(f"no compiled system: {str(error).splitlines()[-1]}") from error
        self._places = _Places(None if scatter is None else Random(scatter))

    def read(self, unit: int, offset: int) -> int:
        value, response = self.harness.read_register(_offset(offset), unit=unit)
        if response:
            raise RegisterError(f"register {offset:#x} of unit {unit}: there is none")
        return value

    def write(self, unit: int, offset: int, value: int) -> None:
        if self.harness.write_register(_offset(offset), value, unit=unit):
            raise RegisterError(f"register {offset:#x} of unit {unit}: the device refuses {value:#x}")

    def map(self, port: int, view: memoryview, *, writable: bool) -> int:
        address = self._places.find(view.nbytes)
        self.harness.map(port, address, view, writable=writable)
        self._places.take(address, view.nbytes)
        return address

    def unmap(self, port: int, address: int) -> None:
        self.harness.unmap(port, address)
        self._places.release(address)

    @property
    def mapped(self) -> int:
        """How many mappings there are, of all ports."""
        return self.harness.mapped

    def wait(self) -> bool:
        self.harness.run_until_interrupt(SLEEP)
        return bool(self.harness.irq)

    @property
    def cycle(self) -> int:
        return self.harness.cycle

    def close(self) -> None:
        self.harness.close()


def _offset(offset: int) -> int:
    """An offset that the wires have bits for."""
    if not 0 <= offset < REGISTER_BYTES:
        raise RegisterError(f"register {offset:#x}: expected 0 to {REGISTER_BYTES - 1:#x}")
    return offset


class _Places:
    """Addresses that are given, each with a page before and behind it that is not."""

    def __init__(self, random: Random | None) -> None:
        self._random = random
        self._next = FIRST
        self._taken: list[tuple[int, int]] = []

    def find(self, length: int) -> int:
        """Where so many bytes may go."""
        if self._random is None:
            return self._next
        last = (ADDRESSES - length) // PAGE - 2
        while True:
            address = PAGE * self._random.randint(1, last)
            i = bisect(self._taken, (address, address))
            if (i == 0 or self._taken[i - 1][1] + PAGE <= address) and (
                i == len(self._taken) or address + length + PAGE <= self._taken[i][0]
            ):
                return address

    def take(self, address: int, length: int) -> None:
        insort(self._taken, (address, address + length))
        self._next = address + PAGE * (-(-length // PAGE) + 1)

    def release(self, address: int) -> None:
        del self._taken[bisect(self._taken, (address, address))]
