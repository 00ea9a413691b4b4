"""`kvnode bench`: one benchmark, its figures beside their targets and limits."""

import importlib
import json
import pkgutil
from collections.abc import Callable
from dataclasses import asdict
from inspect import signature
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from hw.params import InputError, load_params
from scripts import benches
from scripts.benches import Result
from scripts.provenance import git_rev

NAMES = sorted(module.name for module in pkgutil.iter_modules(benches.__path__))


@click.command()
@click.argument("name", type=click.Choice(NAMES))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
@click.option("--trace", metavar="FILE", help="Trace to run on (default: an invented one).")
@click.option("--set", "settings", metavar="K=N", multiple=True, help="Run longer or shorter; may be repeated.")
@click.pass_context
def bench(ctx: click.Context, name: str, as_json: bool, trace: str | None, settings: tuple[str, ...]) -> None:
    """Run benchmark NAME; exit with 1 if a figure misses its target."""
    run = importlib.import_module(f"scripts.benches.{name}").run
    result: Result = run(trace, **_lengths(run, settings))
    report = {"name": name, **asdict(result), "params_hash": load_params().hash, "git_rev": git_rev()}
    if as_json:
        click.echo(json.dumps(report))
    else:
        Console(markup=False, emoji=False).print(_table(report))  # the title may have a file's name
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
        lengths[name] = int(value)
    return lengths


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
