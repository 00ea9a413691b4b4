"""The CRC32C unit."""

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.hdl import Assert, Assume, Cover
from amaranth.lib import wiring
from amaranth.lib.wiring import In
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
    """

    def __init__(self, *, beat_bytes: int):
        self.beat_bytes = beat_bytes
        self.latency = exact_log2(beat_bytes) + 2
        super().__init__(Crc32c(beat_bytes=beat_bytes))

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
    """Every CRC is that of its segment, whatever the segment's length and the timing, given the algebra of CRC32C.

    The state of the segment is kept beside the unit with the matrices of `hw.params.crc32c`, and goes through a copy of
    the pipeline. A claim for every register of the unit carries the induction; the last one is about the output. That
    the matrices are those of the definition is shown by `CrcDefinition` and, basis vector by basis vector, by a test.
    """

    def claim(self, m: Module) -> None:
        super().claim(m)
        unit, beat, beat_bytes = self.registers, self.beats.payload, self.beat_bytes
        advance = self.beats.ready

        # The last beat taken, padded, and the plain state before it.
        taken, last = Signal(), Signal()
        padded, count = Signal.like(beat.data), Signal.like(beat.count)
        before = Signal(crc32c.WIDTH, init=crc32c.ONES)
        added, after = Signal(crc32c.WIDTH), Signal(crc32c.WIDTH)
        m.d.comb += added.eq(self.after(m, Const(0, crc32c.WIDTH), padded))
        m.d.comb += after.eq(self.after(m, before, Const(0, 8 * beat_bytes)) ^ added)
        with m.If(advance):
            m.d.sync += [taken.eq(self.beats.valid), last.eq(beat.last), count.eq(beat.count)]
            m.d.sync += padded.eq(Cat(Mux(i < beat.count, beat.data.word_select(i, 8), 0) for i in range(beat_bytes)))
            with m.If(taken):
                m.d.sync += before.eq(after | last.replicate(crc32c.WIDTH))
        padding = Signal(range(beat_bytes))
        m.d.comb += padding.eq(beat_bytes - count)
        m.d.comb += [Assert(unit["fold_valid"] == taken), Assert(unit["state"] == before)]
        with m.If(taken):
            m.d.comb += [
                Assert((count == beat_bytes) | (last & (count > 0) & (count < beat_bytes))),
                Assert(unit["fold_last"] == last),
                Assert(unit["fold_padding"] == padding),
                Assert(unit["fold"] == added),
            ]

        # Behind register i of the unwind pipeline, 2**i zero bytes are taken back if the padding has them.
        source = taken & last, padding, after
        for i in range(self.latency - 1):
            valid = Signal(name=f"expect_{i}")
            padding = Signal(range(beat_bytes), name=f"padding_{i}")
            crc = Signal(crc32c.WIDTH, name=f"crc_{i}")
            with m.If(advance):
                m.d.sync += [valid.eq(source[0]), padding.eq(source[1]), crc.eq(source[2])]
            m.d.comb += Assert(unit[f"valid_{i}"] == valid)
            with m.If(valid):
                m.d.comb += [Assert(unit[f"padding_{i}"] == padding >> i), Assert(unit[f"crc_{i}"] == crc)]
            source = valid, padding, Mux(padding.bit_select(i, 1), _product(crc32c.zeros(-1 << i), crc), crc)

        m.d.comb += Assert(self.crcs.valid == valid)
        with m.If(valid):
            m.d.comb += Assert(self.crcs.payload == ~crc, "not the CRC of the segment")
        m.d.comb += Cover(valid & (padding == beat_bytes - 1))

    def after(self, m: Module, state: Value, beat: Value) -> Value:
        """Return the state after all bytes of `beat`."""
        beat_bytes = self.beat_bytes
        return _product(crc32c.zeros(beat_bytes), state) ^ _product(crc32c.data(beat_bytes), beat)


class CrcSerial(CrcValue):
    """The same with the definition of CRC32C, a bit at a time, instead of the algebra."""

    def after(self, m: Module, state: Value, beat: Value) -> Value:
        for bit in beat:
            stepped = Signal(crc32c.WIDTH)
            m.d.comb += stepped.eq(_step(state, bit))
            state = stepped
        return state


class CrcDefinition(wiring.Component):
    """The definition of CRC32C, over strings of any length, a bit a cycle.

    From any state, it goes where the state alone and the string alone lead, added; and two states never become one.

    Interface
    ---------
    bit : In
        The next bit of the string.
    begin : In
        Begin anew, from the states `left` and `right`.
    left, right : In
        Any two states.
    """

    def __init__(self) -> None:
        state = In(crc32c.WIDTH)
        super().__init__({"bit": In(1), "begin": In(1), "left": state, "right": state})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        both, state, string = (Signal(crc32c.WIDTH, name=name) for name in ("both", "state", "string"))
        m.d.sync += [
            both.eq(_step(both, self.bit)),
            state.eq(_step(state, Const(0))),
            string.eq(_step(string, self.bit)),
        ]
        with m.If(self.begin):
            m.d.sync += [both.eq(self.left), state.eq(self.left), string.eq(0)]
        m.d.comb += Assert(both == state ^ string, "the definition is not linear")
        with m.If(self.left != self.right):
            m.d.comb += Assert(_step(self.left, self.bit) != _step(self.right, self.bit), "a step cannot be taken back")
        m.d.comb += Cover((state != 0) & (string != 0))
        return m


def _step(state: Value, bit: Value) -> Value:
    """Return the state after one more bit: the definition."""
    return (state >> 1) ^ Mux(state[0] ^ bit, crc32c.POLYNOMIAL, 0)


def _product(matrix: crc32c.Matrix, vector: Value) -> Value:
    """Return matrix times vector."""
    return Cat((vector & row).xor() for row in crc32c.rows(matrix))


PROPERTIES = (
    Property(
        name="crc32c.stream",
        shows="stream rules of the CRC port",
        design=lambda: CrcStream(beat_bytes=TINY.memory.beat_bytes),
        method=Induction(1),
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
        shows="invariant 2: every CRC is that of its segment, for any length and any timing, by the algebra of CRC32C",
        design=lambda: CrcValue(beat_bytes=4),  # two unwind stages; wider parities are beyond the solver
        method=Induction(1),
        cover=12,
    ),
    Property(
        name="crc32c.serial",
        shows="invariant 2: every CRC is that of its segment by the definition, for beats of one byte",
        design=lambda: CrcSerial(beat_bytes=1),
        method=Induction(1),
        cover=8,
    ),
    Property(
        name="crc32c.definition",
        shows="invariant 2: the algebra is the definition's: linear in state and string, and every step can be undone",
        design=CrcDefinition,
        method=Induction(1),
        cover=4,
    ),
)
