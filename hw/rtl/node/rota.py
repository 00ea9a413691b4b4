"""Whose turn it is, where partitions are isolated."""

from typing import Any

from amaranth import Const, Module, Mux, ResetInserter, Shape, Signal, Value
from amaranth.hdl import ShapeLike, ValueLike
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from hw.params import Params


def turn_layout(params: Params) -> data.StructLayout:
    """Return the layout of what is known of a turn.

    - `share`: whose it is: a partition's, or, one number higher than all of these, the house's.
    - `left`: cycles that are left of it, this one among them.
    - `memory`: bursts may begin.
    - `ends`: this is the last cycle.
    """
    return data.StructLayout(
        {"share": bits_for(params.shares), "left": bits_for(params.times.turn), "memory": 1, "ends": 1}
    )


def rota_member(params: Params) -> dict[str, wiring.Member]:
    """Return the member by which a component is told the turn: none where partitions are not isolated."""
    return {"rota": In(turn_layout(params))} if params.strict else {}


def pass_rota(m: Module, outer: wiring.Component, inner: wiring.Component) -> None:
    """Tell a part of a component the turn, where there are any."""
    if hasattr(outer, "rota"):
        m.d.comb += inner.rota.eq(outer.rota)


class Turn:
    """What a component makes of its member `rota`; where partitions are not isolated, it is always everybody's.

    Ports are numbered as everywhere: port i is of share i modulo the shares.
    """

    def __init__(self, params: Params, component: wiring.Component):
        self._params = params
        self.now: Any = component.rota if params.strict else None

    def only(self, value: Value, number: int) -> Value:
        """`value`, in turns of the share of `number`, a port or a slot."""
        if self.now is None:
            return value
        return value & (self.now.share == number % self._params.shares)

    def house(self, value: Value) -> Value:
        """`value`, in turns of the house."""
        return value if self.now is None else value & (self.now.share == self._params.shares)

    def lasts(self, value: Value, cycles: ValueLike) -> Value:
        """`value`, if the turn goes on for so many cycles."""
        return value if self.now is None else value & (self.now.left >= cycles)

    def memory(self, value: Value, number: int) -> Value:
        """`value`, while a port may begin bursts."""
        return value if self.now is None else self.only(value, number) & self.now.memory

    def counted(self, value: Value, number: int) -> Value:
        """`value` in turns of the share of `number`, else 0."""
        return value if self.now is None else Mux(self.now.share == number % self._params.shares, value, 0)

    def begin_anew(self, m: Module, state: Signal) -> None:
        """What one turn has left in `state`, the next does not see."""
        if self.now is not None:
            with m.If(self.now.ends):
                m.d.sync += state.eq(state.init)

    def anew(self, component: wiring.Component) -> Any:
        """A component that begins each turn as after reset."""
        return component if self.now is None else ResetInserter(self.now.ends)(component)

    def bank(self, shape: ShapeLike, *, name: str, init: int = 0) -> Any:
        """Return registers that can be indexed by share, and by the house's number."""
        if self.now is None:
            return [Signal(shape, name=name, init=init)]
        count, bits = self._params.shares + 1, max(1, Shape.cast(shape).width)
        return Signal(data.ArrayLayout(bits, count), name=name, init=[init] * count)

    def mine(self, bank: Any) -> Any:
        """Return of such registers that of whose turn it is."""
        return bank[0] if self.now is None else bank[self.now.share]

    def each(self, shape: ShapeLike, *, name: str, init: int = 0) -> Any:
        """Return a register of whose turn it is: there is one for each share, and one for the house."""
        return self.mine(self.bank(shape, name=name, init=init))


class Rota(wiring.Component):
    """Turns of `turn` cycles for one partition after the other, and one of `house` cycles for the registers.

    Parameters
    ----------
    params
        Section `rota`; the times are `params.times`.

    Interface
    ---------
    turn : Out, `turn_layout(params)`

    Latency and throughput
    ----------------------
    A partition has `turn` of every `partitions` x `turn` + `house` cycles; a turn that is not used stays unused.

    Ordering and stalls
    -------------------
    Nothing stops it, and nothing that happens changes it.

    Reset and errors
    ----------------
    Reset begins with the first partition.

    Invariants
    ----------
    Part of 12.

    Counters
    --------
    None.
    """

    def __init__(self, params: Params):
        self._params = params
        super().__init__({"turn": Out(turn_layout(params))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        times, shares = self._params.times, self._params.shares
        share, left = Signal.like(self.turn.share), Signal.like(self.turn.left, init=times.turn)
        house, last = Const(shares, len(share)), Signal()
        m.d.comb += [
            last.eq(left == 1),
            self.turn.share.eq(share),
            self.turn.left.eq(left),
            self.turn.memory.eq((share != house) & (left > times.guard)),
            self.turn.ends.eq(last),
        ]
        m.d.sync += left.eq(left - 1)
        with m.If(last):
            m.d.sync += [
                share.eq(Mux(share == house, 0, share + 1)),
                left.eq(Mux(share + 1 == house, times.house, times.turn)),
            ]
        return m
