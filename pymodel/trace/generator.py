"""Invents the requests of a workload."""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count, islice
from random import Random

from pymodel.trace.request import Request, blocks_of
from pymodel.trace.workload import Workload


@dataclass(frozen=True)
class _Conversation:
    """What the next turn needs to know."""

    ids: list[int]  # of the whole blocks of the last prompt
    tokens: int  # of the last prompt and its answer
    persistence: float  # chance of another turn
    gap_s: float  # median time to it


def generate(workload: Workload) -> Iterator[Request]:
    """The requests of a workload in order of arrival.

    A request is the next turn of a conversation when one is due, else it opens a new one. A turn appends the last
    answer and a message to the last prompt, or, when the history was edited, keeps a beginning of it and goes on
    differently. Only whole blocks are shared: the partial last one becomes another block when the prompt grows.

    Equal workloads give equal requests, and fewer requests the beginning of more. Memory grows with the conversations
    that wait for their next turn, not with the number of requests.
    """
    random = Random(workload.seed)
    ids = count()
    system = list(islice(ids, workload.system_blocks))
    waiting: list[tuple[float, int, _Conversation]] = []  # a heap by due time in s; the number breaks ties
    now = 0.0
    for number in range(workload.requests):
        now += random.expovariate(workload.arrivals_per_second)
        if waiting and waiting[0][0] <= now:
            conversation, tokens = _turn(workload, random, heapq.heappop(waiting)[2])
        else:
            conversation, tokens = _opening(workload, random, system)
        tokens = min(tokens, workload.max_input_tokens)
        whole = tokens // workload.block_tokens
        prompt = conversation.ids[:whole]
        prompt += islice(ids, blocks_of(tokens, workload.block_tokens) - len(prompt))
        answer = _answer(workload, random)
        clock = int(now * 1000) // workload.clock_ms * workload.clock_ms
        yield Request(timestamp=clock, input_length=tokens, output_length=answer, hash_ids=prompt)
        if tokens < workload.max_input_tokens and random.random() < conversation.persistence:
            due = now + _log_normal(random, conversation.gap_s, workload.turn_gap_sigma)
            waits = replace(conversation, ids=prompt[:whole], tokens=tokens + answer)
            heapq.heappush(waiting, (due, number, waits))


def _opening(workload: Workload, random: Random, system: list[int]) -> tuple[_Conversation, int]:
    """A new conversation, and the tokens of its first prompt."""
    if random.random() < workload.opening_document:
        message = _log_normal(random, workload.opening_document_tokens, workload.opening_document_sigma)
        persistence = random.betavariate(workload.persistence_a, workload.document_persistence_b)
    else:
        message = _log_normal(random, workload.opening_question_tokens, workload.opening_question_sigma)
        persistence = random.betavariate(workload.persistence_a, workload.question_persistence_b)
    gap_s = _log_normal(random, workload.turn_gap_s, workload.pace_sigma)
    tokens = workload.system_tokens + 1 + int(message)
    return _Conversation(system, workload.system_tokens, persistence, gap_s), tokens


def _turn(workload: Workload, random: Random, conversation: _Conversation) -> tuple[_Conversation, int]:
    """A conversation as its next turn sees it, and the tokens of that turn's prompt."""
    if random.random() < workload.edited_history:
        own = len(conversation.ids) - workload.system_blocks
        kept = workload.system_blocks + int(own * random.random() ** 2)
        return replace(conversation, ids=conversation.ids[:kept]), conversation.tokens
    if random.random() < workload.turn_document:
        message = _log_normal(random, workload.turn_document_tokens, workload.turn_document_sigma)
    else:
        message = _log_normal(random, workload.turn_question_tokens, workload.turn_question_sigma)
    return conversation, conversation.tokens + 1 + int(message)


def _answer(workload: Workload, random: Random) -> int:
    """Tokens of an answer."""
    kind = random.random()
    if kind < workload.short_answer:
        tokens = _log_normal(random, workload.short_answer_tokens, workload.short_answer_sigma)
    elif kind < workload.short_answer + workload.long_answer:
        tokens = _log_normal(random, workload.long_answer_tokens, workload.long_answer_sigma)
    else:
        tokens = random.gauss(workload.answer_tokens, workload.answer_deviation)
    return max(1, min(int(tokens), workload.max_output_tokens))


def _log_normal(random: Random, median: float, sigma: float) -> float:
    """A log-normal sample by its median and the deviation of its logarithm."""
    return median * random.lognormvariate(0.0, sigma)
