"""`kvnode bench`: one benchmark, its figures beside their targets and limits."""

import importlib
import json
import pkgutil
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict
from inspect import signature
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from hw.params import InputError
from scripts import benches
from scripts.benches import Result, Sheet
from scripts.outputs import Folder, complete_files
from scripts.provenance import git_rev

DIGITS = 18
"""That a number has at most."""

NAMES = sorted(module.name for module in pkgutil.iter_modules(benches.__path__))


@click.command()
@click.argument("name", type=click.Choice(NAMES))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
@click.option("--trace", metavar="FILE", help="Trace to run on (default: an invented one).")
@click.option("--set", "settings", metavar="K=N", multiple=True, help="Run longer or shorter; may be repeated.")
@click.option("--out", type=Folder(), help="Folder to write the figures to, and the tables and plots if it has any.")
@click.pass_context
def bench(
    ctx: click.Context, name: str, *, as_json: bool, trace: str | None, settings: tuple[str, ...], out: Path | None
) -> None:
    """Run benchmark NAME; exit with 1 if a figure misses its target."""
    run = importlib.import_module(f"scripts.benches.{name}").run
    lengths = _lengths(run, settings)
    with complete_files(out) if out else nullcontext() as folder:
        result: Result = run(trace, **lengths)
        shown = {"figures": [asdict(figure) for figure in result.figures], "input": result.input, "seed": result.seed}
        report = {"name": name, **shown, "params_hash": result.params_hash, "git_rev": git_rev()}
        if folder:
            files = {f"{name}.json": json.dumps(report, indent=2) + "\n", **result.plots}
            files |= {f"{sheet.name}.md": sheet.markdown for sheet in result.sheets}
            for file, text in files.items():
                (folder / file).write_text(text, encoding="utf-8")
    if as_json:
        click.echo(json.dumps(report))
    else:
        console = Console(markup=False, emoji=False)  # the title may have a file's name
        console.print(_table(report))
        for sheet in result.sheets:
            console.print(_sheet(sheet))
    if any(figure.ok is False for figure in result.figures):
        ctx.exit(1)


def _lengths(run: Callable[..., Result], settings: tuple[str, ...]) -> dict[str, int]:
    """Return what was set of the benchmark's own lengths, the keywords of its `run`."""
    known = [name for name, parameter in signature(run).parameters.items() if parameter.kind is parameter.KEYWORD_ONLY]
    lengths = {}
    for text in settings:
        name, _, value = text.partition("=")
        if name not in known or not value.isdecimal():
            raise InputError(f"--set {text}: expected K=N with K one of {', '.join(known) or 'none'} and a number N")
        least = 0 if name == "seed" else 1
        if len(value) > DIGITS or int(value) < least:
            raise InputError(f"--set {name}: expected {least} or more, of {DIGITS} digits at most")
        lengths[name] = int(value)
    return lengths


def _sheet(sheet: Sheet) -> Table:
    table = Table(title=sheet.title, caption=sheet.note, padding=(0, 0))
    for i, column in enumerate(sheet.columns):
        table.add_column(column, justify="right" if i else "left")
    for row in sheet.rows:
        table.add_row(*row)
    return table


def _table(report: dict[str, Any]) -> Table:
    table = Table(title=f"{report['name']}: {report['input']}", caption=f"parameters {report['params_hash']}")
    for column in ("figure", "value", "unit", "target", "limit", "ok"):
        table.add_column(column, justify="right" if column in ("value", "target", "limit") else "left")
    for figure in report["figures"]:
        numbers = ("" if figure[key] is None else f"{figure[key]:,.4g}" for key in ("value", "target", "limit"))
        value, target, limit = numbers
        ok = {True: "yes", False: "NO", None: ""}[figure["ok"]]
        table.add_row(figure["name"], value, figure["unit"], target, limit, ok)
    return table
