"""A device on every transport."""

from collections.abc import Iterator

import pytest
from driverbench import LACKS, PARAMS, TRANSPORTS, Connect, Rig
from ringbench import Ringed

from hw.params import Params
from sw.driver import Device, Transport

LONG = {"two slices": pytest.mark.nightly, "two behind rings": pytest.mark.nightly}
"""Transports that tests are run on every night; a few of them every day, see `test_driver_slices`."""


@pytest.fixture(params=[pytest.param(name, marks=LONG.get(name, ())) for name in TRANSPORTS])
def connect(request: pytest.FixtureRequest) -> Iterator[Connect]:
    """Makes transports, and closes them in the end."""
    for marker, reason in LACKS.get(request.param, {}).items():
        if request.node.get_closest_marker(marker):
            pytest.skip(reason)  # what a device lacks, and why, is in LACKS
    made: list[Transport] = []

    def make(params: Params = PARAMS, seed: int = 0) -> Transport:
        made.append(TRANSPORTS[request.param](params, seed))
        return made[-1]

    yield make
    for transport in made:
        transport.close()


@pytest.fixture
def rig(connect: Connect) -> Iterator[Rig]:
    """A device in service. In the end nothing may wait, and the frames add up, unless it is closed by then."""
    rig = Rig(Device(connect()))
    yield rig
    if rig.device.closed:
        return
    rig.settle()
    counters = rig.counters()
    assert (
        sum(count for name, count in counters.items() if name.startswith("frames_"))
        == len(rig.device.slices) * PARAMS.frames
    )
    assert counters["parked_used"] == counters["frames_draining"] == 0 or counters["pins_used"]


@pytest.fixture
def ringed() -> Iterator[Ringed]:
    """A device on small rings. In the end nothing is mapped but rings."""
    ringed = Ringed(entries=4)
    mapped = ringed.mapped()
    yield ringed
    if not ringed.device.closed:
        ringed.settle()
    assert ringed.mapped() == mapped
