"""Bursts of a channel in an order that spares its rows: one does not follow another in the same bank."""

from typing import Any

from amaranth import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hw.params import Params
from hw.params.striping import Striping
from hw.rtl.shared import shared


@shared
class Rows(wiring.Component):
    """Says which ports' bursts had better be let out next, by the bank of the one before.

    A bank of a DRAM has one row open. Bursts of one port lie behind each other, and seldom need another row of the same
    bank at once; those of several ports do, now and then, and the second of them waits until the row is closed and the
    other one open. So such a burst lets another port's pass.

    Parameters
    ----------
    params
        `memory.banks`, `memory.row_bytes`, `tables.ports`, and what `hw.params.striping` needs.

    Interface
    ---------
    asking : In, a bit a port
        Ports that have a burst.
    addresses : In, one a port
        Of these bursts.
    patient : In(1)
        There is time to wait for a better one.
    take, chosen : In
        The burst of a port is let out.
    may : Out, a bit a port
        Bursts that may be: of `asking`, those that do not follow another row of their bank, if there are any.

    Latency and throughput
    ----------------------
    In the same cycle.

    Ordering and stalls
    -------------------
    A burst lets one other pass at most; while `patient` it waits for that one, else it goes if nothing else asks.

    Reset and errors
    ----------------
    After reset the row of address 0 is taken to be open. Rows that are others than the parameters say cost time only.

    Invariants
    ----------
    Part of 10: no port starves, given that `patient` falls at last while nothing is let out.

    Counters
    --------
    None.
    """

    def __init__(self, params: Params):
        self._params = params
        super().__init__(_members(params))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        last = Signal(Striping(self._params).address_bits)
        passed = Signal.like(self.asking)
        clashes, better = Signal.like(self.asking), Signal.like(self.asking)
        m.d.comb += [
            clashes.eq(Cat(self._clash(last, address) for address in self.addresses) & ~passed),
            better.eq(self.asking & ~clashes),
            self.may.eq(Mux(better.any() | self.patient, better, self.asking)),
        ]
        with m.If(self.take):
            m.d.sync += [
                last.eq(Array(self.addresses)[self.chosen]),
                passed.eq((passed | (self.asking & clashes)) & ~(1 << self.chosen)),
            ]
        return m

    def _clash(self, one: Value, other: Value) -> Value:
        """Whether two bytes are in different rows of a bank."""
        low, high = exact_log2(self._params.memory.row_bytes), _below_row(self._params)
        return (one[low:high] == other[low:high]) & (one[high:] != other[high:])


def rows_of(m: Module, params: Params) -> Any:
    """Give a lane its `Rows`, or, where there is nothing to spare, signals in their place by which all may be let out.

    There is nothing with one bank, or one row in each; and not in strict isolation, where the bursts of one partition
    would tell the next.
    """
    if params.memory.banks > 1 and _below_row(params) < Striping(params).address_bits and not params.strict:
        m.submodules.rows = rows = Rows(params)
        return rows
    plain = wiring.Signature(_members(params)).create()
    m.d.comb += plain.may.eq(plain.asking)
    return plain


def _members(params: Params) -> dict[str, Any]:
    ports = params.tables.ports
    return {
        "asking": In(ports),
        "addresses": In(Striping(params).address_bits).array(ports),
        "patient": In(1),
        "take": In(1),
        "chosen": In(range(max(2, ports))),
        "may": Out(ports),
    }


def _below_row(params: Params) -> int:
    """Bits of an address below those that say which row of its bank it is in."""
    return exact_log2(params.memory.row_bytes) + exact_log2(params.memory.banks)
