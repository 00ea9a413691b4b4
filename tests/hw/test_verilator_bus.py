"""The driver's bus on the compiled system: what it maps, how it waits, and what it says when it cannot."""

import itertools
import shutil
from functools import cache

import pytest

from hw.params import InputError
from hw.params.params import TINY
from hw.rdl import register_map
from hw.rtl.emit import Emission, emit
from hw.rtl.system import System
from hw.tb.harness import build
from hw.tb.harness.puppet import Puppet
from hw.tb.harness.system import PAGE
from sw.driver.errors import DeviceError, RegisterError
from sw.driver.transport.verilator import SLEEP, VerilatorBus
from tests.driver.driverbench import PARAMS

SLICE = 0
"""The unit of its registers."""


@cache
def puppet() -> Emission:
    """A device that nothing answers."""
    return emit(Puppet(System(TINY), [[{}]]), "system")


@pytest.mark.parametrize("scatter", [None, 0, 1])
def test_no_region_is_next_to_another(scatter: int | None) -> None:
    bus = VerilatorBus(TINY, scatter=scatter, emission=puppet())
    lengths = [1, PAGE, PAGE + 1, 3 * PAGE, 100_000] * 40
    regions = []
    for i, length in enumerate(lengths):
        address = bus.map(i % 2, memoryview(bytearray(length)), writable=True)
        regions.append((address, address + length))
        if i % 3 == 2:
            bus.unmap((i - 1) % 2, regions.pop(-2)[0])
    assert all(address % PAGE == 0 and address > 0 and end <= 1 << 64 for address, end in regions)
    assert all(end + PAGE <= address for (_, end), (address, _) in itertools.pairwise(sorted(regions)))
    again = VerilatorBus(TINY, scatter=scatter, emission=puppet())
    assert again.map(0, memoryview(bytearray(1)), writable=True) == regions[0][0]


def test_scattered_addresses_use_all_bits() -> None:
    bus = VerilatorBus(TINY, scatter=3, emission=puppet())
    addresses = [bus.map(0, memoryview(bytearray(1)), writable=True) for _ in range(64)]
    assert all(any(address >> bit & 1 for address in addresses) for bit in range(12, 64))
    assert addresses != sorted(addresses)


def test_what_could_not_be_mapped_takes_no_place() -> None:
    bus = VerilatorBus(TINY, emission=puppet())
    with pytest.raises(InputError, match="port 2"):
        bus.map(2, memoryview(bytearray(1)), writable=True)
    with pytest.raises(InputError, match="writable"):
        bus.map(0, memoryview(b"1"), writable=True)
    first = bus.map(0, memoryview(b"1"), writable=False)
    assert first == VerilatorBus(TINY, emission=puppet()).map(0, memoryview(b"1"), writable=False)


def test_a_buffer_may_be_resized_when_it_is_no_longer_mapped() -> None:
    bus = VerilatorBus(TINY, emission=puppet())
    buffers = [bytearray(10), bytearray(10)]
    addresses = [bus.map(0, memoryview(buffer), writable=True) for buffer in buffers]
    with pytest.raises(BufferError):
        buffers[0].append(1)
    bus.unmap(0, addresses[0])
    buffers[0].append(1)
    bus.close()
    buffers[1].append(1)


def test_a_wait_ends_without_an_interrupt_too() -> None:
    bus = VerilatorBus(TINY, emission=puppet())
    assert (bus.wait(), bus.cycle) == (False, SLEEP)


def test_a_register_is_read_and_written_or_refused() -> None:
    bus = VerilatorBus(PARAMS)
    registers = register_map()
    assert bus.read(SLICE, registers["ID"].offset) == registers["ID"].reset(PARAMS)
    bus.write(SLICE, registers["SCRATCH"].offset, 77)
    assert bus.read(SLICE, registers["SCRATCH"].offset) == 77
    with pytest.raises(RegisterError, match="refuses 0x1"):
        bus.write(SLICE, registers["ID"].offset, 1)
    for offset in (0xFFC, -4, 4096, 1 << 32):
        with pytest.raises(RegisterError, match=f"{offset:#x}"):
            bus.read(SLICE, offset)
    with pytest.raises(InputError, match="unit 3"):
        bus.read(3, 0)
    ready = registers["INTERRUPT_STATUS"].field("ready").mask
    bus.write(SLICE, registers["INTERRUPT_ENABLE"].offset, ready)
    before = bus.cycle
    assert bus.wait() and bus.wait() and bus.cycle < before + SLEEP


@pytest.mark.parametrize("missing", ["make", "g++"])
def test_what_is_missing_is_said_in_a_line(missing: str, monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setattr(build, "BUILD", tmp_path)
    monkeypatch.setattr(
        build.shutil, "which", lambda name, which=shutil.which: None if name == missing else which(name)
    )
    with pytest.raises(
        DeviceError, match=rf"^no compiled system: system cannot be built: no {missing.replace('+', '.')} on PATH$"
    ):
        VerilatorBus(TINY, emission=puppet())


def test_a_design_that_does_not_compile_is_said_in_a_line(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setattr(build, "BUILD", tmp_path)
    good = puppet()
    bad = Emission(name=good.name, verilog="module system; nonsense", ports=good.ports)
    with pytest.raises(DeviceError, match=r"^no compiled system: system did not build: .*build\.log$"):
        VerilatorBus(TINY, emission=bad)
