"""AMBA AXI interfaces, with the signal names of the AXI specification (ARM IHI 0022), from the manager's view."""

from amaranth.lib import enum, wiring
from amaranth.lib.wiring import In, Out


class Response(enum.Enum, shape=2):  # type: ignore[call-arg]
    """BRESP and RRESP."""

    OKAY = 0
    EXOKAY = 1
    SLVERR = 2
    DECERR = 3


def axi4_lite(*, address_bits: int, data_bits: int = 32) -> wiring.Signature:
    """Return the signature of AXI4-Lite.

    One flat member a signal, so that ports of emitted Verilog are `PREFIX__awaddr`, ..., as other tools expect them.
    """
    return wiring.Signature(
        {
            "awaddr": Out(address_bits),
            "awprot": Out(3),
            "awvalid": Out(1),
            "awready": In(1),
            "wdata": Out(data_bits),
            "wstrb": Out(data_bits // 8),
            "wvalid": Out(1),
            "wready": In(1),
            "bresp": In(Response),
            "bvalid": In(1),
            "bready": Out(1),
            "araddr": Out(address_bits),
            "arprot": Out(3),
            "arvalid": Out(1),
            "arready": In(1),
            "rdata": In(data_bits),
            "rresp": In(Response),
            "rvalid": In(1),
            "rready": Out(1),
        }
    )
