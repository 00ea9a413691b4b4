"""A report as one HTML file: no scripts, no network, light and dark, screen and paper."""

from dataclasses import dataclass, field
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

_ENVIRONMENT = Environment(
    loader=FileSystemLoader(Path(__file__).parent),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


@dataclass(frozen=True, kw_only=True)
class Plot:
    """A drawing, and one sentence on how to read it."""

    title: str
    svg: str
    reading: str


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of a table: a name, its values, their unit, what it is. ``strong`` catches the eye."""

    name: str
    values: list[str]
    unit: str
    definition: str
    strong: bool = False


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows under a title; ``columns`` head the values where there are several."""

    title: str
    rows: list[Row]
    note: str = ""
    columns: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Page:
    """The whole report, in the order in which it is read."""

    kind: str
    """What made it, for example `kvnode replay`."""
    title: str
    alerts: list[str]
    """What went wrong, in words."""
    headline: list[tuple[str, str]]
    """Label and figure of what matters most."""
    facts: list[tuple[str, str]]
    """What was run."""
    command: str
    plots: list[Plot]
    tables: list[Table]

    def html(self) -> str:
        """The page as text."""
        return _ENVIRONMENT.get_template("report.html.j2").render(page=self)
