"""What the documents name exists."""

import re
from pathlib import Path

import pytest

from hw.formal import all_properties

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_named_tests_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert [file for file in re.findall(r"`(tests/[a-z_0-9/]+\.py)", text) if not (ROOT / file).exists()] == []
    for file, name in re.findall(r"(tests/[\w/]+\.py)::(\w+)", text):
        assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8"), f"{file}::{name}"


def test_every_failure_has_a_test() -> None:
    items = (ROOT / "docs" / "failures.md").read_text(encoding="utf-8").split("\n- ")[1:]
    assert len(items) > 15
    assert [item for item in items if "::test_" not in item] == []


@pytest.mark.parametrize("page", ["failures.md", "prove.md"])
def test_named_proofs_exist(page: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    proofs = [line for line in text.splitlines() if line.startswith(("  Proof:", "| `"))]
    named = {name for line in proofs for name in re.findall(r"`(\w+\.\w+)`", line)}
    assert named and named <= all_properties().keys()


def test_every_module_of_the_specification_is_listed() -> None:
    page = (ROOT / "docs" / "specification.md").read_text(encoding="utf-8")
    modules = {path.name for path in (ROOT / "pymodel" / "spec").glob("*.py")} - {"__init__.py"}
    assert {name for name in modules if f"`{name}`" not in page} == set()
