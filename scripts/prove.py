"""`kvnode prove`: the proofs, one line a property."""

from concurrent.futures import ThreadPoolExecutor

import click

from hw.formal import Bounded, Outcome, Property, Verdict, choose, prove
from hw.formal.guards import GUARDS, Guard, survives

AT_ONCE = 2
"""Proofs at a time; each is a chain of processes that use one core."""


@click.command("prove")
@click.argument("properties", metavar="[PROPERTY]...", nargs=-1)
@click.option("--fresh", is_flag=True, help="Prove again what an earlier run has proved.")
@click.option("--guards", "only_guards", is_flag=True, help="Remove guards of the hardware, and see the proofs fail.")
@click.option("--list", "only_list", is_flag=True, help="Only say what each property shows.")
@click.pass_context
def command(ctx: click.Context, properties: tuple[str, ...], fresh: bool, only_guards: bool, only_list: bool) -> None:
    """Prove each PROPERTY, or all of a group (default: all); exit with 1 unless all hold and all covers are reached."""
    chosen = choose(properties)
    width = max(len(p.name) for p in chosen)
    if only_list:
        for p in chosen:
            click.echo(f"{p.name:{width}}  {p.shows}")
        return
    if only_guards:
        ctx.exit(_remove_guards([guard for guard in GUARDS if guard.needs in {p.name for p in chosen}]))
    good = True
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for p, outcome in zip(chosen, pool.map(lambda p: prove(p, fresh=fresh), chosen), strict=True):
            click.echo(f"{p.name:{width}}  {_line(p, outcome)}")
            good &= outcome.good
    if not good:
        ctx.exit(1)


def _remove_guards(guards: list[Guard]) -> int:
    """Print a line a guard, and return the exit status: 1 if a property holds without its guard."""
    width = max((len(guard.name) for guard in guards), default=0)
    survivors = 0
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for guard, survived in zip(guards, pool.map(survives, guards), strict=True):
            click.echo(f"{guard.name:{width}}  {guard.needs} {'PROVED WITHOUT IT' if survived else 'fails without it'}")
            survivors += survived
    return min(survivors, 1)


def _line(p: Property, outcome: Outcome) -> str:
    time = "cached" if outcome.cached else f"{outcome.seconds:.1f} s"
    cover = "cover reached" if outcome.covered else f"COVER NOT REACHED {_reach(p)}"
    if outcome.verdict is Verdict.PROVED:
        result = f"proved ({p.method}, {time}); {cover}"
    elif isinstance(p.method, Bounded) and outcome.verdict is Verdict.BOUNDED:
        result = f"bounded to {p.method.depth} ({p.method.reason}, {time}); {cover}"
    else:
        result = f"{outcome.verdict}: {outcome.detail} ({p.method}, {time})"
        if outcome.trace:
            result += f"; waves: {outcome.trace}"
    return result if outcome.good else f"{result}; again: kvnode prove {p.name}"


def _reach(p: Property) -> str:
    return f"within {p.cover} cycles" if isinstance(p.cover, int) else "by its story"
