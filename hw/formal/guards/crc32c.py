"""The CRC32C unit, and the definition that it is compared with."""

from hw.formal.guard import Guard
from hw.formal.properties import crc32c
from hw.rtl.transform import Crc32c

GUARDS = (
    Guard(
        "an offer stands in a stall",
        Crc32c,
        "advance.eq(~self.crcs.valid | self.crcs.ready)",
        "advance.eq(1)",
        "crc32c.stream",
    ),
    Guard(
        "nothing is offered out of reset",
        Crc32c,
        'Signal(name=f"valid_{i}")',
        'Signal(name=f"valid_{i}", init=1)',
        "crc32c.stream",
    ),
    Guard(
        "only the last beat has a CRC",
        Crc32c,
        "source = fold_valid & fold_last,",
        "source = fold_valid,",
        "crc32c.conservation",
    ),
    Guard("no beat is taken in a stall", Crc32c, "beats.ready.eq(advance)", "beats.ready.eq(1)", "crc32c.conservation"),
    Guard(
        "a CRC is offered in its cycle",
        Crc32c,
        "m.d.comb += [self.crcs.valid",
        "m.d.sync += [self.crcs.valid",
        "crc32c.conservation",
    ),
    Guard("the padding is taken back", Crc32c, "crc32c.zeros(-1 << i)", "crc32c.zeros(1 << i)", "crc32c.value"),
    Guard("the padding is masked", Crc32c, "padded.eq(beat.data &", "padded.eq(beat.data |", "crc32c.value"),
    Guard("a segment begins anew", Crc32c, "after | fold_last.replicate(crc32c.WIDTH)", "after", "crc32c.value"),
    Guard(
        "the state passes a beat", Crc32c, "crc32c.zeros(beat_bytes), state", "crc32c.zeros(2), state", "crc32c.serial"
    ),
    Guard(
        "the last state is inverted", Crc32c, "self.crcs.payload.eq(~crc)", "self.crcs.payload.eq(crc)", "crc32c.serial"
    ),
    Guard("a bit is added to the state", crc32c._step, "state[0] ^ bit", "state[0] & bit", "crc32c.definition"),
)
