"""The compiled register map: names, offsets and fields, read from kvnode.rdl."""

from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from pathlib import Path

from systemrdl import RDLCompiler
from systemrdl.node import FieldNode, RegNode

from hw.params.params import Params

SOURCE = Path(__file__).with_name("kvnode.rdl")


@dataclass(frozen=True, kw_only=True)
class Field:
    """Bits ``low`` to ``low + width - 1`` of a register."""

    name: str
    low: int
    width: int
    writable: bool
    pulse: bool
    reset: int
    parameter: str | None
    doc: str

    @property
    def mask(self) -> int:
        """Its bits in the register."""
        return ((1 << self.width) - 1) << self.low


@dataclass(frozen=True, kw_only=True)
class Register:
    """A 32-bit register at a byte offset."""

    name: str
    offset: int
    doc: str
    fields: tuple[Field, ...]

    def mask(self, *, writable: bool) -> int:
        """The bits of its writable, or of its read-only fields; all others are reserved."""
        return sum(f.mask for f in self.fields if f.writable == writable)

    def reset(self, params: Params) -> int:
        """The value after reset of a slice with these parameters."""
        word = 0
        for f in self.fields:
            value = f.reset if f.parameter is None else attrgetter(f.parameter)(params)
            word |= value << f.low & f.mask
        return word


def _field(node: FieldNode) -> Field:
    return Field(
        name=node.inst_name,
        low=node.low,
        width=node.width,
        writable=node.is_sw_writable,
        pulse=bool(node.get_property("singlepulse")),
        reset=reset if isinstance(reset := node.get_property("reset"), int) else 0,
        parameter=node.get_property("parameter", default=None),
        doc=node.get_property("desc") or "",
    )


def _register(node: RegNode) -> Register:
    return Register(
        name=node.inst_name,
        offset=node.absolute_address,
        doc=node.get_property("name") or "",
        fields=tuple(_field(f) for f in node.fields()),
    )


@cache
def register_map() -> dict[str, Register]:
    """Every register by its name, in the order of offsets."""
    compiler = RDLCompiler()
    compiler.compile_file(str(SOURCE))
    top = compiler.elaborate().top
    return {register.name: register for register in map(_register, top.registers())}
