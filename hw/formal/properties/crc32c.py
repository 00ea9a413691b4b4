"""The CRC32C unit."""

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.hdl import Assert, Assume, Cover
from amaranth.utils import exact_log2

from hw.formal.conservation import Conservation
from hw.formal.harness import Harness
from hw.formal.property import Induction, Pdr, Property
from hw.formal.stream import watch
from hw.params import TINY, crc32c
from hw.rtl.transform import Crc32c


class CrcHarness(Harness):
    """A CRC32C unit whose initiator keeps the rules: those of a stream, and full beats but for the last.

    Parameters
    ----------
    beat_bytes
        Width of the unit.
    unit
        The class under proof.
    """

    def __init__(self, *, beat_bytes: int, unit: type[Crc32c] = Crc32c):
        self.beat_bytes = beat_bytes
        self.latency = exact_log2(beat_bytes) + 2
        super().__init__(unit(beat_bytes=beat_bytes))

    def claim(self, m: Module) -> None:
        watch(m, "beats", self.beats, assume=True)
        beat = self.beats.payload
        m.d.comb += Assume((beat.count == self.beat_bytes) | (beat.last & (beat.count > 0)))
        m.d.comb += Assume(beat.count <= self.beat_bytes)


class CrcStream(CrcHarness):
    """The CRCs are a stream."""

    def claim(self, m: Module) -> None:
        super().claim(m)
        watch(m, "crcs", self.crcs)


class CrcConservation(CrcHarness):
    """One CRC a segment, in the documented number of cycles while none waits."""

    def claim(self, m: Module) -> None:
        super().claim(m)
        m.submodules.conservation = conservation = Conservation(capacity=self.latency, wait=self.latency - 1)
        m.d.comb += [
            conservation.put.eq(self.beats.valid & self.beats.ready & self.beats.payload.last),
            conservation.offered.eq(self.crcs.valid),
            conservation.taken.eq(self.crcs.ready),
        ]


class CrcValue(CrcHarness):
    """Every CRC is that of the plain definition, a bit at a time, for segments of any number of beats.

    The definition runs beside the unit and its state goes through a copy of the pipeline. One claim for each register
    of the unit carries the induction; the last one is about the output.
    """

    def claim(self, m: Module) -> None:
        super().claim(m)
        unit, beat, beat_bytes = self.registers, self.beats.payload, self.beat_bytes
        advance = self.beats.ready

        # The plain state after all beats taken, and the last of these beats.
        plain = Signal(crc32c.WIDTH, init=crc32c.ONES)
        after = Signal(crc32c.WIDTH)
        m.d.comb += after.eq(_definition(m, plain, beat.data, beat.count, beat_bytes))
        taken = Signal()
        before, plain_after = Signal(crc32c.WIDTH), Signal(crc32c.WIDTH)
        data, count, last = Signal.like(beat.data), Signal.like(beat.count), Signal()
        with m.If(advance):
            m.d.sync += taken.eq(self.beats.valid)
        with m.If(advance & self.beats.valid):
            m.d.sync += [plain.eq(after | beat.last.replicate(crc32c.WIDTH)), before.eq(plain), plain_after.eq(after)]
            m.d.sync += [data.eq(beat.data), count.eq(beat.count), last.eq(beat.last)]
        padded = Cat(Mux(i < count, data.word_select(i, 8), 0) for i in range(beat_bytes))
        m.d.comb += Assert(unit["fold_valid"] == taken)
        with m.If(taken):
            m.d.comb += [
                Assert((count == beat_bytes) | (last & (count > 0) & (count < beat_bytes))),
                Assert(plain_after == _definition(m, before, data, count, beat_bytes)),
                Assert(plain == (plain_after | last.replicate(crc32c.WIDTH))),
                Assert(unit["state"] == before),
                Assert(unit["fold_last"] == last),
                Assert(unit["fold_padding"] == (beat_bytes - count) % beat_bytes),
                Assert(unit["fold"] == _definition(m, Const(0, crc32c.WIDTH), padded, Const(beat_bytes), beat_bytes)),
            ]
        with m.Else():
            m.d.comb += Assert(unit["state"] == plain)

        # Behind register i of the unwind pipeline, 2**i zero bytes a unit of padding are still to be taken back.
        source = taken & last, plain_after
        for i in range(self.latency - 1):
            valid, result = Signal(name=f"valid_{i}"), Signal(crc32c.WIDTH, name=f"result_{i}")
            with m.If(advance):
                m.d.sync += [valid.eq(source[0]), result.eq(source[1])]
            m.d.comb += Assert(unit[f"valid_{i}"] == valid)
            zeros = (unit[f"padding_{i}"] << i) if i < self.latency - 2 else Const(0)
            with m.If(valid):
                m.d.comb += Assert(unit[f"crc_{i}"] == _definition(m, result, Const(0, 8 * beat_bytes), zeros, beat_bytes))
            source = valid, result

        m.d.comb += Assert(self.crcs.valid == valid)
        with m.If(valid):
            m.d.comb += Assert(self.crcs.payload == ~result, "not the CRC of the segment")
        m.d.comb += Cover(valid & (result == 0x1CF96D7C))


def _definition(m: Module, state: Value, data: Value, count: Value, most: int) -> Value:
    """Return the state of CRC32C after the first `count` (at most `most`) bytes of `data`, a bit at a time."""
    for byte in range(most):
        longer = state
        for bit in range(8 * byte, 8 * byte + 8):
            step = Signal(crc32c.WIDTH)
            m.d.comb += step.eq((longer >> 1) ^ Mux(longer[0] ^ data[bit], crc32c.POLYNOMIAL, 0))
            longer = step
        bytewise = Signal(crc32c.WIDTH)
        m.d.comb += bytewise.eq(Mux(byte < count, longer, state))
        state = bytewise
    return state


PROPERTIES = (
    Property(
        name="crc32c.stream",
        shows="stream rules of the CRC port",
        design=lambda: CrcStream(beat_bytes=TINY.memory.beat_bytes),
        method=Induction(3),
        cover=16,
    ),
    Property(
        name="crc32c.conservation",
        shows="invariant 10: one CRC a segment, none lost or doubled under any backpressure, in bounded time",
        design=lambda: CrcConservation(beat_bytes=TINY.memory.beat_bytes),
        method=Pdr(),
        cover=32,
    ),
    Property(
        name="crc32c.value",
        shows="invariant 2: every CRC is that of the plain definition, whatever the length and the timing",
        design=lambda: CrcValue(beat_bytes=2),
        method=Induction(2),
        cover=8,
    ),
)
