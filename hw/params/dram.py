"""What a memory channel is made of: a DRAM device, the map of its addresses, and the controller in front of it.

Times are in clocks of the device, as its standard gives them. The peak of a channel is one beat of the data path a
cycle, so a cycle of a slice is a whole number of clocks: `Dram.clocks_per_cycle`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from hw.params.errors import ParameterError
from hw.params.section import Section, param

AddressMap = tuple[str, ...]
"""The fields of an address above the bytes of an access, from the lowest: each of `FIELDS` once."""

FIELDS = ("group", "bank", "row", "column")

MAPS: Mapping[str, AddressMap] = {
    "stream": ("group", "column", "bank", "row"),
    "column": ("column", "group", "bank", "row"),
    "row": ("row", "column", "bank", "group"),
}
"""Bank group low: neighbours may follow each other at full rate, and banks change late. Column low: neighbours are in
one bank until its row ends. Row low: each neighbour is in another row of the same bank."""

REFRESH = ("all", "bank")
"""Refresh of all banks at once, or of one after the other."""


class Place(NamedTuple):
    """Where an access goes: `bank` is that in its group."""

    group: int
    bank: int
    row: int
    column: int


@dataclass(frozen=True, kw_only=True)
class Dram(Section):
    """A device with its own address and data bus, as a channel sees it: a pseudo channel of HBM, a subchannel of DDR5.

    Fields are named as in the standards, without the t: `rcd_read` is tRCDRD, `ccd_l` tCCD_L.
    """

    section: ClassVar[str] = "dram"
    source: str = param("", "where the figures are from")
    clock_ps: int = param(1000, "period of the command clock", low=100, high=10_000, unit="ps")
    groups: int = param(4, "bank groups", low=1, high=8, power_of_two=True)
    banks: int = param(4, "banks of a group", low=1, high=8, power_of_two=True)
    rows: int = param(1 << 15, "rows of a bank", low=2, high=1 << 20, power_of_two=True)
    row_bytes: int = param(1024, "bytes of a row", low=64, high=1 << 16, unit="bytes", power_of_two=True)
    access_bytes: int = param(32, "bytes of a column access", low=16, high=128, unit="bytes", power_of_two=True)
    bl: int = param(2, "an access on the data bus", low=1, high=64, unit="clocks")
    cl: int = param(14, "READ to its data", low=1, high=200, unit="clocks")
    cwl: int = param(5, "WRITE to its data", low=1, high=200, unit="clocks")
    rcd_read: int = param(14, "ACTIVATE to READ", low=1, high=200, unit="clocks")
    rcd_write: int = param(12, "ACTIVATE to WRITE", low=1, high=200, unit="clocks")
    rp: int = param(14, "PRECHARGE to ACTIVATE", low=1, high=200, unit="clocks")
    ras: int = param(34, "ACTIVATE to PRECHARGE", low=1, high=400, unit="clocks")
    rc: int = param(48, "ACTIVATE to ACTIVATE of a bank", low=1, high=600, unit="clocks")
    ccd_s: int = param(2, "READ to READ, WRITE to WRITE", low=1, high=64, unit="clocks")
    ccd_l: int = param(4, "READ to READ of a group", low=1, high=64, unit="clocks")
    ccd_l_write: int = param(4, "WRITE to WRITE of a group", low=1, high=128, unit="clocks")
    rrd_s: int = param(4, "ACTIVATE to ACTIVATE", low=1, high=64, unit="clocks")
    rrd_l: int = param(4, "ACTIVATE to ACTIVATE of a group", low=1, high=64, unit="clocks")
    faw: int = param(15, "five ACTIVATEs, first to last", low=1, high=200, unit="clocks")
    wtr_s: int = param(6, "end of write data to READ", low=1, high=200, unit="clocks")
    wtr_l: int = param(8, "end of write data to READ of the group", low=1, high=200, unit="clocks")
    wr: int = param(16, "end of write data to PRECHARGE", low=1, high=200, unit="clocks")
    rtp: int = param(5, "READ to PRECHARGE", low=1, high=200, unit="clocks")
    gap: int = param(2, "data bus between read data and write data", low=0, high=64, unit="clocks")
    refi: int = param(3900, "refreshes of a bank", low=100, high=100_000, unit="clocks")
    rfc: int = param(160, "REFRESH of all banks to ACTIVATE", low=1, high=10_000, unit="clocks")
    rfc_bank: int = param(
        0, "REFRESH of a bank to its ACTIVATE; 0: there is none of a single bank", low=0, high=10_000, unit="clocks"
    )
    rrefd: int = param(0, "REFRESH of a bank to ACTIVATE or REFRESH of another", low=0, high=200, unit="clocks")
    refresh: str = param("all", "what a REFRESH refreshes: all banks, or a bank in its turn", choices=REFRESH)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.row_bytes < self.access_bytes:
            raise ParameterError(
                f"parameter dram.row_bytes = {self.row_bytes}: expected dram.access_bytes ({self.access_bytes}) or more"
            )
        if self.refresh == "bank" and not self.rfc_bank:
            raise ParameterError("parameter dram.refresh = 'bank': expected dram.rfc_bank above 0")
        refreshing = "rfc" if self.refresh == "all" else "rfc_bank"
        if (busy := 2 * getattr(self, refreshing)) > self.refi:
            raise ParameterError(
                f"parameter dram.refi = {self.refi}: expected twice dram.{refreshing} or more, {busy}: else a bank does"
                " little but refresh"
            )
        if self.cwl > self.cl + self.bl + self.gap:
            raise ParameterError(
                f"parameter dram.cwl = {self.cwl}: expected dram.cl + dram.bl + dram.gap"
                f" ({self.cl + self.bl + self.gap}) or less: else a WRITE could come before the READ that it follows"
            )

    @property
    def all_banks(self) -> int:
        """Banks of all groups."""
        return self.groups * self.banks

    @property
    def channel_bytes(self) -> int:
        """Bytes that a channel holds."""
        return self.all_banks * self.rows * self.row_bytes

    @property
    def peak(self) -> float:
        """Bytes a nanosecond, which is GB/s."""
        return self.access_bytes / (self.bl * self.clock_ps / 1000)

    def clocks_per_cycle(self, beat_bytes: int) -> int:
        """Return clocks of a cycle, in which the data bus moves one beat. Raises ParameterError for part of a clock."""
        clocks, rest = divmod(self.bl * beat_bytes, self.access_bytes)
        if rest:
            raise ParameterError(
                f"parameter memory.beat_bytes = {beat_bytes}: expected a multiple of {self.access_bytes} / {self.bl}"
            )
        return clocks

    def cycles(self, nanoseconds: float, beat_bytes: int) -> float:
        """Return a time in cycles of a slice."""
        return nanoseconds * self.peak / beat_bytes

    def bits(self, field: str) -> int:
        """Return the width of a field of an address."""
        columns = self.row_bytes // self.access_bytes
        counts = {"group": self.groups, "bank": self.banks, "row": self.rows, "column": columns}
        return counts[field].bit_length() - 1


@dataclass(frozen=True, kw_only=True)
class Controller(Section):
    """What stands between bursts and the device: a queue of accesses for reads and one for writes.

    It turns to writes when `high` of them wait, or nothing else does, and back when `low` of them are left, or when
    reads have waited for a `batch` of them. An access that has waited for `patience` clocks is put first in its bank.
    With `close` it begins anew once nothing waits and all rows are closed: what comes later is as if it were the first.
    """

    section: ClassVar[str] = "controller"
    queue: int = param(64, "accesses that wait, of reads and likewise of writes", low=4, high=256)
    high: int = param(52, "writes that wait before they are done", low=2, high=256)
    low: int = param(12, "writes that are left when reads go on", low=0, high=255)
    batch: int = param(128, "writes that are served at most while reads wait", low=1, high=1 << 20)
    patience: int = param(8000, "an access waits as long before it is put first", low=1, high=1 << 20, unit="clocks")
    close: int = param(
        0, "a row that nothing has wanted for so long is closed; 0: it stays open", low=0, high=1 << 20, unit="clocks"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.low < self.high <= self.queue:
            raise ParameterError(
                f"parameter controller.high = {self.high}: expected more than controller.low ({self.low}) and at most"
                f" controller.queue ({self.queue})"
            )


@dataclass(frozen=True, kw_only=True)
class MemoryChannel:
    """A device, the order of its addresses, and its controller. Raises ParameterError for a map that is none."""

    dram: Dram
    map: AddressMap = MAPS["stream"]
    controller: Controller = field(default_factory=Controller)

    def __post_init__(self) -> None:
        if sorted(self.map) != sorted(FIELDS):
            raise ParameterError(
                f"address map {self.map!r}: expected each of {', '.join(FIELDS)} once, as in MAPS ({', '.join(MAPS)})"
            )

    def shift(self, field: str) -> int:
        """Return the lowest bit of a field in an address."""
        below = self.map[: self.map.index(field)]
        return self.dram.access_bytes.bit_length() - 1 + sum(map(self.dram.bits, below))

    def place(self, address: int) -> Place:
        """Return where a byte is; addresses beyond the device begin again at its first."""
        return Place(*(address >> self.shift(field) & (1 << self.dram.bits(field)) - 1 for field in FIELDS))

    def rest(self, bursts: int, burst_bytes: int, beat_bytes: int) -> int:
        """Return the cycles after which a channel that has been given so many bursts is as if nothing had been.

        All that is asked for is served one after the other, each burst with rows of its own and a turn of the bus, and
        before these the writes that were answered and still wait; a refresh comes when it suits least; then all rows
        are closed. Raises ParameterError for a controller that leaves rows open, and for a device that refreshes bank
        by bank: work may meet every one of these refreshes, and no bound is known.
        """
        d, controller = self.dram, self.controller
        if not controller.close:
            raise ParameterError("parameter controller.close = 0: expected more, for a channel that is to come to rest")
        if d.refresh != "all":
            raise ParameterError(
                "parameter dram.refresh = 'bank': expected 'all', for a channel that is to come to rest"
            )
        accesses = -(-burst_bytes // d.access_bytes)
        rows = len({self.place(i * d.access_bytes)._replace(column=0) for i in range(accesses)})
        turn = d.cl + d.gap + d.cwl + d.wtr_l + 2 * d.bl
        burst = d.rc + rows * max(d.rrd_l, d.faw // 4) + accesses * max(d.ccd_l, d.ccd_l_write) + turn
        closing = max(d.ras, d.rtp, d.cwl + d.bl + d.wr) + d.rp
        work = (bursts + -(-controller.queue // accesses)) * burst + controller.close + closing
        refresh = closing + d.rfc
        if refresh >= d.refi:
            raise ParameterError(
                f"parameter dram.refi = {d.refi}: expected more than {refresh}, all that a refresh takes"
            )
        refreshes = (work + d.refi) // (d.refi - refresh)  # each makes the time longer, in which there are others
        return -(-(work + refreshes * refresh) // d.clocks_per_cycle(beat_bytes))


RAMULATOR = "Ramulator 2.1 (CMU-SAFARI/ramulator2, c5b1c3a), python/ramulator/dram/"

HBM3 = Dram(
    source=RAMULATOR + "hbm3.py: HBM3_8Gb_8hi, one of two stack IDs, HBM3_6400Mbps",
    clock_ps=625, groups=4, banks=4, rows=1 << 13, row_bytes=1024, access_bytes=32, bl=2, cl=20, cwl=10, gap=8,
    rcd_read=31, rcd_write=15, rp=26, ras=45, rc=72, ccd_s=2, ccd_l=4, ccd_l_write=4, rrd_s=4, rrd_l=5, faw=24,
    wtr_s=7, wtr_l=10, wr=33, rtp=9, refi=6240, rfc=416, rfc_bank=320, rrefd=8,
)  # fmt: skip
HBM2 = Dram(
    source=RAMULATOR + "hbm2.py: HBM2_2Gb, HBM2_2000Mbps",
    clock_ps=1000, groups=4, banks=4, rows=1 << 14, row_bytes=1024, access_bytes=32, bl=2, cl=14, cwl=5, gap=2,
    rcd_read=14, rcd_write=12, rp=14, ras=34, rc=48, ccd_s=2, ccd_l=4, ccd_l_write=4, rrd_s=4, rrd_l=4, faw=15,
    wtr_s=6, wtr_l=8, wr=16, rtp=5, refi=3900, rfc=160, rfc_bank=160, rrefd=8,
)  # fmt: skip
DDR5_4800 = Dram(
    source=RAMULATOR + "ddr5.py: DDR5_16Gb_x8, DDR5_4800AN",
    clock_ps=416, groups=8, banks=4, rows=1 << 16, row_bytes=4096, access_bytes=64, bl=8, cl=34, cwl=32, gap=4,
    rcd_read=34, rcd_write=34, rp=34, ras=77, rc=111, ccd_s=8, ccd_l=12, ccd_l_write=48, rrd_s=8, rrd_l=12, faw=48,
    wtr_s=6, wtr_l=24, wr=72, rtp=18, refi=9375, rfc=710,
)  # fmt: skip

DRAMS: Mapping[str, Dram] = {"HBM3": HBM3, "HBM2": HBM2, "DDR5-4800": DDR5_4800}
