"""What names the commands of RTL: which slot of a ring has which command of the driver."""

from hw.params.commands import Drop
from hw.params.protocol import RingId
from hw.params.records import DESCRIPTOR
from sw.driver import Device, MmioTransport
from sw.driver.transport.loopback import LoopbackBus
from tests.driver.driverbench import PARAMS

RING = RingId(1, 1)


def test_a_slot_is_told_before_its_descriptor_is_there() -> None:
    told: list[tuple[int, int]] = []
    before: list[bool] = []

    def filled(cycle: int | None, ring: RingId, slot: int, tag: int) -> None:
        assert ring == RING
        told.append((slot, tag))
        pair = transport._lanes[ring].pair
        tags = [DESCRIPTOR.unpack(pair.memory.view[at * DESCRIPTOR.size :][: DESCRIPTOR.size]) for at in range(2)]
        before.append(tags[len(told) - 1]["opcode"] == 0)

    transport = MmioTransport(PARAMS, LoopbackBus(PARAMS), entries=8)
    transport.filled = filled
    device = Device(transport)
    device.start(1)
    tickets = [device.submit(RING, Drop(0, key)) for key in range(2)]
    assert [tag for _, tag in told] == [0, 1] and len({slot for slot, _ in told}) == 2
    assert before == [True, True]
    for ticket in tickets:
        device.wait(ticket)
