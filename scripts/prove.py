"""`kvnode prove`: the proofs, one line a property."""

from concurrent.futures import ThreadPoolExecutor

import click

from hw.formal import Bounded, Guard, Outcome, Property, Verdict, all_guards, choose, prove, without

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
        ctx.exit(_remove_guards({p.name: p for p in chosen}, fresh=fresh))
    good = True
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for p, outcome in zip(chosen, pool.map(lambda p: prove(p, fresh=fresh), chosen), strict=True):
            click.echo(f"{p.name:{width}}  {_line(p, outcome)}")
            good &= outcome.good
    if not good:
        ctx.exit(1)


def _remove_guards(chosen: dict[str, Property], *, fresh: bool) -> int:
    """Print a line for each guard of `chosen`, and return the exit status: 1 unless all are needed."""
    guards = [guard for guard in all_guards() if guard.needs in chosen]
    width = max((len(guard.name) for guard in guards), default=0)

    def attempt(guard: Guard) -> Outcome:
        return prove(without(guard, chosen[guard.needs]), fresh=fresh)

    idle = 0
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for guard, outcome in zip(guards, pool.map(attempt, guards), strict=True):
            needed = guard.needed(outcome)
            result = "fails without it" if needed else f"{outcome.verdict.upper()} WITHOUT IT"
            click.echo(f"{guard.name:{width}}  {guard.needs} {result}")
            idle += not needed
    return min(idle, 1)


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
