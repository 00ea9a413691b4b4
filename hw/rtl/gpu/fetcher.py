"""Descriptors, out of host memory."""

from amaranth import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for, exact_log2

from hw.params import Params
from hw.params.protocol import RING_BITS
from hw.rtl.gpu.layouts import (
    ADDRESS_BITS,
    DESCRIPTOR,
    Owner,
    engine_owners,
    read_beat_layout,
    read_layout,
    start_layout,
)


class Fetcher(wiring.Component):
    """Fetches a descriptor at a time, and hands it on.

    Parameters
    ----------
    params
        Width of a beat.

    Interface
    ---------
    hold : In(1)
        No descriptor is begun.
    wanting, turn, descriptor, running : In, as of `Rings`
    busy, ring : Out
        A descriptor of `ring` is under way.
    fetched : Out(1)
        It has become a command.
    failed : Out(1)
        Memory has refused it.
    bursts, beats : as of a client of `HostReader`
    free : In(1)
        There is a context, and nobody else takes the last one.
    starts : Out, stream of `start_layout(params)`
        Commands that are to begin.

    Latency and throughput
    ----------------------
    Three cycles, one for each beat of a descriptor, and the latency of memory, for each descriptor.

    Ordering and stalls
    -------------------
    Those of a ring in order. One at a time: the next is asked for when the one before has begun.

    Reset and errors
    ----------------
    Reset forgets the descriptor in hand; the reader has to be reset too. One that memory refuses is no command, nor is
    one whose ring has stopped meanwhile: the last is dropped.

    Invariants
    ----------
    Part of 10: every descriptor that is `fetched` begins, once.

    Counters
    --------
    None.
    """

    def __init__(self, params: Params):
        self._params = params
        super().__init__(
            {
                "hold": In(1),
                "wanting": In(1),
                "turn": In(bits_for(max(1, params.tables.rings_per_port - 1))),
                "descriptor": In(ADDRESS_BITS),
                "running": In(params.tables.rings_per_port),
                "busy": Out(1),
                "ring": Out(RING_BITS),
                "fetched": Out(1),
                "failed": Out(1),
                "bursts": Out(stream.Signature(read_layout())),
                "beats": In(stream.Signature(read_beat_layout(params), always_ready=True)),
                "free": In(1),
                "starts": Out(stream.Signature(start_layout(params))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        params, beat, burst = self._params, self.beats.payload, self.bursts.payload
        size, width = DESCRIPTOR.size // 8, params.memory.beat_bytes
        parts = params.flits(size)
        words = Signal(data.ArrayLayout(min(DESCRIPTOR.size, 8 * width), parts))
        part = Signal(range(parts))
        descriptor = Signal(DESCRIPTOR)
        error, runs = Signal(), Signal()
        whole = exact_log2(max(width, size))
        new = beat.data
        if width > size:
            new = beat.data.word_select(self.descriptor[exact_log2(size) : whole], DESCRIPTOR.size)
        m.d.comb += [
            descriptor.eq(words.as_value()),
            runs.eq((self.running >> self.ring)[0]),
            burst.address.eq(self.descriptor[whole:] << whole),
            burst.beats.eq(parts),
            self.starts.payload.ring.eq(self.ring),
            self.starts.payload.descriptor.eq(descriptor),
            self.fetched.eq(self.starts.valid & self.starts.ready),
        ]
        if engine_owners(params):
            m.d.comb += [self.starts.payload.owner.eq(Owner.SOFTWARE), self.starts.payload.job.eq(0)]
        with m.If(self.beats.valid):
            m.d.sync += [words[part].eq(new), part.eq(part + 1), error.eq(error | beat.error)]

        with m.FSM() as machine:
            with m.State("IDLE"):
                m.d.sync += [part.eq(0), error.eq(0)]
                with m.If(self.wanting & self.free & ~self.hold):
                    m.d.sync += self.ring.eq(self.turn)
                    m.next = "ASK"

            with m.State("ASK"):
                m.d.comb += self.bursts.valid.eq(1)
                with m.If(self.bursts.ready):
                    m.next = "COLLECT"

            with m.State("COLLECT"), m.If(self.beats.valid & beat.last):
                m.next = "JUDGE"

            with m.State("JUDGE"):
                m.next = "IDLE"
                m.d.comb += [self.failed.eq(error), self.starts.valid.eq(runs & ~error)]
                with m.If(self.starts.valid & ~self.starts.ready):
                    m.next = "OFFER"

            with m.State("OFFER"):
                m.d.comb += self.starts.valid.eq(1)
                with m.If(self.starts.ready):
                    m.next = "IDLE"
        m.d.comb += self.busy.eq(~machine.ongoing("IDLE"))
        return m
