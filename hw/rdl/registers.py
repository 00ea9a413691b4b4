"""The compiled register maps: names, offsets and fields, read from SystemRDL."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from operator import attrgetter
from pathlib import Path

from systemrdl import RDLCompiler
from systemrdl.node import FieldNode, RegfileNode, RegNode

from hw.params.params import Params

SOURCE = Path(__file__).with_name("kvnode.rdl")
REQUESTER = Path(__file__).with_name("requester.rdl")


class Kind(Enum):
    """What software and hardware do with a field; its value says it in a word, for documents."""

    CONSTANT = "constant"
    """Reads as its reset value or as a parameter."""
    STORED = "stored"
    """Keeps what software writes."""
    PULSE = "pulse"
    """Hardware sees a written 1 for one cycle; reads 0."""
    STATUS = "status"
    """Reads as what hardware shows at that moment."""
    COUNTER = "counter"
    """Hardware adds to it, up to its largest value, and clears it."""
    EVENT = "event"
    """Hardware sets it, software clears it by writing 1; setting wins."""
    WINDOW = "window"
    """Kept by hardware, which is told of every write and shows what is read."""


@dataclass(frozen=True, kw_only=True)
class Field:
    """Bits ``low`` to ``low + width - 1`` of a register.

    - ``shown``: hardware sees what is stored.
    - ``parameter``: the name of the parameter that a constant reads as.
    - ``increment_width``: bits of what hardware can add to a counter in one cycle.
    - ``enable``: of an event that interrupts, the ``REGISTER.field`` that lets it.
    """

    name: str
    low: int
    width: int
    kind: Kind
    shown: bool
    reset: int
    parameter: str | None
    increment_width: int
    enable: str | None
    doc: str

    @property
    def mask(self) -> int:
        """Its bits in the register."""
        return ((1 << self.width) - 1) << self.low

    @property
    def writable(self) -> bool:
        """Whether software may set its bits."""
        return self.kind in (Kind.STORED, Kind.PULSE, Kind.EVENT, Kind.WINDOW)

    @property
    def pulse(self) -> bool:
        """Whether it clears itself."""
        return self.kind is Kind.PULSE

    def value(self, params: Params) -> int:
        """Its value after reset of a slice with these parameters; of a status and a window 0."""
        value: int = self.reset if self.parameter is None else attrgetter(self.parameter)(params)
        return value


@dataclass(frozen=True, kw_only=True)
class Register:
    """A 32-bit register at a byte offset.

    - ``statistic``: the entry of ``Transport.counters()`` that it reads as.
    - ``locked``: the ``REGISTER.field`` that refuses all writes to it while it is not 0.
    - ``index``: which of an array of groups it belongs to.
    """

    name: str
    offset: int
    index: int | None
    doc: str
    statistic: str | None
    locked: str | None
    fields: tuple[Field, ...]

    @property
    def constant(self) -> bool:
        """Whether it always reads the same."""
        return all(f.kind is Kind.CONSTANT for f in self.fields)

    def mask(self, *, writable: bool) -> int:
        """The bits of its writable, or of its read-only fields; all others are reserved."""
        return sum(f.mask for f in self.fields if f.writable == writable)

    def reset(self, params: Params) -> int:
        """The value after reset of a slice with these parameters."""
        return sum(f.value(params) << f.low & f.mask for f in self.fields)

    def field(self, name: str) -> Field:
        """The field of that name."""
        return next(f for f in self.fields if f.name == name)


def _kind(node: FieldNode) -> Kind:
    for name, kind in _PROPERTIES.items():
        if node.get_property(name):
            return kind
    if node.is_sw_writable:
        return Kind.STORED
    return Kind.STATUS if node.is_hw_writable else Kind.CONSTANT


_PROPERTIES = {"singlepulse": Kind.PULSE, "counter": Kind.COUNTER, "woclr": Kind.EVENT, "swmod": Kind.WINDOW}
"""Properties of SystemRDL that decide the kind of a field; without them, who may write does."""


def _field(node: FieldNode) -> Field:
    enable = node.get_property("enable", default=None)
    return Field(
        name=node.inst_name,
        low=node.low,
        width=node.width,
        kind=_kind(node),
        shown=node.is_hw_readable,
        reset=reset if isinstance(reset := node.get_property("reset"), int) else 0,
        parameter=node.get_property("parameter", default=None),
        increment_width=node.get_property("incrwidth") or 1,
        enable=f"{enable.parent.inst_name}.{enable.inst_name}" if isinstance(enable, FieldNode) else None,
        doc=" ".join((node.get_property("desc") or "").split()),
    )


def _register(node: RegNode) -> Register:
    group = node.parent if isinstance(node.parent, RegfileNode) else None
    prefix = f"{group.inst_name}{group.current_idx[0]}_" if group else ""
    locked = node.get_property("locked", default=None)
    return Register(
        name=prefix + node.inst_name,
        offset=node.absolute_address,
        index=group.current_idx[0] if group else None,
        doc=node.get_property("name") or "",
        statistic=node.get_property("statistic", default=None),
        locked=prefix + locked if locked else None,
        fields=tuple(_field(f) for f in node.fields()),
    )


@cache
def register_map(source: Path = SOURCE) -> Mapping[str, Register]:
    """Every register of a SystemRDL file by its name, in the order of offsets.

    A register of an array of groups has the group's name and number before its own: ``RING3_STATUS``.
    """
    compiler = RDLCompiler()
    compiler.compile_file(str(source))
    top = compiler.elaborate().top
    nodes = (node for node in top.descendants(unroll=True) if isinstance(node, RegNode))
    return {register.name: register for register in map(_register, nodes)}


def requester_map(params: Params) -> Mapping[str, Register]:
    """The registers of a requester with these parameters: those of the rings that it has."""
    rings = params.tables.rings_per_port
    registers = register_map(REQUESTER)
    return {name: each for name, each in registers.items() if each.index is None or each.index < rings}
