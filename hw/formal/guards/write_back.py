"""Slots of a write-back buffer."""

from hw.formal.guard import Guard
from hw.rtl.gpu.write_back.slots import Slots

GUARDS = (
    Guard("a SEAL waits for the CRC32C", Slots, "m.If(moved & summed)", "m.If(moved)", "write_back.slot"),
    Guard(
        "a source is not released with its WRITE",
        Slots,
        "Mux(known.open, Phase.ANSWER, Phase.ASK_SEAL)",
        "Phase.ANSWER",
        "write_back.slot",
    ),
    Guard("a WRITE that fails is given up", Slots, "m.If(status != Status.OK)", "m.If(0)", "write_back.slot"),
    Guard("a SEAL that fails is given up", Slots, "m.If(self.ended.status != Status.OK)", "m.If(0)", "write_back.slot"),
    Guard(
        "a slot is held until its completion",
        Slots,
        "m.If(self.released & (self.context == known.context))",
        "m.If(self.released)",
        "write_back.slot",
    ),
    Guard("a CRC32C of before is forgotten", Slots, "summed.eq(0)", "summed.eq(summed)", "write_back.slot"),
    Guard("what is dead is told", Slots, "status.eq(Status.UNAVAILABLE)", "status.eq(Status.OK)", "write_back.slot"),
)
