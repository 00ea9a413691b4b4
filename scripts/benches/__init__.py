"""The benchmarks of `kvnode bench`: one module each, named as on the command line, with a `run(trace)`.

`run` takes the path of a trace or None and returns a `Result`. Its docstring says what is measured, against what. Its
keywords, if it has any, are numbers that `--set` changes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from hw.params import Params, load_params


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One measured number, what is asked of it, and what could at best be had."""

    name: str
    value: float
    unit: str
    target: float | None = None
    limit: float | None = None
    ok: bool | None = None  # None: nothing is asked of it

    @classmethod
    def at_most(cls, name: str, value: float, unit: str, target: float, limit: float | None = None) -> "Figure":
        """A figure that must not exceed its target."""
        return cls(name=name, value=value, unit=unit, target=target, limit=limit, ok=value <= target)

    @classmethod
    def at_least(cls, name: str, value: float, unit: str, target: float, limit: float | None = None) -> "Figure":
        """A figure that must reach its target."""
        return cls(name=name, value=value, unit=unit, target=target, limit=limit, ok=value >= target)


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """Figures side by side, for people: printed below the others, and `NAME.md` in the folder of `--out`."""

    name: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str

    @property
    def markdown(self) -> str:
        """The table with its note; all columns but the first are numbers."""
        rule = ["---", *("---:" for _ in self.columns[1:])]
        lines = [f"| {' | '.join(row)} |" for row in (self.columns, rule, *self.rows)]
        return "\n".join([f"# {self.title}", "", *lines, "", self.note, ""])


@dataclass(frozen=True, kw_only=True)
class Result:
    """What a benchmark found, and on what input.

    - `params`: of all that was measured, in order.
    - `sheets`, `plots`: what is shown beside the figures; plots are SVG, by name of file.
    """

    figures: list[Figure]
    input: str
    seed: int | None  # None: nothing was drawn
    params: Sequence[Params] = ()
    sheets: Sequence[Sheet] = ()
    plots: Mapping[str, str] = field(default_factory=dict)

    @property
    def params_hash(self) -> str:
        """The hash of the parameters: of several, that of all their hashes; of none, that of DEFAULT."""
        if not self.params:
            return load_params().hash
        first, *others = (params.hash for params in self.params)
        return sha256(" ".join([first, *others]).encode()).hexdigest()[: len(first)] if others else first
