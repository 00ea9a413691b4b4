"""The block CAM."""

from functools import partial

from hw.formal.guard import Guard, Sign
from hw.rtl.node.cam import Cam

FirstContent = partial(Guard, sign=Sign.FAILED)
"""Without it the memories' content at power-up shows; the simulator's begin empty."""

GUARDS = (
    Guard("an entry goes to one bank", Cam, "Mux(place.bank == bank, way, 0)", "way", "cam.tag"),
    Guard(
        "a tag is compared with what was read for it",
        Cam,
        "m.d.sync += tag.eq(access_entry.tag)",
        "m.d.comb += tag.eq(access_entry.tag)",
        "cam.tag",
    ),
    Guard(
        "a place is that of its own LOOKUP",
        Cam,
        "_delayed(m, access_sets, 2)",
        "_delayed(m, access_sets, 1)",
        "cam.tag",
    ),
    Guard(
        "an entry is that of its own request", Cam, "_delayed(m, place.way, 2)", "_delayed(m, place.way, 1)", "cam.tag"
    ),
    FirstContent(
        "nothing is served before the sweep has passed",
        Cam,
        "self.requests.ready.eq(ready)",
        "self.requests.ready.eq(1)",
        "cam.tag",
    ),
    FirstContent("the sweep writes all ways", Cam, "sweeping.replicate(ways) | ", "", "cam.tag"),
    FirstContent(
        "a CLEAR stops what comes behind it",
        Cam,
        "m.d.sync += [sweeping.eq(1), ready.eq(0)]",
        "m.d.sync += sweeping.eq(1)",
        "cam.tag",
    ),
)
