"""An AXI4-Lite target as two strobes: a write that is to be done now, a read that is to be answered now."""

from amaranth import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.rtl.axi import Response, axi4_lite


def access_signature(address_bits: int) -> wiring.Signature:
    """Return the signature of the accesses of a bus, from the bus's view; all answers are due in the same cycle.

    - `write`, `write_address`, `write_data`, `write_strobe`: write these bytes now; ends SLVERR if `write_error`.
    - `read`, `read_address`: read now; ends SLVERR if `read_error`, else with `read_data`.
    """
    return wiring.Signature(
        {
            "write": Out(1),
            "write_address": Out(address_bits),
            "write_data": Out(32),
            "write_strobe": Out(4),
            "write_error": In(1),
            "read": Out(1),
            "read_address": Out(address_bits),
            "read_data": In(32),
            "read_error": In(1),
        }
    )


class Axi4LiteTarget(wiring.Component):
    """AXI4-Lite target with one write and one read under way.

    Parameters
    ----------
    address_bits
        Width of the byte address.

    Interface
    ---------
    axi : In, `axi4_lite(address_bits=address_bits)`
        The bus. AWPROT and ARPROT are ignored.
    access : Out, `access_signature(address_bits)`
        Each write and each read, for one cycle.

    Latency and throughput
    ----------------------
    BVALID comes two cycles after the later of AW and W was taken, RVALID two cycles after AR; the access is in the
    cycle between. One write and one read every two cycles.

    Ordering and stalls
    -------------------
    AW and W are taken in any order, independently. A write waits while its predecessor's response has not been taken,
    a read likewise; neither waits for the other. Every output comes from a register.

    Reset and errors
    ----------------
    Reset forgets what is under way. SLVERR as `access` says, with RDATA 0; never DECERR.

    Invariants, counters
    --------------------
    None.
    """

    def __init__(self, *, address_bits: int):
        super().__init__(
            {"axi": In(axi4_lite(address_bits=address_bits)), "access": Out(access_signature(address_bits))}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        axi, access = self.axi, self.access

        address_taken, data_taken = Signal(), Signal()
        m.d.comb += [
            axi.awready.eq(~address_taken),
            axi.wready.eq(~data_taken),
            access.write.eq(address_taken & data_taken & ~axi.bvalid),
        ]
        with m.If(axi.awvalid & axi.awready):
            m.d.sync += [address_taken.eq(1), access.write_address.eq(axi.awaddr)]
        with m.If(axi.wvalid & axi.wready):
            m.d.sync += [data_taken.eq(1), access.write_data.eq(axi.wdata), access.write_strobe.eq(axi.wstrb)]
        with m.If(axi.bready):
            m.d.sync += axi.bvalid.eq(0)
        with m.If(access.write):
            m.d.sync += [
                address_taken.eq(0),
                data_taken.eq(0),
                axi.bvalid.eq(1),
                axi.bresp.eq(Mux(access.write_error, Response.SLVERR, Response.OKAY)),
            ]

        read_taken = Signal()
        m.d.comb += [axi.arready.eq(~read_taken), access.read.eq(read_taken & ~axi.rvalid)]
        with m.If(axi.arvalid & axi.arready):
            m.d.sync += [read_taken.eq(1), access.read_address.eq(axi.araddr)]
        with m.If(axi.rready):
            m.d.sync += axi.rvalid.eq(0)
        with m.If(access.read):
            m.d.sync += [
                read_taken.eq(0),
                axi.rvalid.eq(1),
                axi.rdata.eq(Mux(access.read_error, 0, access.read_data)),
                axi.rresp.eq(Mux(access.read_error, Response.SLVERR, Response.OKAY)),
            ]
        return m
