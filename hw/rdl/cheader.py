"""The C header of the driver: registers, enumerations and the layouts of identifiers."""

from collections.abc import Iterator
from enum import IntEnum

from hw.params import protocol
from hw.params.protocol import FrameState, Handle, LookupMode, ModelState, Opcode, SlotId, Status
from hw.params.registers import Bound, ErrorKind
from hw.rdl.registers import Kind, Register, register_map

ENUMERATIONS: dict[str, type[IntEnum]] = {
    "status": Status,
    "opcode": Opcode,
    "lookup_mode": LookupMode,
    "frame_state": FrameState,
    "model_state": ModelState,
    "error_kind": ErrorKind,
    "bound": Bound,
}
IDENTIFIERS: dict[str, tuple[type[Handle] | type[SlotId], int]] = {"handle": (Handle, 128), "slot_id": (SlotId, 64)}
"""Name to type and width in bits."""

WIDTHS = ("KEY_BITS", "EPOCH_BITS", "TAG_BITS")

PREAMBLE = """\
/* Registers, enumerations and identifiers of a kvnode slice. Written by `kvnode emit csr`; do not edit.
 *
 * KVNODE_REG_R_OFFSET       byte offset of register R; all registers are 32 bits wide
 * KVNODE_REG_R_F_SHIFT      lowest bit of its field F
 * KVNODE_REG_R_F_MASK       bits of the field, where they are in the register
 * KVNODE_REG_R_F_VALUE      what a constant field reads in every slice
 * KVNODE_HANDLE_F_WORD      64-bit word that has field F of a handle; word 0 has bits 63 to 0
 * KVNODE_HANDLE_F_SHIFT     lowest bit of the field in that word; likewise KVNODE_SLOT_ID, for pin and session ids
 * KVNODE_HANDLE_F_MASK      bits of the field, where they are in the word
 */
#ifndef KVNODE_H
#define KVNODE_H

#include <stdint.h>
"""


def c_header() -> str:
    """Return the text of kvnode.h."""
    lines = [PREAMBLE]
    for register in register_map().values():
        lines += [*_register(register), ""]
    for name, enumeration in ENUMERATIONS.items():
        lines += [*_enumeration(name, enumeration), ""]
    for name, (identifier, bits) in IDENTIFIERS.items():
        lines += [*_identifier(name.upper(), identifier, bits), ""]
    lines += [f"#define KVNODE_{name} {getattr(protocol, name)}" for name in WIDTHS]
    return "\n".join([*lines, "", "#endif", ""])


def _register(register: Register) -> Iterator[str]:
    name = f"KVNODE_REG_{register.name}"
    yield f"/* {register.doc} */"
    yield f"#define {name}_OFFSET {register.offset:#05x}u"
    for f in register.fields:
        yield f"#define {name}_{f.name.upper()}_SHIFT {f.low}"
        yield f"#define {name}_{f.name.upper()}_MASK {f.mask:#010x}u"
        if f.kind is Kind.CONSTANT and f.parameter is None:
            yield f"#define {name}_{f.name.upper()}_VALUE {f.reset:#x}u"


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
