"""Dependencies run one way: what each part of the project may know of the others."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

MAY_KNOW: dict[str, set[str]] = {
    "hw.params": set(),
    "hw.kept": set(),
    "hw.rdl": {"hw.params"},
    "hw.rtl": {"hw.params", "hw.rdl"},
    "hw.synth": {"hw.params", "hw.kept", "hw.rtl"},
    "hw.tb": {"hw.params", "hw.rdl", "hw.rtl", "pymodel.spec", "pymodel.stimulus"},
    "hw.formal": {"hw.params", "hw.kept", "hw.rtl", "hw.tb"},
    "pymodel.spec": {"hw.params"},
    "pymodel.stimulus": {"hw.params", "pymodel.spec"},
    "pymodel.trace": {"hw.params"},
    "sw.driver": {"hw.params", "hw.rdl"},
}
"""Part to the parts that it may import. Only `scripts`, which knows all, is in none of them."""

TRANSPORTS = {
    "sw.driver.transport.specification": {"pymodel.spec", "pymodel.stimulus"},
    "sw.driver.transport.specified": {"pymodel.spec"},
    "sw.driver.transport.following": {"pymodel.spec"},
    "sw.driver.transport.verilator": {"hw.rtl", "hw.tb"},
}
"""Modules by which the driver reaches a model, or RTL that is simulated, and what they may know besides."""

TOOLS = {"amaranth", "cocotb"}
"""What nothing but `hw` needs."""


def part_of(module: str) -> str:
    """The part of the project that a module is in: its first two names."""
    return ".".join(module.split(".")[:2])


def imported(tree: ast.AST) -> Iterator[str]:
    """Every module that is imported, wherever that is written."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module and not node.level, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def wrong(module: str, tree: ast.AST) -> list[str]:
    """The imports of a module that its part may not have."""
    part = part_of(module)
    allowed = MAY_KNOW[part] | TRANSPORTS.get(module, set()) | {part}
    ours = [name for name in imported(tree) if name.split(".")[0] in {"hw", "pymodel", "sw", "scripts", "tests"}]
    foreign = [name for name in ours if part_of(name) not in allowed]
    tools = [name for name in imported(tree) if name.split(".")[0] in TOOLS and not module.startswith("hw.")]
    return foreign + tools


def modules() -> dict[str, Path]:
    """Every module of the project and its file, but for those of commands and tests."""
    files = (file.relative_to(ROOT) for top in ("hw", "pymodel", "sw") for file in (ROOT / top).rglob("*.py"))
    return {".".join(file.with_suffix("").parts).removesuffix(".__init__"): ROOT / file for file in files}


def test_every_part_is_known() -> None:
    assert {part_of(module) for module in modules()} - {"hw", "pymodel", "sw"} == MAY_KNOW.keys()


@pytest.mark.parametrize("part", MAY_KNOW)
def test_a_part_knows_only_what_it_may(part: str) -> None:
    mine = {module: file for module, file in modules().items() if part_of(module) == part}
    assert mine, "a part has modules"
    found = {module: wrong(module, ast.parse(file.read_text())) for module, file in mine.items()}
    assert not any(found.values()), {module: names for module, names in found.items() if names}


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("hw.rtl.node.slice", "from hw.tb.harness import Harness"),
        ("pymodel.spec.core", "def late():\n    from amaranth import Module"),
        ("sw.driver.client", "import pymodel.spec.core"),
        ("hw.params.params", "from scripts import cli"),
    ],
)
def test_what_a_part_may_not_know_is_found(module: str, text: str) -> None:
    assert wrong(module, ast.parse(text))
