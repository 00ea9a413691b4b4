"""Components that are emitted once, however many of them a design has."""

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, TypeVar

from amaranth import ClockSignal, Instance, ResetSignal, Signal, ValueLike
from amaranth.hdl import Const
from amaranth.hdl._ast import Assign
from amaranth.hdl._ir import Fragment  # what a transformer works on; neither has a public name
from amaranth.lib import wiring
from amaranth.lib.wiring import In

Shareable = TypeVar("Shareable", bound=type[wiring.Component])


def shared(component: Shareable) -> Shareable:
    """Let equal components of a class be instances of one module, wherever `Modules` is the platform.

    Equal are those of one class, built with equal arguments: these have to be hashable, and all that the component
    depends on. Its clock domain is `sync`, and it has registers. On any other platform nothing changes.
    """
    build: Callable[..., None] = component.__init__
    elaborate: Callable[[Any, object], Any] = component.elaborate

    @wraps(build)
    def build_noting_arguments(self: Any, *args: Any, **kwargs: Any) -> None:
        build(self, *args, **kwargs)
        self._arguments = (args, tuple(sorted(kwargs.items())))

    @wraps(elaborate)
    def elaborate_or_refer(self: Any, platform: object) -> Any:
        if isinstance(platform, Modules) and platform.top is not self and type(self) is component:
            return platform.instance(self, (component, self._arguments))
        return elaborate(self, platform)

    component.__init__ = build_noting_arguments
    component.elaborate = elaborate_or_refer
    return component


class Modules:
    """The platform that turns a design into modules: `NAME` and, of each kind of shared component, `NAME.CLASS`.

    - `top`: the component whose own module is being made.
    """

    def __init__(self, component: wiring.Component, name: str):
        self.top = component
        self._name = name
        self._modules = [(name, component)]
        self._names: dict[Any, str] = {}

    def fragments(self) -> Iterator[tuple[str, wiring.Component, Fragment]]:
        """Yield name, component and fragment of each module, the top first."""
        for name, top in self._modules:  # which grows meanwhile
            self.top = top
            yield name, top, give_resets(Fragment.get(top, self))

    def instance(self, component: wiring.Component, key: Any) -> Instance:
        """Return an instance of the module that all components of this `key` are."""
        if key not in self._names:
            kind = type(component).__name__
            others = sum(cls.__name__ == kind for cls, _ in self._names)
            self._names[key] = f"{self._name}.{kind}" + (f"_{others}" if others else "")
            self._modules.append((self._names[key], component))
        ports = {f"{'i' if member.flow is In else 'o'}_{port}": value for port, member, value in flat_ports(component)}
        instance = Instance(self._names[key], i_clk=ClockSignal(), i_rst=ResetSignal(), **ports)
        instance.add_statements("sync", Signal().eq(0))  # for ResetInserter; see `give_resets`
        return instance


def give_resets(fragment: Fragment) -> Fragment:
    """Connect the reset of each ResetInserter around a shared component to its instance, and return `fragment`.

    A ResetInserter adds a Switch on its reset to the statements of a fragment, also to those of an instance, where
    they would be ignored.
    """
    for part, _, _ in fragment.subfragments:
        give_resets(part)
    if isinstance(fragment, Instance):
        for mark, *resets in fragment.statements.values():
            if not isinstance(mark, Assign):
                raise TypeError(f"EnableInserter around {fragment.type}, expected nothing but ResetInserter")
            for switch in resets:
                reset, direction = fragment.ports["rst"]
                fragment.ports["rst"] = reset | switch.test, direction
        fragment.statements.clear()
    return fragment


def flat_ports(component: wiring.Component) -> Iterator[tuple[str, wiring.Member, ValueLike]]:
    """Yield name, member and value of every port; the constant `ready` of an always-ready stream is none."""
    for path, member, value in component.signature.flatten(component):
        if not isinstance(value, Const):
            yield "__".join(map(str, path)), member, value
