"""AMBA AXI interfaces, with the signal names of the AXI specification (ARM IHI 0022), from the manager's view."""

from amaranth import Value
from amaranth.lib import enum, wiring
from amaranth.lib.wiring import In, Out


class Response(enum.Enum, shape=2):  # type: ignore[call-arg]
    """BRESP and RRESP."""

    OKAY = 0
    EXOKAY = 1
    SLVERR = 2
    DECERR = 3


def is_error(response: Value) -> Value:
    """Return whether a response is SLVERR or DECERR."""
    return (response == Response.SLVERR) | (response == Response.DECERR)


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


class Burst(enum.Enum, shape=2):  # type: ignore[call-arg]
    """AWBURST and ARBURST."""

    FIXED = 0
    INCR = 1
    WRAP = 2


def axi4_write(*, address_bits: int, data_bits: int, id_bits: int, user_bits: int) -> wiring.Signature:
    """Return the signature of the write channels of AXI4; what is left out has its default (IHI 0022, A9.3)."""
    user = {"wuser": Out(user_bits)} if user_bits else {}
    return wiring.Signature(
        {
            "awid": Out(id_bits),
            "awaddr": Out(address_bits),
            "awlen": Out(8),
            "awsize": Out(3),
            "awburst": Out(Burst),
            "awvalid": Out(1),
            "awready": In(1),
            "wdata": Out(data_bits),
            "wstrb": Out(data_bits // 8),
            "wlast": Out(1),
            **user,
            "wvalid": Out(1),
            "wready": In(1),
            "bid": In(id_bits),
            "bresp": In(Response),
            "bvalid": In(1),
            "bready": Out(1),
        }
    )


def axi4_read(*, address_bits: int, data_bits: int, id_bits: int, user_bits: int) -> wiring.Signature:
    """Return the signature of the read channels of AXI4; what is left out has its default (IHI 0022, A9.3)."""
    user = {"ruser": In(user_bits)} if user_bits else {}
    return wiring.Signature(
        {
            "arid": Out(id_bits),
            "araddr": Out(address_bits),
            "arlen": Out(8),
            "arsize": Out(3),
            "arburst": Out(Burst),
            "arvalid": Out(1),
            "arready": In(1),
            "rid": In(id_bits),
            "rdata": In(data_bits),
            "rresp": In(Response),
            "rlast": In(1),
            **user,
            "rvalid": In(1),
            "rready": Out(1),
        }
    )


def axi4(write: wiring.Signature, read: wiring.Signature) -> wiring.Signature:
    """Return the signature of AXI4 from those of its halves, which may have IDs of different widths."""
    return wiring.Signature({**write.members, **read.members})
