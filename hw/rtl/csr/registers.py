"""The registers of a map, behind AXI4-Lite."""

from collections.abc import Mapping

from amaranth import Cat, Const, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.params import Params
from hw.rdl import Register, register_map
from hw.rtl.axi import axi4_lite
from hw.rtl.csr.fields import Write, build
from hw.rtl.csr.signature import hardware_signature, software_signature
from hw.rtl.csr.target import Axi4LiteTarget

ADDRESS_BITS = 12
"""Width of the byte address: a page."""


class Registers(wiring.Component):
    """Registers as a compiled SystemRDL file describes them.

    Parameters
    ----------
    params
        What constants with a parameter read as.
    registers
        The map; by default that of `kvnode.rdl`.

    Interface
    ---------
    axi : In, AXI4-Lite with 12 bits of address
        The software's side.
    software : Out, `software_signature(registers)`
        What software tells hardware.
    hardware : In, `hardware_signature(registers)`
        What hardware tells software.
    irq : Out, 1 bit
        An event is set and enabled; level.

    Latency and throughput
    ----------------------
    A write is seen in `software` in the cycle in which BVALID rises. A read gives what was there in the cycle before
    RVALID rises. `irq` follows one cycle after event and enable. Otherwise as `Axi4LiteTarget`.

    Ordering and stalls
    -------------------
    As `Axi4LiteTarget`. Software that needs a write to be done before a read waits for the write's response.

    Reset and errors
    ----------------
    Reset gives every field its reset value. SLVERR, with nothing changed, for an address that is no multiple of 4 or
    has no register; for a write to a register without writable fields, to one that is locked, or with a 1 for a
    reserved or read-only bit in a byte whose strobe is set. Bytes whose strobe is not set keep their value.

    Invariants
    ----------
    None.

    Counters
    --------
    Those of the map.
    """

    def __init__(self, params: Params, registers: Mapping[str, Register] | None = None):
        self._params = params
        self._registers = register_map() if registers is None else registers
        super().__init__(
            {
                "axi": In(axi4_lite(address_bits=ADDRESS_BITS)),
                "software": Out(software_signature(self._registers)),
                "hardware": In(hardware_signature(self._registers)),
                "irq": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.target = target = Axi4LiteTarget(address_bits=ADDRESS_BITS)
        wiring.connect(m, wiring.flipped(self.axi), target.axi)
        access = target.access

        strobed = Signal(32)
        written = Signal(32)
        m.d.comb += [
            strobed.eq(Cat(bit.replicate(8) for bit in access.write_strobe)),
            written.eq(access.write_data & strobed),
        ]
        fields: dict[str, Value] = {}
        words: dict[str, Value] = {}
        writes: dict[str, Signal] = {}
        for name, register in self._registers.items():
            low = name.lower()
            writes[name] = Signal(name=f"write_{low}")
            sides = getattr(self.software, low, None), getattr(self.hardware, low, None)
            for f in register.fields:
                bits = slice(f.low, f.low + f.width)
                write = Write(now=writes[name], strobed=strobed[bits], bits=written[bits])
                init = f.value(self._params)
                fields[f"{name}.{f.name}"] = build(m, f, name=f"{low}_{f.name}", init=init, write=write, sides=sides)
            words[name] = _word(register, fields)

        # Which register, and whether the access is allowed.
        m.d.comb += [access.write_error.eq(1), access.read_error.eq(1)]
        with m.Switch(access.write_address[2:]):
            for name, register in self._registers.items():
                writable = register.mask(writable=True)
                if writable:
                    locked = fields[register.locked].any() if register.locked else Const(0, 1)
                    misaligned = access.write_address[:2].any()
                    with m.Case(register.offset >> 2):
                        m.d.comb += [
                            access.write_error.eq(misaligned | locked | (written & ~writable).any()),
                            writes[name].eq(access.write & ~access.write_error),
                        ]
        with m.Switch(access.read_address[2:]):
            for name, register in self._registers.items():
                with m.Case(register.offset >> 2):
                    m.d.comb += [access.read_error.eq(access.read_address[:2].any()), access.read_data.eq(words[name])]

        enabled = [
            (fields[f"{name}.{f.name}"] & fields[f.enable]).any()
            for name, register in self._registers.items()
            for f in register.fields
            if f.enable
        ]
        m.d.sync += self.irq.eq(Cat(enabled).any())
        return m


def _word(register: Register, fields: Mapping[str, Value]) -> Value:
    """Return all 32 bits of a register, reserved ones 0."""
    parts: list[Value] = []
    at = 0
    for f in register.fields:
        parts += [Const(0, f.low - at), fields[f"{register.name}.{f.name}"]]
        at = f.low + f.width
    return Cat(*parts, Const(0, 32 - at))
