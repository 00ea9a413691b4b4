"""The C header of the driver: registers, enumerations, records in memory and the layouts of identifiers."""

from collections.abc import Iterator
from enum import IntEnum

from hw.params import protocol, records
from hw.params.commands import Fate
from hw.params.protocol import (
    EngineOpcode,
    FrameState,
    Handle,
    LookupMode,
    MessageKind,
    ModelState,
    Opcode,
    SlotId,
    Status,
)
from hw.params.records import Record
from hw.params.registers import Bound, ErrorKind
from hw.rdl.registers import REQUESTER, Kind, Register, register_map

ENUMERATIONS: dict[str, type[IntEnum]] = {
    "status": Status,
    "opcode": Opcode,
    "engine_opcode": EngineOpcode,
    "lookup_mode": LookupMode,
    "frame_state": FrameState,
    "model_state": ModelState,
    "error_kind": ErrorKind,
    "bound": Bound,
    "message_kind": MessageKind,
    "fate": Fate,
}
RECORDS: dict[str, Record] = {
    "settings": records.SETTINGS,
    "staging": records.STAGING,
    "descriptor": records.DESCRIPTOR,
    "completion": records.COMPLETION,
    "event": records.EVENT,
    "block": records.BLOCK,
    "arrival": records.ARRIVAL,
}
FLAGS: dict[str, tuple[str, ...]] = {
    "descriptor": ("PIN", "RUN", "PARK", "LIVE", "SCATTERED", "STAGED"),
    "completion": ("PHASE", "NAMED", "GIVEN"),
    "event": ("OF_PARTITION", "OF_MODEL", "LOST", "MANAGED"),
    "block": ("SCATTERED",),
    "arrival": ("ARRIVED", "FAILED"),
}
"""Of the field `flags` of a record, the names in `hw.params.records`."""
IDENTIFIERS: dict[str, tuple[type[Handle] | type[SlotId], int]] = {"handle": (Handle, 128), "slot_id": (SlotId, 64)}
"""Name to type and width in bits."""

WIDTHS = ("KEY_BITS", "EPOCH_BITS", "TAG_BITS")

PREAMBLE = """\
/* Registers, records in memory, enumerations and identifiers of kvnode. Written by `kvnode emit csr`; do not edit.
 *
 * KVNODE_REG_R_OFFSET       byte offset of register R of a slice; all registers are 32 bits wide
 * KVNODE_REG_R_F_SHIFT      lowest bit of its field F
 * KVNODE_REG_R_F_MASK       bits of the field, where they are in the register
 * KVNODE_REG_R_F_VALUE      what a constant field reads in every slice
 * KVNODE_REQUESTER_REG_R    likewise, of a requester
 * KVNODE_RING_REG_R         likewise, of one ring of a requester: offsets from KVNODE_RING_OFFSET(number of the ring)
 * struct kvnode_N           record N in memory, little-endian; KVNODE_N_FLAG_F is bit F of its flags
 * KVNODE_HANDLE_F_WORD      64-bit word that has field F of a handle; word 0 has bits 63 to 0
 * KVNODE_HANDLE_F_SHIFT     lowest bit of the field in that word; likewise KVNODE_SLOT_ID, for pin and session ids
 * KVNODE_HANDLE_F_MASK      bits of the field, where they are in the word
 */
#ifndef KVNODE_H
#define KVNODE_H

#include <stddef.h>
#include <stdint.h>
"""


def c_header() -> str:
    """Return the text of kvnode.h."""
    lines = [PREAMBLE]
    for register in register_map().values():
        lines += [*_register(register, f"KVNODE_REG_{register.name}", register.offset), ""]
    for register in register_map(REQUESTER).values():
        if register.index is None:
            lines += [*_register(register, f"KVNODE_REQUESTER_REG_{register.name}", register.offset), ""]
    lines += _rings()
    for name, record in RECORDS.items():
        lines += [*_record(name, record), ""]
    for name, enumeration in ENUMERATIONS.items():
        lines += [*_enumeration(name, enumeration), ""]
    for name, (identifier, bits) in IDENTIFIERS.items():
        lines += [*_identifier(name.upper(), identifier, bits), ""]
    lines += [f"#define KVNODE_{name} {getattr(protocol, name)}" for name in WIDTHS]
    lines += [
        f"#define KVNODE_ALIGNMENT {records.ALIGNMENT} /* of rings, keys, results and lists of pages, in bytes */",
        f"#define KVNODE_PAGE_SHIFT_LEAST {records.PAGE_SHIFTS[0]}",
        f"#define KVNODE_PAGE_SHIFT_MOST {records.PAGE_SHIFTS[-1]}",
    ]
    return "\n".join([*lines, "", "#endif", ""])


def _register(register: Register, name: str, offset: int) -> Iterator[str]:
    yield f"/* {register.doc} */"
    yield f"#define {name}_OFFSET {offset:#05x}u"
    for f in register.fields:
        yield f"#define {name}_{f.name.upper()}_SHIFT {f.low}"
        yield f"#define {name}_{f.name.upper()}_MASK {f.mask:#010x}u"
        if f.kind is Kind.CONSTANT and f.parameter is None:
            yield f"#define {name}_{f.name.upper()}_VALUE {f.reset:#x}u"


def _rings() -> Iterator[str]:
    """The registers of one ring, and where those of each begin."""
    groups = [[r for r in register_map(REQUESTER).values() if r.index == index] for index in (0, 1)]
    base, following = (min(r.offset for r in group) for group in groups)
    yield f"#define KVNODE_RING_OFFSET(ring) ({base:#05x}u + {following - base:#x}u * (ring))"
    for register in groups[0]:
        yield from _register(
            register, f"KVNODE_RING_REG_{register.name.removeprefix('RING0_')}", register.offset - base
        )
        yield ""


def _record(name: str, record: Record) -> Iterator[str]:
    """A struct; packed only where that matters, so that its fields are read and written whole."""
    sizes = {field: min(bits // 8, 8) if bits in (8, 16, 32, 64, 128) else 1 for field, bits in record.fields.items()}
    natural = all(record.offsets[field] % size == 0 for field, size in sizes.items())
    yield f"/* {record.doc} */"
    yield f"struct kvnode_{name} {{"
    for field, bits in record.fields.items():
        many = bits // 8 // sizes[field]
        yield f"    uint{8 * sizes[field]}_t {field}" + (f"[{many}];" if many > 1 else ";")
    yield "};" if natural else "} __attribute__((packed));"
    yield f'_Static_assert(sizeof(struct kvnode_{name}) == {record.size}, "size of kvnode_{name}");'
    for field, offset in record.offsets.items():
        yield f'_Static_assert(offsetof(struct kvnode_{name}, {field}) == {offset}, "{field} of kvnode_{name}");'
    for flag in FLAGS.get(name, ()):
        yield f"#define KVNODE_{name.upper()}_FLAG_{flag} {getattr(records, flag):#x}u"


def _enumeration(name: str, enumeration: type[IntEnum]) -> Iterator[str]:
    yield f"enum kvnode_{name} {{"
    for member in enumeration:
        meaning = getattr(member, "meaning", "")
        yield f"    KVNODE_{name.upper()}_{member.name} = {member.value}," + (f" /* {meaning} */" if meaning else "")
    yield "};"


def _identifier(name: str, identifier: type[Handle] | type[SlotId], bits: int) -> Iterator[str]:
    fields = identifier._fields
    shifts = {field: identifier(*(int(field == other) for other in fields)).pack().bit_length() - 1 for field in fields}
    yield f"#define KVNODE_{name}_WORDS {bits // 64}"
    end = bits
    for field, shift in shifts.items():
        word, low = divmod(shift, 64)
        yield f"#define KVNODE_{name}_{field.upper()}_WORD {word}"
        yield f"#define KVNODE_{name}_{field.upper()}_SHIFT {low}"
        yield f"#define KVNODE_{name}_{field.upper()}_MASK UINT64_C({((1 << end - shift) - 1) << low:#018x})"
        end = shift
