"""Every command and every Python example of the documents runs, and prints what the documents say.

In README.md and docs/*.md, the blocks of a page are executed in their order, in one temporary folder a page:

- ```console: a line that starts with `$ ` is a command; the lines below are its output, `...` standing for any text.
- An indented block: a line that starts with `kvnode ` or `make ` is a command.
- ```python: executed, in one namespace a page.
- ```toml: a file for the commands below, if its first line is a comment with a name.

`kvnode` commands run in this process. Shell blocks of any other kind are not allowed, so that nothing escapes;
ELSEWHERE lists what is not run here.
"""

import contextlib
import doctest
import io
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from scripts import cli

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LANGUAGES = {"console", "python", "toml", "text", "json", ""}
BENCH = "starts a simulator; tests/hw/test_verify_page.py shows that it finds its tests, and tests/hw runs them"
ELSEWHERE = {
    "make run": "sets up an environment, then replays a trace; tests/replay does the latter",
    "make test": "runs this test",
    "kvnode trace generate -o busy.jsonl.gz --requests 1000000 --set arrivals_per_second=283": (
        "takes ten seconds; tests/trace covers the generator with fewer requests"
    ),
    "kvnode synth cam crc32c csr": "takes two minutes; tests/hw/test_synth.py synthesises less",
    "kvnode prove": "proves for minutes what tests/hw/test_prove.py proves one by one",
    ".venv/bin/pytest tests/hw/test_crc32c.py -k test_bench": BENCH,
    "COCOTB_TEST_FILTER=full_rate .venv/bin/pytest 'tests/hw/test_crc32c.py::test_bench[random-16]'": BENCH,
    "KVNODE_SEED=7 KVNODE_WAVES=1 .venv/bin/pytest -m '' -s 'tests/hw/test_crc32c.py::test_bench[random-16]'": BENCH,
}
"""Commands that the documents show and this test does not run, by exact text, each with the reason."""


def blocks(page: Path) -> Iterator[Token]:
    """Fenced and indented blocks of a page, also those inside lists."""
    tokens = MarkdownIt().parse(page.read_text(encoding="utf-8"))
    return (token for token in tokens if token.type in ("fence", "code_block"))


def language(block: Token) -> str:
    return "indented" if block.type == "code_block" else block.info.split(" ")[0]


def commands(block: Token) -> list[tuple[str, str | None]]:
    """(command, expected output; None for any)."""
    lines = block.content.splitlines()
    if language(block) == "indented":
        return [(line.strip(), None) for line in lines if line.startswith(("kvnode ", "make "))]
    if language(block) != "console":
        return []
    found: list[tuple[str, str | None]] = []
    for line in lines:
        if line.startswith("$ "):
            found.append((line[2:], ""))
        else:
            command, output = found[-1]
            found[-1] = command, f"{output}{line}\n"
    return found


def run(command: str, expected: str | None) -> None:
    """Run a `kvnode` command here; compare what it prints."""
    program, *arguments = shlex.split(command)
    assert program in ("kvnode", ".venv/bin/kvnode"), f"{command}: neither a kvnode command nor listed in ELSEWHERE"
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        status = cli.run(arguments)
    assert status == 0, f"$ {command}\n{printed.getvalue()}"
    if expected:
        options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        assert doctest.OutputChecker().check_output(expected, printed.getvalue(), options), printed.getvalue()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which a page's blocks run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples(page: Path, folder: Path) -> None:
    namespace: dict[str, object] = {}
    for block in blocks(page):
        if language(block) == "python":
            first = block.map[0] + 1 if block.map else 0
            exec(compile("\n" * first + block.content, str(page), "exec"), namespace)
        elif language(block) == "toml" and (name := re.match(r"# (\w+\.toml)\n", block.content)):
            (folder / name[1]).write_text(block.content, encoding="utf-8")
        for command, expected in commands(block):
            if command not in ELSEWHERE:
                run(command, expected)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_blocks_are_of_known_kinds(page: Path) -> None:
    kinds = {language(block) for block in blocks(page)} - {"indented"}
    assert {kind for kind in kinds if not kind.startswith("{")} <= LANGUAGES


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_in_sentences_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(re.findall(r"`kvnode\s+([a-z]+)", text)) <= cli.COMMANDS.keys()
    assert set(re.findall(r"`make\s+([a-z]+)", text)) <= set(targets)


def test_commands_that_run_elsewhere_are_still_shown() -> None:
    shown = {command for page in PAGES for block in blocks(page) for command, _ in commands(block)}
    assert shown >= ELSEWHERE.keys()


@pytest.mark.usefixtures("folder")
def test_a_wrong_example_is_noticed() -> None:
    run("kvnode trace generate -o t --requests 5", "t: 5 requests, seed ...\n")
    for command, output in (
        ("kvnode trace generate -o t --requests 5", "t: 6 requests, seed ...\n"),
        ("kvnode trace info gone", None),
        ("true", None),
    ):
        with pytest.raises(AssertionError):
            run(command, output)
