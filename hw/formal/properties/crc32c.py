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
    """Every CRC, followed by the zeros that pad its last beat, leads to the plain state of the padded segment.

    The plain state is kept beside the unit, a bit at a time: old state and new beat each alone, then added, so that no
    parity has inputs of both. `CrcDefinition` shows that this is the definition, and that only one CRC can lead there.
    A claim for every register of the unit carries the induction; the last one is about the output.
    """

    def claim(self, m: Module) -> None:
        super().claim(m)
        unit, beat, beat_bytes = self.registers, self.beats.payload, self.beat_bytes
        advance = self.beats.ready

        # The last beat taken, padded, and the plain state before it.
        taken, last = Signal(), Signal()
        padded, count = Signal.like(beat.data), Signal.like(beat.count)
        before = Signal(crc32c.WIDTH, init=crc32c.ONES)
        added = _after(m, Const(0, crc32c.WIDTH), padded)
        after = Signal(crc32c.WIDTH)
        m.d.comb += after.eq(_after(m, before, Const(0, 8 * beat_bytes)) ^ added)
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

        # At register i of the unwind pipeline, `padding % 2**i` zero bytes have been taken back.
        source = taken & last, padding, after
        for i in range(self.latency - 1):
            valid = Signal(name=f"expect_{i}")
            padding = Signal(range(beat_bytes), name=f"zeros_{i}")
            goal = Signal(crc32c.WIDTH, name=f"goal_{i}")
            with m.If(advance):
                m.d.sync += [valid.eq(source[0]), padding.eq(source[1]), goal.eq(source[2])]
            reached = unit[f"crc_{i}"]
            for bit in reversed(range(i)):
                reached = Mux(padding[bit], _after(m, reached, Const(0, 8 << bit)), reached)
            m.d.comb += Assert(unit[f"valid_{i}"] == valid)
            with m.If(valid):
                m.d.comb += [Assert(unit[f"padding_{i}"] == padding >> i), Assert(reached == goal)]
            source = valid, padding, goal

        m.d.comb += [Assert(self.crcs.valid == valid), Assert(self.crcs.payload == ~unit[f"crc_{i}"])]
        m.d.comb += Cover(valid & (padding == beat_bytes - 1))


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
        m.d.sync += [both.eq(_step(both, self.bit)), state.eq(_step(state, Const(0))), string.eq(_step(string, self.bit))]
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


def _after(m: Module, state: Value, string: Value) -> Value:
    """Return the state after all bits of `string`."""
    for bit in string:
        stepped = Signal(crc32c.WIDTH)
        m.d.comb += stepped.eq(_step(state, bit))
        state = stepped
    return state


VALUE_BEAT_BYTES = 4
"""Both unwind stages differ and a beat can have every padding; parities of wider beats are beyond the solvers."""

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
        shows="invariant 2: a CRC followed by its padding leads to the state of the padded segment, any length, any timing",
        design=lambda: CrcValue(beat_bytes=VALUE_BEAT_BYTES),
        method=Pdr(prepare=("orpos",)),
        cover=12,
    ),
    Property(
        name="crc32c.definition",
        shows="invariant 2: that state is the state of the definition, and only the right CRC leads to it",
        design=CrcDefinition,
        method=Induction(2),
        cover=4,
    ),
)
