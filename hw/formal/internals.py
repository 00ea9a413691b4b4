"""The registers inside a component, for claims that carry an induction."""

from amaranth.hdl import Fragment, Signal
from amaranth.lib import wiring


def open_up(component: wiring.Component) -> tuple[Fragment, dict[str, Signal]]:
    """Return `component` elaborated, to be used as the submodule in its place, and its registers by name.

    The registers of a submodule are called `submodule.register`.
    """
    fragment = Fragment.get(component, None)
    return fragment, _registers(fragment)


def _registers(fragment: Fragment) -> dict[str, Signal]:
    registers = {
        signal.name: signal
        for domain, statements in fragment.statements.items()
        if domain != "comb"
        for statement in statements
        for signal in statement._lhs_signals()
    }
    for submodule, name, _ in fragment.subfragments:
        registers |= {f"{name}.{inner}": signal for inner, signal in _registers(submodule).items()}
    return registers
