"""The data path of a slice: writes and reads on the same memory channels."""

from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from hw.params import Params
from hw.rtl.axi import axi4, axi4_read, axi4_write
from hw.rtl.node.data.layouts import read_widths, write_widths
from hw.rtl.node.data.read_path import ReadPath
from hw.rtl.node.data.turns import Turns
from hw.rtl.node.data.write_path import WritePath
from hw.rtl.node.rota import Turn, pass_rota, rota_member


def memory_channel(params: Params) -> wiring.Signature:
    """Return the signature of a memory channel, from the data path's view."""
    return axi4(axi4_write(**write_widths(params)), axi4_read(**read_widths(params)))


class DataPath(wiring.Component):
    """Write path and read path, as the manager of C AXI4 channels.

    Parameters
    ----------
    params
        Section `memory`, `tables.ports`, and what `hw.params.striping` needs.

    Interface
    ---------
    rota : In, `turn_layout(params)`
        As of both.
    segments, beats_in, discards, landed
        As `segments`, `beats`, `discards` and `landed` of `WritePath`; the first two one a port.
    reads, beats_out, done
        As `reads`, `beats` and `done` of `ReadPath`.
    memory : Out, `axi4`, one a channel
        As in `WriteLane` and `ReadLane`; each half has IDs of its own.

    Latency and throughput
    ----------------------
    Those of the paths, while a channel has bursts of one kind only; of both, `Turns` makes batches.

    Ordering and stalls
    -------------------
    A segment may be read once it has landed; that nothing is read before is the core's work. The paths wait for each
    other in the `Turns` of a channel alone, which bounds that. Where partitions are isolated, each turn begins with
    `Turns` as after reset.

    Reset and errors, invariants, counters
    --------------------------------------
    Those of the paths.
    """

    def __init__(self, params: Params):
        self._params = params
        self._write, self._read = WritePath(params), ReadPath(params)
        write, read = self._write.signature.members, self._read.signature.members
        super().__init__(
            {
                **rota_member(params),
                "segments": write["segments"],
                "beats_in": write["beats"],
                "discards": write["discards"],
                "landed": write["landed"],
                "reads": read["reads"],
                "beats_out": read["beats"],
                "done": read["done"],
                "memory": Out(memory_channel(params)).array(params.memory.channels),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.write = write = self._write
        m.submodules.read = read = self._read
        for path in (write, read):
            pass_rota(m, self, path)
        for theirs, ours in zip((*self.segments, *self.beats_in), (*write.segments, *write.beats), strict=True):
            wiring.connect(m, wiring.flipped(theirs), ours)
        for i, (reads, writes) in enumerate(zip(read.turns, write.turns, strict=True)):
            turns = Turns(self._params)
            m.submodules[f"turns_{i}"] = Turn(self._params, self).anew(turns)
            wiring.connect(m, reads, turns.reads)
            wiring.connect(m, writes, turns.writes)
        wiring.connect(m, wiring.flipped(self.discards), write.discards)
        wiring.connect(m, wiring.flipped(self.reads), read.reads)
        given = (*read.beats, *write.landed, *read.done)
        for ours, theirs in zip(given, (*self.beats_out, *self.landed, *self.done), strict=True):
            wiring.connect(m, ours, wiring.flipped(theirs))
        for i, channel in enumerate(self.memory):
            for half in write.memory[i], read.memory[i]:
                for name, member in half.signature.members.items():
                    ours, theirs = getattr(half, name), getattr(channel, name)
                    m.d.comb += theirs.eq(ours) if member.flow is Out else ours.eq(theirs)
        return m
