"""The documents build without a warning, and their generated tables are complete."""

import html
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from hw.params import PRESETS
from hw.params.load import names
from hw.params.protocol import PRECEDENCE, Opcode, Status
from hw.rdl import register_map
from hw.rdl.cheader import RECORDS
from hw.rdl.registers import REQUESTER
from pymodel.spec.slice import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def sphinx(source: Path, out: Path) -> subprocess.CompletedProcess[str]:
    """Build HTML; a warning is an error."""
    arguments = ["-W", "--keep-going", "-q", "-b", "html", "-c", str(DOCS), "-d", str(out / "trees")]
    command = [sys.executable, "-m", "sphinx", *arguments, str(source), str(out / "html")]
    return subprocess.run(
        command, check=False, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("docs")
    result = sphinx(DOCS, out)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    return out / "html"


def cells(page: Path) -> list[list[str]]:
    """The rows of all tables of a page, as text."""
    rows = re.findall(r"<tr.*?</tr>", page.read_text(encoding="utf-8"), re.DOTALL)
    return [
        [
            html.unescape(re.sub(r"<[^>]+>", "", cell)).strip()
            for cell in re.findall(r"<t[dh].*?</t[dh]>", row, re.DOTALL)
        ]
        for row in rows
    ]


def test_every_page_is_built(built: Path) -> None:
    assert {page.stem for page in DOCS.glob("*.md")} <= {page.stem for page in built.glob("*.html")}


def test_no_page_is_listed_twice(built: Path) -> None:
    index = (built / "index.html").read_text(encoding="utf-8")
    article = re.search(r"<article.*</article>", index, re.DOTALL)
    assert article
    listed = re.findall(r'href="(\w[\w-]*)\.html', article[0])
    assert "theory" in listed and "core" in listed
    assert len(listed) == len(set(listed))
    assert "Copyright" not in index  # it would have no name


def test_parameters_are_listed_with_every_preset(built: Path) -> None:
    rows = {row[0]: row for row in cells(built / "parameters.html") if row}
    assert {name for name, _ in names()} <= rows.keys()
    assert ["parameter", *PRESETS] == rows["parameter"][: 1 + len(PRESETS)]
    assert rows["tables.lookup_keys"] == [
        "tables.lookup_keys",
        "4",
        "256",
        "256",
        "1 to 4,096",
        "",
        "keys of one LOOKUP",
    ]


def test_registers_are_listed_with_every_field(built: Path) -> None:
    rows = [row for row in cells(built / "registers.html") if len(row) == 7 and row[0] != "offset"]
    one_ring = [register for register in register_map(REQUESTER).values() if not register.index]
    listed = [*register_map().values(), *one_ring]
    assert [row[1] for row in rows if row[1]] == [register.name for register in listed]
    assert [row[3] for row in rows] == [f.name for register in listed for f in register.fields]
    assert ["0x08", "CONTROL", "0", "start", "pulse", "0x0"] in [row[:6] for row in rows]


def test_records_are_listed_with_every_field(built: Path) -> None:
    rows = [row for row in cells(built / "requester.html") if len(row) == 3 and row[0].isdecimal()]
    assert rows == [
        [str(at), name, str(record.fields[name])] for record in RECORDS.values() for name, at in record.offsets.items()
    ]


def test_statuses_and_commands_are_listed(built: Path) -> None:
    rows = [row for row in cells(built / "specification.html") if row and row[0].isdecimal()]
    assert [row for row in rows if row[1] in Status.__members__] == [[str(s.value), s.name, s.meaning] for s in Status]
    functions = [(COMMANDS[o].__module__.rpartition(".")[2], COMMANDS[o].__name__) for o in Opcode]
    listed = [row[:3] for row in rows if row[1] in Opcode.__members__]
    assert listed == [[str(o.value), o.name, ".".join(f)] for o, f in zip(Opcode, functions, strict=True)]


def test_refusals_are_listed_in_order(built: Path) -> None:
    text = re.sub(r"<[^>]+>", "", (built / "specification.html").read_text(encoding="utf-8"))
    assert ", ".join(s.name for s in PRECEDENCE) + ", then any other." in text


def test_every_invariant_without_a_clock_is_listed_with_its_checks(built: Path) -> None:
    rows = [row for row in cells(built / "specification.html") if len(row) == 2 and row[0].isdecimal()]
    assert [int(number) for number, _ in rows] == list(range(1, 13))


def test_the_statuses_of_a_command_are_those_that_it_can_end_with(built: Path) -> None:
    rows = [row for row in cells(built / "specification.html") if len(row) == 2 and row[0] in Opcode.__members__]
    listed = {
        Opcode[row[0]]: {Status[word] for word in re.findall(r"\w+", row[1]) if word in Status.__members__}
        for row in rows
    }
    always = {Status.INVALID, Status.UNAVAILABLE, Status.DENIED}
    reachable = runpy.run_path(str(ROOT / "tests" / "spec" / "specbench.py"))["REACHABLE"]
    assert {o: statuses - always for o, statuses in listed.items()} == {o: reachable[o] - always for o in Opcode}


def test_a_fault_in_a_page_stops_the_build(tmp_path: Path) -> None:
    faults = {
        "```{generated} nothing\n```": "no table 'nothing'",
        "[gone](gone.md)": "cross-reference target not found: 'gone.md'",
        "```{toctree}\nmissing\n```": "nonexisting document 'missing'",
    }
    (tmp_path / "index.md").write_text("# Page\n\n" + "\n\n".join(faults), encoding="utf-8")
    result = sphinx(tmp_path, tmp_path / "out")
    assert result.returncode != 0
    assert [message for message in faults.values() if message not in result.stderr] == []
