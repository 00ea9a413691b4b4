"""Entry of the `kvnode` command: finds the subcommand, turns every error into one line and an exit status."""

import sys

try:
    import difflib
    import importlib
    import io
    import os
    import signal
    import traceback
    import warnings
    from collections.abc import Iterable

    import click

    from hw.params import InputError, KvnodeError
except KeyboardInterrupt:
    print("kvnode: interrupted", file=sys.stderr)
    sys.exit(130)

COMMANDS = {
    "bench": ("scripts.bench:bench", "One benchmark: its figures beside their targets and limits."),
    "emit": ("scripts.emit:emit", "Verilog of a block, and the map of its ports."),
    "prove": ("scripts.prove:command", "Prove the hardware's properties, one line each."),
    "replay": ("scripts.replay:command", "A trace through driver and backend, every byte compared; a report."),
    "synth": ("scripts.synth:synth", "LUTs, registers, memory bits and logic depth of blocks."),
    "trace": ("scripts.trace:trace", "Describe a trace, invent one, or compute its hit-rate curves."),
}
"""Subcommand to `module:attribute` and one line of help. A module is imported only when its command is asked for."""

CUT_SHORT = 128 + signal.SIGPIPE
"""Exit status when nobody reads standard output any more: what a shell reports of a program that SIGPIPE ends."""


class LazyGroup(click.Group):
    """A group whose subcommands are imported on demand."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, attribute = COMMANDS[cmd_name][0].split(":")
        try:
            command: click.Command = getattr(importlib.import_module(module), attribute)
        except ModuleNotFoundError as error:
            raise click.ClickException(
                f"`kvnode {cmd_name}` needs the Python package {error.name!r}: `make test` installs all packages"
            ) from error
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in self.list_commands(ctx)])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            raise click.UsageError(f"no command {args[0]!r}, did you mean {_nearest(args[0], COMMANDS)!r}?", ctx)
        return super().resolve_command(ctx, args)


@click.group(cls=LazyGroup, invoke_without_command=True)
@click.version_option(package_name="kvnode", message="%(prog)s %(version)s")
@click.pass_context
def kvnode(ctx: click.Context) -> None:
    """Co-design kit for a KV-cache memory node: specification, models, RTL and driver.

    KVNODE_TRACEBACK=1 in the environment shows where an error comes from.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def run(arguments: list[str]) -> int:  # noqa: PLR0911 (one way to end each)
    """Run the command line and return its exit status.

    0 done, 1 a check failed, 2 bad input or an output that cannot be written, 130 interrupted, 141 cut short because
    nobody reads standard output any more.

    A subcommand says what failed and then ends a failed check with `ctx.exit(1)`. With KVNODE_TRACEBACK=1 in the
    environment, an error of the package's own comes with its traceback.
    """
    try:
        # not `kvnode.main`: it ends a broken pipe with 1 and an interrupt with an empty line
        with kvnode.make_context("kvnode", list(arguments)) as ctx:
            kvnode.invoke(ctx)
        return 0
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as error:
        return _fail(_describe(error), 2)
    except KvnodeError as error:
        if os.environ.get("KVNODE_TRACEBACK") == "1":
            traceback.print_exc()
        return _fail(" ".join(str(error).splitlines()), 2 if isinstance(error, InputError) else 1)
    except BrokenPipeError:
        return CUT_SHORT
    except OSError as error:
        return _fail(f"{error.filename or 'output'}: {error.strerror or error}", 2)
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # rich ends a broken pipe with 1
            return CUT_SHORT
        raise
    except (click.Abort, EOFError, KeyboardInterrupt):
        return _fail("interrupted", 130)


def main() -> None:
    """Entry point of the installed script."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # file names may be no text
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _stop)
    status = run(sys.argv[1:])
    try:
        if sys.stdout:
            sys.stdout.flush()
    except OSError as error:
        if not isinstance(error, BrokenPipeError):  # else nobody reads on, and the command has done its work
            status = _fail(f"output: {error.strerror}", 2)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter tries again at its end
    sys.exit(status)


def _stop(number: int, _: object) -> None:
    """End, and clear temporary files away; without a word of what is half elaborated."""
    warnings.simplefilter("ignore")
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    sys.exit(_fail("terminated", 128 + number))


def _nearest(word: str, known: Iterable[str]) -> str:
    return difflib.get_close_matches(word, known, n=1, cutoff=0.0)[0]


def _describe(error: click.ClickException) -> str:
    """What was wrong, in one line, and where to look it up."""
    text = " ".join(error.format_message().split()).rstrip(".")
    if not isinstance(error, click.UsageError) or not error.ctx:
        return text
    if isinstance(error, click.NoSuchOption):
        known = [name for parameter in error.ctx.command.get_params(error.ctx) for name in parameter.opts]
        text = f"no option {error.option_name!r}, did you mean {_nearest(error.option_name, known)!r}?"
    return f"{text} (see `{error.ctx.command_path} --help`)"


def _fail(message: str, status: int) -> int:
    click.echo(f"kvnode: {message}", err=True)
    return status
