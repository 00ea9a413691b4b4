"""What tests of the data path of a requester share: a unit with its PageWalker, and places where data is."""

from collections.abc import Callable
from typing import Any

from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from hw.params.params import Params
from hw.params.sections import MemoryParams, RequesterParams
from hw.rtl.gpu.host_reader import HostReader
from hw.rtl.gpu.layouts import memory_read
from hw.rtl.gpu.page_walker import PageWalker
from tests.hw.agents import Memory

SEGMENT = 512
CONTEXTS = 4
AHEAD = 3
HBM, HOST = 0xA_0000_0000_0000, 0xFEDC_BA98_0000_0000
LISTS = [HOST + i * 0x1000 for i in range(CONTEXTS)]
"""Where lists of pages are: the same memory again and again."""


def params(beat_bytes: int) -> Params:
    return Params(
        memory=MemoryParams(beat_bytes=beat_bytes, segment_bytes=SEGMENT),
        requester=RequesterParams(commands=CONTEXTS, write_segments=AHEAD),
    )


class WithWalker(wiring.Component):
    """A `unit` with its PageWalker, and what reads host memory for that; without a unit, the test asks."""

    def __init__(self, of: Params, unit: Callable[[Params], Any] | None = None):
        self._params = of
        self.unit = unit and unit(of)
        self.walker = PageWalker(of)
        super().__init__({"host": Out(memory_read(of, id_bits=1))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.walker = walker = self.walker
        m.submodules.reader = reader = HostReader(self._params, clients=1)
        wiring.connect(m, walker.bursts, reader.bursts[0])
        wiring.connect(m, reader.beats[0], walker.beats)
        wiring.connect(m, reader.axi, wiring.flipped(self.host))
        if self.unit:
            m.submodules.unit = self.unit
            wiring.connect(m, self.unit.walks, walker.walks)
            wiring.connect(m, walker.found, self.unit.found)
        return m


class Data:
    """Where the data of a command is: `segments` of them, at one address or on pages in a list in `host`.

    - `place`: as hardware has it. `addresses`: of each segment; None if its page is in error.
    """

    def __init__(self, host: Memory, segments: int, *, region: int, at: int, faults: float):
        random, base = host.random, HBM + (region << 32)
        self.scattered = random.random() < 0.7
        if not self.scattered:
            address = base + SEGMENT * random.randrange(1 << 12)
            self.place = {"address": address, "scattered": 0, "page_shift": random.getrandbits(8)}
            self.addresses: list[int | None] = [address + i * SEGMENT for i in range(segments)]
            return
        shift = random.choice([9, 9, 10, 12])
        pages = [base + (number << shift) for number in random.sample(range(1 << 16), 16)]
        pages = [page | (8 if random.random() < faults else 0) for page in pages]
        words = b"".join(page.to_bytes(8, "little") for page in pages)
        host.refused -= {at + i for i in range(0, len(words), host.beat_bytes)}
        if random.random() < faults:
            host.refused.add(at + host.beat_bytes * random.randrange(min(3, len(words) // host.beat_bytes)))
        host.load(at, words)
        self.place = {"address": at, "scattered": 1, "page_shift": shift}
        self.addresses = []
        for i in range(segments):
            entry, within = divmod(i * SEGMENT, 1 << shift)
            beat = at + 8 * entry - 8 * entry % host.beat_bytes
            wrong = beat in host.refused or pages[entry] % SEGMENT
            self.addresses.append(None if wrong else pages[entry] + within)
