"""The C header drives a device: a small program in C, on the buses that the driver's own transports use."""

import ctypes
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from driverbench import BUSES, PARAMS

import sw.driver
from sw.driver.transport import Bus

SOURCE = Path(__file__).with_name("c") / "probe.c"
INCLUDE = Path(sw.driver.__file__).parent / "include"
FLAGS = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-pedantic", "-shared", "-fPIC", f"-I{INCLUDE}"]

READ = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint32)
WRITE = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint32)
EPOCH = 0x123456789ABCDEF0


class CBus(ctypes.Structure):
    """``struct bus`` of the program."""

    _fields_ = [("read", READ), ("write", WRITE), ("memory", ctypes.c_void_p), ("address", ctypes.c_uint64)]


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., ctypes.CDLL]:
    """Compiles the program, with something changed or as it is."""

    def make(good: str = "", bad: str = "") -> ctypes.CDLL:
        folder, text = tmp_path_factory.mktemp("c"), SOURCE.read_text()
        assert not good or text.count(good) == 1
        (folder / "probe.c").write_text(text.replace(good, bad) if good else text)
        library = folder / "probe.so"
        subprocess.run(["cc", *FLAGS, "-o", str(library), str(folder / "probe.c")], check=True)
        return ctypes.CDLL(str(library))

    return make


def probe(library: ctypes.CDLL, bus: Bus) -> str | None:
    """What the program says that went wrong."""

    def read(unit: int, offset: int) -> int:
        bus.wait()
        return bus.read(unit, offset)

    memory = np.zeros(12288, np.uint8)
    address = bus.map(0, memory.data, writable=True)
    given = CBus(READ(read), WRITE(bus.write), memory.ctypes.data, address)
    library.probe.restype = ctypes.c_char_p
    failed = library.probe(ctypes.byref(given), ctypes.c_uint64(EPOCH))
    bus.unmap(0, address)
    return None if failed is None else failed.decode()


@pytest.mark.parametrize("name", BUSES)
def test_a_program_in_c_stores_a_block_and_gets_it_back(build: Callable[..., ctypes.CDLL], name: str) -> None:
    library, bus = build(), BUSES[name](PARAMS, 0)
    try:
        assert probe(library, bus) is None
        assert probe(library, bus) is None, "and again, after a restart"
    finally:
        bus.close()


MUTANTS = {
    "another checksum": ("0x82f63b78u", "0x82f63b79u", "SEAL failed"),
    "another binding": ("KVNODE_BOUND_PARTITION", "KVNODE_BOUND_NONE", "no session"),
    "one phase only": ("head / ENTRIES % 2 ? 0 :", "head / ENTRIES % 2 ? 1 :", "SEAL failed"),
    "no address of results": ("bus->address + RESULTS}", "0}", "the first LOOKUP is no MISS"),
    "another block": ("{KEY[0], KEY[1]}", "{KEY[1], KEY[0]}", "the second LOOKUP is no HIT"),
    "read elsewhere": ("bus->address + BACK", "bus->address + DATA", "other bytes came back"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_program_that_is_wrong_says_where(build: Callable[..., ctypes.CDLL], name: str) -> None:
    good, bad, failed = MUTANTS[name]
    assert probe(build(good, bad), BUSES["loopback"](PARAMS, 0)) == failed
