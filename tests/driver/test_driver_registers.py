"""Discovery and registers: a driver that is not meant for the device says so, and a bad access changes nothing."""

from dataclasses import replace

import pytest
from driverbench import PARAMS, Connect, Rig, store

from hw.params import InputError
from hw.rdl import register_map
from sw.driver import Device, DeviceError, RegisterError, Transport

MAP = register_map()
CONSTANT = [name for name, register in MAP.items() if register.constant]
READ_ONLY = [name for name, register in MAP.items() if not register.mask(writable=True)]
WRITABLE = [name for name in MAP if name not in READ_ONLY]
END = max(register.offset for register in MAP.values()) + 4
NOWHERE = [
    -4,
    1,
    2,
    3,
    *sorted({offset for offset in range(0, END, 4)} - {register.offset for register in MAP.values()}),
    END,
    END + 1,
    1 << 32,
]

OTHERS = {
    "sessions": replace(PARAMS, tables=replace(PARAMS.tables, sessions=5)),
    "models": replace(PARAMS, tables=replace(PARAMS.tables, models=3)),
    "ways": replace(PARAMS, cam=replace(PARAMS.cam, ways=32)),
    "beats": replace(PARAMS, memory=replace(PARAMS.memory, beat_bytes=32)),
    "frames": replace(PARAMS, pools=(replace(PARAMS.pools[0], frames=7),)),
}


def values(transport: Transport) -> dict[str, int]:
    """All registers."""
    return {name: transport.read_register(register.offset) for name, register in MAP.items()}


def lie(transport: Transport, name: str, flip: int) -> None:
    """Let a register read with some bits changed."""
    honest = transport.read_register
    where = MAP[name].offset
    setattr(transport, "read_register", lambda offset, slice_=0: honest(offset) ^ (flip * (offset == where)))  # noqa: B010


@pytest.mark.one_slice
def test_a_device_of_the_right_parameters_is_found(connect: Connect) -> None:
    with Device(connect()) as device:
        assert device.params == PARAMS
        assert device.read("ID") == int.from_bytes(b"KVND", "big")
        assert not device.read_field("STATUS", "started"), "found, but not started"


@pytest.mark.one_slice
@pytest.mark.parametrize("name", CONSTANT)
def test_a_register_that_is_not_as_expected_ends_discovery_with_its_name(connect: Connect, name: str) -> None:
    transport = connect()
    lie(transport, name, 1)
    with pytest.raises(DeviceError) as caught:
        Device(transport)
    message = str(caught.value)
    assert f"register {name} reads " in message and "expected" in message and message.isprintable()


@pytest.mark.parametrize("name", OTHERS)
def test_a_device_is_refused_by_a_driver_of_other_parameters(connect: Connect, name: str) -> None:
    transport = connect()
    transport.params = OTHERS[name]
    with pytest.raises(DeviceError, match="other parameters"):
        Device(transport)


@pytest.mark.rebuilt
@pytest.mark.parametrize("name", OTHERS)
def test_a_device_of_other_parameters_is_refused(connect: Connect, name: str) -> None:
    transport = connect(OTHERS[name])
    transport.params = PARAMS
    with pytest.raises(DeviceError, match="other parameters"):
        Device(transport)


# Accesses that the map does not allow.


@pytest.mark.parametrize("name", READ_ONLY)
def test_a_read_only_register_refuses_every_write(rig: Rig, name: str) -> None:
    transport = rig.device.transport
    before = values(transport)
    for value in (0, 1, before[name], 0xFFFFFFFF):
        with pytest.raises(RegisterError, match=f"register {name}: is read-only"):
            transport.write_register(MAP[name].offset, value)
        with pytest.raises(RegisterError, match=f"register {name}: is read-only"):
            rig.device.write(name, value)
    assert values(transport) == before


@pytest.mark.parametrize("name", WRITABLE)
def test_a_reserved_bit_refuses_the_whole_write(rig: Rig, name: str) -> None:
    transport, allowed = rig.device.transport, MAP[name].mask(writable=True)
    before = values(transport)
    reserved = [1 << bit for bit in range(32) if not allowed >> bit & 1]
    for value in [*reserved, *(bit | allowed for bit in reserved), 1 << 32, allowed | 1 << 32, -1]:
        with pytest.raises(RegisterError, match=f"register {name}: "):
            transport.write_register(MAP[name].offset, value)
    assert values(transport) == before


@pytest.mark.parametrize("offset", NOWHERE)
def test_where_there_is_no_register_nothing_is_read_or_written(rig: Rig, offset: int) -> None:
    transport = rig.device.transport
    before = values(transport)
    with pytest.raises(RegisterError, match="nothing there, expected a multiple of 4 below"):
        transport.read_register(offset)
    with pytest.raises(RegisterError, match="nothing there, expected a multiple of 4 below"):
        transport.write_register(offset, 0)
    assert values(transport) == before


def test_a_name_that_no_register_has_is_told_with_the_nearest(rig: Rig) -> None:
    for access in (lambda: rig.device.read("SCRACH"), lambda: rig.device.write("SCRACH", 1)):
        with pytest.raises(RegisterError) as caught:
            access()
        assert str(caught.value) == "register SCRACH: there is none, did you mean SCRATCH?"


def test_a_name_that_no_field_has_is_told_with_the_nearest(rig: Rig) -> None:
    device = rig.device
    for access in (lambda: device.read_field("STATUS", "redy"), lambda: device.write_field("STATUS", "redy", 1)):
        with pytest.raises(RegisterError) as caught:
            access()
        assert str(caught.value) == "register STATUS: has no field redy, did you mean ready?"


def test_a_field_is_written_alone(rig: Rig) -> None:
    device = rig.device
    device.write("ADMIN_RING", 1 | 2 << 8 | 1 << 16)
    device.write_field("ADMIN_RING", "ring", 3)
    assert device.read("ADMIN_RING") == 1 | 3 << 8 | 1 << 16
    assert [device.read_field("ADMIN_RING", name) for name in ("port", "ring", "binding")] == [1, 3, 1]
    happened = device.read("INTERRUPT_STATUS")
    assert device.read_field("INTERRUPT_STATUS", "ready"), "since the restart"
    device.write_field("INTERRUPT_STATUS", "admin", 1)
    assert device.read("INTERRUPT_STATUS") == happened & ~MAP["INTERRUPT_STATUS"].field("admin").mask


@pytest.mark.parametrize("value", [-1, 1 << 8])
def test_a_value_does_not_run_over_into_the_next_field(rig: Rig, value: int) -> None:
    with pytest.raises(RegisterError, match=f"register ADMIN_RING: port = {value}, expected a number of 8 bits"):
        rig.device.write_field("ADMIN_RING", "port", value)


def test_what_is_stored_reads_back(rig: Rig) -> None:
    for value in (0, 0xFFFFFFFF, 0x12345678):
        rig.device.write("SCRATCH", value)
        assert rig.device.read("SCRATCH") == value


def test_the_hash_is_locked_while_the_slice_is_in_service(rig: Rig) -> None:
    before = rig.device.read("CAM_HASH_DATA")
    with pytest.raises(RegisterError, match=r"CAM_HASH_DATA: is locked while STATUS.started"):
        rig.device.write("CAM_HASH_DATA", before ^ 1)
    assert rig.device.read("CAM_HASH_DATA") == before


# Counters.


@pytest.mark.one_slice
def test_registers_and_counters_say_the_same(rig: Rig) -> None:
    store(rig.one, 1)
    store(rig.two, 2)
    rig.one.lookup(0, [1, 2], pin=True)
    counters = rig.counters()
    for name, register in MAP.items():
        if register.statistic is not None:
            assert rig.device.read(name) == counters[register.statistic], name
    assert rig.device.read("USED_PINS") == 1
    assert rig.device.read("FRAMES_SEALED") == 2


# Start.


@pytest.mark.parametrize("epoch", [0, -1, 1 << 64])
def test_a_bad_epoch_is_refused_before_anything_is_lost(rig: Rig, epoch: int) -> None:
    handle = store(rig.one, 1)
    with pytest.raises(InputError) as caught:
        rig.device.start(epoch)
    assert str(caught.value) == f"epoch = {epoch}, expected a number from 1 to 2**64 - 1"
    assert bytes(rig.one.get(handle, length=600)) == b"kv" * 300


@pytest.mark.parametrize("epoch", [1, 1 << 32, (1 << 64) - 1])
def test_the_epoch_is_in_every_handle(rig: Rig, epoch: int) -> None:
    setattr(rig.device, "start", lambda: Device.start(rig.device, epoch))  # noqa: B010
    rig.configure()
    assert store(rig.one, 1).epoch == epoch


def test_epochs_differ_from_start_to_start(rig: Rig) -> None:
    epochs = set()
    for _ in range(5):
        rig.configure()
        epochs.add(store(rig.one, 1).epoch)
    assert len(epochs) == 5
