"""Judge of a memory channel: whether commands keep the rules of a device, and serve what was asked for.

It shares nothing with the models but the figures of the device: the rules are a table of pairs of commands, as in the
standards, and hold between every two commands of a pair.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from hw.params.dram import Dram, MemoryChannel
from hw.tb.harness.dram import Kind, Request

ROW = {Kind.ACTIVATE, Kind.PRECHARGE, Kind.PRECHARGE_ALL, Kind.REFRESH_ALL, Kind.REFRESH_BANK}


class Rule(NamedTuple):
    """`after` is no sooner than `clocks` after `before`, if both are for one bank, group, or channel."""

    before: Kind
    after: Kind
    scope: str
    clocks: int
    name: str


def rules(d: Dram) -> list[Rule]:
    """Return all rules of a device for two commands; those that are for all banks are for each of them here."""
    act, pre, rd, wr, ref = Kind.ACTIVATE, Kind.PRECHARGE, Kind.READ, Kind.WRITE, Kind.REFRESH_BANK
    write_end = d.cwl + d.bl
    return [
        Rule(act, act, "bank", d.rc, "tRC"),
        Rule(act, act, "group", d.rrd_l, "tRRD_L"),
        Rule(act, act, "channel", d.rrd_s, "tRRD_S"),
        Rule(act, rd, "bank", d.rcd_read, "tRCD of reads"),
        Rule(act, wr, "bank", d.rcd_write, "tRCD of writes"),
        Rule(act, pre, "bank", d.ras, "tRAS"),
        Rule(pre, act, "bank", d.rp, "tRP"),
        Rule(rd, pre, "bank", d.rtp, "tRTP"),
        Rule(wr, pre, "bank", write_end + d.wr, "tWR"),
        Rule(rd, rd, "channel", max(d.ccd_s, d.bl), "tCCD_S"),
        Rule(rd, rd, "group", d.ccd_l, "tCCD_L"),
        Rule(wr, wr, "channel", max(d.ccd_s, d.bl), "tCCD_S of writes"),
        Rule(wr, wr, "group", d.ccd_l_write, "tCCD_L of writes"),
        Rule(rd, wr, "channel", d.cl + d.bl + d.gap - d.cwl, "read to write"),
        Rule(wr, rd, "channel", write_end + d.wtr_s, "tWTR_S"),
        Rule(wr, rd, "group", write_end + d.wtr_l, "tWTR_L"),
        Rule(act, ref, "bank", d.rc, "tRC to refresh"),
        Rule(act, ref, "channel", d.rrd_s, "tRRD_S to refresh"),
        Rule(pre, ref, "bank", d.rp, "tRP to refresh"),
        Rule(ref, act, "bank", d.rfc_bank, "tRFC of a bank"),
        Rule(ref, act, "channel", d.rrefd, "tRREFD"),
        Rule(ref, ref, "channel", d.rrefd, "tRREFD to refresh"),
        Rule(act, Kind.REFRESH_ALL, "channel", d.rc, "tRC to refresh of all"),
        Rule(pre, Kind.REFRESH_ALL, "channel", d.rp, "tRP to refresh of all"),
        Rule(Kind.REFRESH_ALL, act, "channel", d.rfc, "tRFC"),
        Rule(Kind.REFRESH_ALL, Kind.REFRESH_ALL, "channel", d.rfc, "tRFC to refresh"),
    ]


def broken_rules(commands: np.ndarray, d: Dram) -> Iterator[str]:
    """Yield a line for each rule broken: `clock 17: READ of bank 3 breaks tCCD_L: 2 clocks, expected 4`."""
    judge = _Judge(d)
    for clock, kind, bank, row in _by_bank(commands, judge.rows):
        for finding in [*judge.gaps(clock, kind, bank), *judge.states(clock, kind, bank, row)]:
            yield f"clock {clock}: {kind.name} of bank {bank} breaks {finding}"
    yield from _late_refreshes(commands, d)


class _Judge:
    """What a device has been told; `rows`: those that are open, by bank."""

    def __init__(self, d: Dram):
        self._d = d
        self._rules = {kind: [rule for rule in rules(d) if rule.after == kind] for kind in Kind}
        self._last: dict[tuple[Kind, str, int], int] = {}
        self._activations = [-d.faw] * 4
        self._command_bus = {True: -1, False: -1}
        self._data_end = 0
        self.rows: dict[int, int] = {}

    def gaps(self, clock: int, kind: Kind, bank: int) -> Iterator[str]:
        """Yield the rules of pairs that a command breaks."""
        scopes = {"bank": bank, "group": bank // self._d.banks, "channel": 0}
        for rule in self._rules[kind]:
            gap = clock - self._last.get((rule.before, rule.scope, scopes[rule.scope]), -(1 << 30))
            if gap < rule.clocks:
                yield f"{rule.name}: {gap} clocks, expected {rule.clocks}"
        for scope, number in scopes.items():
            self._last[kind, scope, number] = clock

    def states(self, clock: int, kind: Kind, bank: int, row: int) -> Iterator[str]:
        """Yield what else a command breaks."""
        if kind in (Kind.READ, Kind.WRITE):
            yield from self._moves(clock, kind, bank, row)
        elif kind is Kind.PRECHARGE:
            self.rows.pop(bank, None)
        elif bank in self.rows or (kind is Kind.REFRESH_ALL and self.rows):
            yield "the row: it is open"
        if kind is Kind.ACTIVATE:
            self.rows[bank] = row
            self._activations.append(clock)
            if clock - self._activations.pop(0) < self._d.faw:
                yield f"tFAW: expected {self._d.faw} clocks for five"
        if kind is not Kind.PRECHARGE and clock <= self._command_bus[kind in ROW]:
            yield "the command bus: two in a clock"
        self._command_bus[kind in ROW] = clock

    def _moves(self, clock: int, kind: Kind, bank: int, row: int) -> Iterator[str]:
        if self.rows.get(bank) != row:
            yield f"the row: {row} is not open"
        begin = clock + (self._d.cl if kind is Kind.READ else self._d.cwl)
        if begin < self._data_end:
            yield f"the data bus: data from {begin} on, others to {self._data_end}"
        self._data_end = begin + self._d.bl


def _by_bank(commands: np.ndarray, rows: dict[int, int]) -> Iterator[tuple[int, Kind, int, int]]:
    """Yield clock, kind, bank and row; a precharge of all banks as one of each that is open in `rows`."""
    for clock, kind, bank, row, _ in commands.tolist():
        if kind == Kind.PRECHARGE_ALL:
            yield from ((clock, Kind.PRECHARGE, each, 0) for each in list(rows))
        else:
            yield clock, Kind(kind), bank, row


def _late_refreshes(commands: np.ndarray, d: Dram) -> Iterator[str]:
    """Yield refreshes that are later than closing rows takes, or not of the bank whose turn it is."""
    kind, banks = (Kind.REFRESH_BANK, d.all_banks) if d.refresh == "bank" else (Kind.REFRESH_ALL, 1)
    given = commands[commands["kind"] == kind]
    slack = max(d.rc, d.ras + d.rp, d.rcd_write + d.cwl + d.bl + d.wr + d.rp) + d.rrefd + 4
    end = int(commands["clock"][-1]) if len(commands) else 0
    for number in range(max(0, end - slack) * banks // d.refi):
        due = (number + 1) * d.refi // banks
        clock, bank = (int(given[name][number]) for name in ("clock", "bank")) if number < len(given) else (end, -1)
        if not due <= clock <= due + slack or bank != number % banks:
            yield f"clock {clock}: refresh {number} breaks tREFI: due at {due}, for bank {number % banks}, not {bank}"


def misplaced(commands: np.ndarray, requests: Sequence[Request], channel: MemoryChannel) -> Iterator[str]:
    """Yield accesses that were made and not asked for, or the other way round; no request reads what another writes."""
    size = channel.dram.access_bytes
    asked: Counter[tuple[int, int, int, bool]] = Counter()
    for address, length, write, _ in requests:
        for at in range(address // size * size, address + length, size):
            group, bank, row, column = channel.place(at)
            asked[group * channel.dram.banks + bank, row, column, bool(write)] += 1
    made = Counter(
        (bank, row, column, kind == Kind.WRITE)
        for _, kind, bank, row, column in commands.tolist()
        if kind in (Kind.READ, Kind.WRITE)
    )
    for access in sorted((asked - made) + (made - asked)):
        yield f"bank {access[0]}, row {access[1]}, column {access[2]}: asked {asked[access]}, made {made[access]}"
