"""Parameters of an invented trace; the defaults were fitted to the public Mooncake conversation trace."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from hw.params.errors import InputError
from hw.params.section import Section, param
from pymodel.trace.request import BLOCK_TOKENS


def _share(default: float, doc: str) -> Any:
    return param(default, doc, low=0, high=1)


def _tokens(default: float, doc: str) -> Any:
    return param(default, doc, low=1, high=2**31, unit="tokens")


def _sigma(default: float, doc: str) -> Any:
    return param(default, doc, low=0, high=5)


@dataclass(frozen=True, kw_only=True)
class Workload(Section):
    """Multi-turn conversations behind one system prompt. Lengths and gaps are log-normal: a median and a sigma."""

    section: ClassVar[str] = "workload"

    requests: int = param(12_031, "requests", low=1, high=2**31 - 1)
    seed: int = param(0, "equal seeds give equal traces", low=0, high=2**63 - 1)
    block_tokens: int = param(BLOCK_TOKENS, "tokens of a block", low=1, high=2**20, unit="tokens")
    system_tokens: int = param(890, "system prompt in front of every prompt", low=0, high=2**20, unit="tokens")
    max_input_tokens: int = param(
        126_195, "longest prompt; a conversation ends there", low=1, high=2**31 - 1, unit="tokens"
    )
    max_output_tokens: int = param(2_000, "longest answer", low=1, high=2**31 - 1, unit="tokens")

    arrivals_per_second: float = param(3.4, "rate of Poisson arrivals", low=1e-6, high=1e6, unit="1/s")
    clock_ms: int = param(3_000, "timestamps are multiples of this", low=1, high=2**31, unit="ms")

    persistence_a: float = param(1.0, "a conversation goes on with a chance of its own, Beta(a, b)", low=0.01, high=100)
    question_persistence_b: float = param(1.0, "b when it opened with a question", low=0.01, high=100)
    document_persistence_b: float = param(2.9, "b when it opened with a document", low=0.01, high=100)
    turn_gap_s: float = param(230.0, "from one turn to the next, median", low=0, high=1e9, unit="s")
    turn_gap_sigma: float = _sigma(0.7, "spread of the gaps of one conversation")
    pace_sigma: float = _sigma(0.75, "spread of the median gaps of conversations")
    edited_history: float = _share(0.2, "share of turns that keep only a beginning of the history")

    opening_document: float = _share(0.64, "share of conversations that open with a document")
    opening_question_tokens: float = _tokens(180, "opening question, median")
    opening_question_sigma: float = _sigma(1.7, "its spread")
    opening_document_tokens: float = _tokens(10_600, "opening document, median")
    opening_document_sigma: float = _sigma(0.92, "its spread")
    turn_document: float = _share(0.27, "share of further turns that bring a document")
    turn_question_tokens: float = _tokens(22, "question of a further turn, median")
    turn_question_sigma: float = _sigma(1.5, "its spread")
    turn_document_tokens: float = _tokens(4_000, "document of a further turn, median")
    turn_document_sigma: float = _sigma(0.8, "its spread")

    short_answer: float = _share(0.17, "share of answers of a few words")
    short_answer_tokens: float = _tokens(18, "short answer, median")
    short_answer_sigma: float = _sigma(1.2, "its spread")
    long_answer: float = _share(0.03, "share of answers of several pages")
    long_answer_tokens: float = _tokens(950, "long answer, median")
    long_answer_sigma: float = _sigma(0.45, "its spread")
    answer_tokens: float = _tokens(385, "other answers are normal, not log-normal: mean")
    answer_deviation: float = param(165, "their standard deviation", low=0, high=2**31, unit="tokens")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.system_tokens >= self.max_input_tokens:
            raise InputError(
                f"workload.system_tokens = {self.system_tokens}: "
                f"expected less than workload.max_input_tokens, {self.max_input_tokens}"
            )

    @property
    def system_blocks(self) -> int:
        """Blocks that all requests share."""
        return self.system_tokens // self.block_tokens


def workload_of(overrides: Sequence[str]) -> Workload:
    """The default workload with changes of the form `name=value`.

    Raises:
        InputError: not of that form, an unknown name (with the nearest known one), or a value out of range.
    """
    kinds = {field.name: field.type for field in fields(Workload)}
    values: dict[str, Any] = {}
    for text in overrides:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not name:
            raise InputError(f"--set {text}: expected NAME=VALUE, for example turn_gap_s=20")
        if name not in kinds:
            near = difflib.get_close_matches(name, kinds, n=1, cutoff=0.0)[0]
            raise InputError(f"--set {text}: unknown parameter {name!r}, did you mean {near!r}?")
        try:
            values[name] = int(value) if kinds[name] is int else float(value)
        except ValueError:
            values[name] = value
    return Workload(**values)
