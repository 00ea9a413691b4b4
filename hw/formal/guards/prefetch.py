"""The table of fills of a prefetch engine."""

from hw.formal.guard import Guard
from hw.rtl.gpu.prefetch.fills import Fills

GUARDS = (
    Guard(
        "a fill is held until all have released it", Fills, "m.If(left & (users == 1))", "m.If(left)", "prefetch.fills"
    ),
)
