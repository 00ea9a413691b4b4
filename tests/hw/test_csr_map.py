"""The register map and what is made from it: in-process register file, C header, the registers of the specification."""

import subprocess
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

import sw.driver
from hw.params import PRESETS, TINY, records
from hw.params import commands as c
from hw.params.commands import Binding, Command
from hw.params.protocol import STATUS_BITS, Handle, ModelState, Opcode, RingId, SlotId, Status
from hw.params.registers import COUNTERS, LEVELS, Bound, ErrorKind
from hw.params.statistics import STATISTICS
from hw.params.toeplitz import diagonals
from hw.rdl import Kind, register_map
from hw.rdl.cheader import ENUMERATIONS, FLAGS, RECORDS, c_header
from hw.rdl.registers import REQUESTER
from hw.rtl.csr.registers import ADDRESS_BITS
from hw.tb.csr.accesses import RandomAccesses
from hw.tb.csr.model import OKAY, RegisterModel, Write
from scripts import cli
from sw.driver.device import Device
from sw.driver.errors import RegisterError
from sw.driver.transport import SpecificationTransport
from sw.driver.transport.registers import RegisterFile, Window

HEADER = Path(sw.driver.__file__).parent / "include" / "kvnode.h"
GO = 1 << 31


# The map.


def test_every_register_and_field_says_what_it_is() -> None:
    for register in register_map().values():
        assert register.doc, register.name
        for f in register.fields:
            assert f.doc.endswith("."), f"{register.name}.{f.name}"


def test_offsets_fit_the_address() -> None:
    assert all(r.offset % 4 == 0 and r.offset < 1 << ADDRESS_BITS for r in register_map().values())


@pytest.mark.parametrize("preset", PRESETS)
def test_parameters_fit_their_fields(preset: str) -> None:
    for register in register_map().values():
        for f in register.fields:
            assert f.value(PRESETS[preset]) < 1 << f.width, f"{register.name}.{f.name}"


def test_locks_and_enables_exist() -> None:
    names = {f"{r.name}.{f.name}" for r in register_map().values() for f in r.fields}
    assert {r.locked for r in register_map().values() if r.locked} <= names
    assert {f.enable for r in register_map().values() for f in r.fields if f.enable} <= names


def test_every_count_that_a_transport_has_is_a_register() -> None:
    transport = SpecificationTransport(TINY)
    statistics = [register.statistic for register in register_map().values() if register.statistic is not None]
    assert statistics == [*COUNTERS, *LEVELS] == list(transport.counters())
    shared = {"evictions", "replacement_stall_steps", "cam_refusals"}
    assert shared <= {*statistics} & {statistic.name for statistic in STATISTICS}


def test_a_counter_that_a_transport_does_not_have_is_no_zero() -> None:
    registers = RegisterFile(TINY, {}, {}, lambda: dict.fromkeys([*COUNTERS, *LEVELS][1:], 5))
    assert registers.read(register_map()["COUNT_STATUS_HIT"].offset) == 5
    with pytest.raises(KeyError, match="status_ok"):
        registers.read(register_map()["COUNT_STATUS_OK"].offset)


def test_fields_are_wide_enough_for_their_enumerations() -> None:
    fields = {"ADMIN_COMMAND.opcode": Opcode, "ADMIN_STATUS.status": Status, "ADMIN_RING.binding": Bound}
    fields |= {"ADMIN_MODEL.state": ModelState, "ERROR_ENTRY.kind": ErrorKind}
    for name, enumeration in fields.items():
        register, _, field = name.partition(".")
        assert max(enumeration) < 1 << register_map()[register].field(field).width
    assert register_map()["ADMIN_STATUS"].field("status").width == STATUS_BITS


# The in-process register file obeys the same rules as the model that judges the hardware.


def test_register_file_agrees_with_the_model(seed: int) -> None:
    rng = Random(seed)
    registers = register_map()
    words = {"value": 0}
    pulses: list[str] = []
    names = [f"{r.name}.{f.name}" for r in registers.values() for f in r.fields if f.kind is Kind.PULSE]
    file = RegisterFile(
        TINY,
        {name: lambda name=name: pulses.append(name) for name in names},
        {"CAM_HASH_DATA.value": Window(lambda: words["value"], lambda value: words.update(value=value))},
        lambda: dict.fromkeys([*COUNTERS, *LEVELS], 0),
    )
    model = RegisterModel(registers, TINY)
    accesses = RandomAccesses(registers, rng)
    inputs: dict[str, dict[str, object]] = {}
    for register in registers.values():
        for f in register.fields:
            inputs.setdefault(register.name.lower(), {})[f.name] = (
                {"increment": 0, "clear": 0} if f.kind is Kind.COUNTER else 0
            )
    for _ in range(3000):
        for name in ("STATUS.started", "ADMIN_STATUS.busy"):
            register, _, field = name.partition(".")
            inputs[register.lower()][field] = rng.random() < 0.2
            file.set(name, int(inputs[register.lower()][field]))
        inputs["cam_hash_data"]["value"] = words["value"]
        write = accesses.write()._replace(strobe=15)
        response = model.step(inputs, Write(*write))
        pulses.clear()
        if response == OKAY:
            file.write(write.address, write.data)
        else:
            with pytest.raises(RegisterError):
                file.write(write.address, write.data)
        assert set(pulses) == {name for name in names if shown(model, name)}
        if model.software["cam_hash_data"]["value"]["write"]:
            assert words["value"] == model.software["cam_hash_data"]["value"]["data"]
            inputs["cam_hash_data"]["value"] = words["value"]
        for register in registers.values():
            assert (OKAY, file.read(register.offset)) == model.read(register.offset, inputs), register.name


def shown(model: RegisterModel, name: str) -> int:
    register, _, field = name.partition(".")
    return model.software[register.lower()][field]


# The registers of the specification.


@pytest.fixture
def device() -> Device:
    device = Device(SpecificationTransport(TINY))
    device.start(7)
    return device


def administer(device: Device, command: Command) -> Status:
    """Give a command through the registers, as a driver without rings does."""
    if isinstance(command, c.Bind):
        bound = {Binding.NONE: Bound.NONE, Binding.ADMINISTRATIVE: Bound.ADMINISTRATIVE}.get(
            command.to, Bound.PARTITION
        )
        device.write("ADMIN_RING", command.ring.port | command.ring.ring << 8 | bound << 16)
        device.write("ADMIN_PARTITION", command.to if isinstance(command.to, int) else 0)
    elif isinstance(command, c.SetPartition):
        device.write("ADMIN_PARTITION", command.partition | command.pool << 8 | command.public << 16)
        device.write("ADMIN_QUOTA", command.quota)
        device.write("ADMIN_GUARANTEE", command.guarantee)
        device.write("ADMIN_READ_MASK_LOW", command.read_mask & 0xFFFFFFFF)
        device.write("ADMIN_READ_MASK_HIGH", command.read_mask >> 32)
    elif isinstance(command, c.DropPartition):
        device.write("ADMIN_PARTITION", command.partition)
    elif isinstance(command, c.SetModel):
        device.write("ADMIN_MODEL", command.model | command.state << 16)
    elif isinstance(command, c.Retire):
        device.write("ADMIN_MODEL", command.model)
    device.write("ADMIN_COMMAND", command.opcode | GO)
    word = device.read("ADMIN_STATUS")
    assert not word & GO
    return Status(word)


COMMANDS = [
    c.SetPartition(1, quota=4, guarantee=2, public=True, read_mask=1),
    c.SetPartition(0, quota=4, guarantee=4),
    c.SetPartition(0, quota=3),
    c.SetModel(1, ModelState.LIVE),
    c.SetModel(0, ModelState.RETIRED),
    c.Bind(RingId(1, 1), 1),
    c.Bind(RingId(0, 0), Binding.ADMINISTRATIVE),
    c.Bind(RingId(1, 1), Binding.NONE),
    c.Bind(RingId(5, 0), 1),
    c.DropPartition(1),
    c.Retire(1),
    c.Retire(200),
]


def test_commands_through_registers_end_as_those_through_a_ring(device: Device) -> None:
    other = Device(SpecificationTransport(TINY))
    other.start(7)
    for command in COMMANDS:
        assert administer(device, command) == other.administer(command, *Status), command
    assert device.transport.counters() == other.transport.counters()


def test_an_opcode_that_is_no_administrative_command_is_invalid(device: Device) -> None:
    for opcode in (0, Opcode.LOOKUP, Opcode.SET_EPOCH, 31):
        device.write("ADMIN_COMMAND", opcode | GO)
        assert device.read("ADMIN_STATUS") == Status.INVALID
    device.write("ADMIN_RING", 3 << 16)
    device.write("ADMIN_COMMAND", Opcode.BIND | GO)
    assert device.read("ADMIN_STATUS") == Status.INVALID


def test_counter_registers_read_the_live_counters(device: Device) -> None:
    device.set_partition(0, quota=4)
    counters = device.transport.counters()
    for register in register_map().values():
        if register.statistic:
            assert device.read(register.name) == counters[register.statistic]
    assert device.read("COUNT_STATUS_OK") > 0
    assert device.read("FRAMES_FREE") == TINY.frames


def test_hash_matrices_written_before_the_start_place_the_blocks() -> None:
    other = replace(TINY, cam=replace(TINY.cam, seed=99))
    transport = SpecificationTransport(TINY)
    device = Device(transport)
    for bank, diagonal in enumerate(diagonals(other)):
        for word in range(diagonal.bit_length() // 32 + 1):
            device.write("CAM_HASH_SELECT", bank | word << 8)
            device.write("CAM_HASH_DATA", diagonal >> 32 * word & 0xFFFFFFFF)
    device.start(1)
    expected = SpecificationTransport(other)._slices[0].slice.core.cam
    tags = [(partition, model, key) for partition in range(2) for model in range(2) for key in range(50)]
    found = transport._slices[0].slice.core.cam
    assert [found.place(tag) for tag in tags] == [expected.place(tag) for tag in tags]
    with pytest.raises(RegisterError, match="locked"):
        device.write("CAM_HASH_DATA", 0)


# The C header.


def test_committed_header_is_current() -> None:
    message = "run `kvnode emit csr -o DIR` and copy DIR/kvnode.h to sw/driver/include"
    assert HEADER.read_text() == c_header(), message


def test_emit_writes_the_header(tmp_path: Path) -> None:
    assert cli.run(["emit", "csr", "--set", "preset=TINY", "-o", str(tmp_path)]) == 0
    assert (tmp_path / "kvnode.h").read_text() == c_header()


def test_header_means_in_c_what_it_means_here(tmp_path: Path) -> None:
    expected: dict[str, int] = {}
    for register in register_map().values():
        expected[f"KVNODE_REG_{register.name}_OFFSET"] = register.offset
        for f in register.fields:
            expected[f"KVNODE_REG_{register.name}_{f.name.upper()}_MASK"] = f.mask
            expected[f"KVNODE_REG_{register.name}_{f.name.upper()}_SHIFT"] = f.low
    for register in register_map(REQUESTER).values():
        name = register.name if register.index is None else register.name.removeprefix(f"RING{register.index}_")
        prefix = "KVNODE_REQUESTER_REG" if register.index is None else "KVNODE_RING_REG"
        base = "" if register.index is None else f"KVNODE_RING_OFFSET({register.index}) + "
        expected[f"{base}{prefix}_{name}_OFFSET"] = register.offset
        for f in register.fields:
            expected[f"{prefix}_{name}_{f.name.upper()}_MASK"] = f.mask
    for name, record in RECORDS.items():
        expected[f"sizeof(struct kvnode_{name})"] = record.size
        for field, offset in record.offsets.items():
            expected[f"offsetof(struct kvnode_{name}, {field})"] = offset
            expected[f"8 * sizeof(((struct kvnode_{name} *)0)->{field})"] = record.fields[field]
        for flag in FLAGS.get(name, ()):
            expected[f"KVNODE_{name.upper()}_FLAG_{flag}"] = getattr(records, flag)
    for name, enumeration in ENUMERATIONS.items():
        expected |= {f"KVNODE_{name.upper()}_{member.name}": member.value for member in enumeration}
    handle, slot = Handle(33, 44, 0x54321, 0x89ABCDEF, 0x123456789ABCDEF0), SlotId(0xABCD, 0x123456789ABC)
    for name, identifier in (("HANDLE", handle), ("SLOT_ID", slot)):
        words = [identifier.pack() >> 64 * i & (1 << 64) - 1 for i in range(2)]
        for field, value in identifier._asdict().items():
            prefix = f"KVNODE_{name}_{field.upper()}"
            word = f"(({prefix}_WORD ? UINT64_C({words[1]}) : UINT64_C({words[0]})) & {prefix}_MASK)"
            expected[f"{word} >> {prefix}_SHIFT"] = value
    source, program = tmp_path / "header.c", tmp_path / "header"
    prints = "\n".join(f'    printf("%llu\\n", (unsigned long long)({expression}));' for expression in expected)
    source.write_text(f'#include <stdio.h>\n#include "kvnode.h"\n\nint main(void)\n{{\n{prints}\n    return 0;\n}}\n')
    flags = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-std=c11", f"-I{HEADER.parent}"]
    subprocess.run(["gcc", *flags, "-o", str(program), str(source)], check=True)
    printed = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout.split()
    assert dict(zip(expected, map(int, printed), strict=True)) == expected
