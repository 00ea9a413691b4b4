"""Commands on their way to the node."""

from amaranth import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.params import Params
from hw.params.protocol import KEY_BYTES, Opcode
from hw.rtl.fabric.layouts import COMMAND, COMMAND_BYTES, Channel, flit_layout
from hw.rtl.gpu.key_reader import KeyReader
from hw.rtl.gpu.layouts import acknowledgement_layout, move_layout, read_beat_layout, read_layout, send_layout


class Sender(wiring.Component):
    """Makes REQUEST packets, with the keys of a LOOKUP behind it, and hands the data of a WRITE to the `Mover`.

    Parameters
    ----------
    params
        Width of a flit.

    Interface
    ---------
    sends : In, stream of `send_layout()`
    flits : Out, stream of `flit_layout(params)`
        REQUEST packets.
    moves : Out, stream of `move_layout(params)`
        The data of each WRITE that has some, in the order of their packets.
    bursts, beats : as of a client of `HostReader`
        For keys.
    sent : Out, stream of `acknowledgement_layout(params)`, always ready
        The packet of a command has left, of any but a WRITE with data. `error`: memory has refused some keys.
    idle : Out(1)
        No command is in hand.

    Latency and throughput
    ----------------------
    A cycle, then a flit a cycle; a LOOKUP waits for the latency of memory before its last flit without keys.

    Ordering and stalls
    -------------------
    In order, one at a time. Stalls with `flits` and `moves`.

    Reset and errors
    ----------------
    Reset forgets the command in hand; the link and the reader have to be reset too. A packet whose keys memory refuses
    ends before the first beat of these, so that no other key is looked up in their place.

    Invariants
    ----------
    Part of 10: each command is sent once.

    Counters
    --------
    None.
    """

    def __init__(self, params: Params):
        self._params = params
        super().__init__(
            {
                "sends": In(stream.Signature(send_layout())),
                "flits": Out(stream.Signature(flit_layout(params))),
                "moves": Out(stream.Signature(move_layout(params))),
                "bursts": Out(stream.Signature(read_layout())),
                "beats": In(stream.Signature(read_beat_layout(params), always_ready=True)),
                "sent": Out(stream.Signature(acknowledgement_layout(params), always_ready=True)),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:  # noqa: PLR0915 (one machine, state by state)
        m = Module()
        params, flit, move, size = self._params, self.flits.payload, self.moves.payload, self._params.memory.beat_bytes
        m.submodules.keys = reader = KeyReader(params)
        wiring.connect(m, reader.bursts, wiring.flipped(self.bursts))
        wiring.connect(m, wiring.flipped(self.beats), reader.beats)

        held = Signal(send_layout())
        descriptor = held.descriptor
        parts = params.flits(COMMAND_BYTES)
        words = Signal(data.ArrayLayout(8 * size, parts))
        part = Signal(range(parts))
        has_keys, has_data, final = Signal(), Signal(), Signal()
        of_keys = Signal(range(params.tables.lookup_keys * KEY_BYTES + 1))
        key, held_key, key_there = reader.keys, Signal(8 * size), Signal()
        ends, failed = Signal(), Signal()  # the flit in hand is the last of the keys; memory has refused some
        m.d.comb += [
            words.as_value().eq(descriptor.as_value()[: COMMAND["reserved"].offset]),
            has_keys.eq((descriptor.opcode == Opcode.LOOKUP) & (descriptor.count != 0)),
            has_data.eq((descriptor.opcode == Opcode.WRITE) & (descriptor.length != 0)),
            of_keys.eq(descriptor.count * KEY_BYTES),
            reader.rows.payload.address.eq(descriptor.data),
            reader.rows.payload.beats.eq((of_keys + (size - 1)) // size),
            final.eq(part == parts - 1),
            flit.channel.eq(Channel.REQUEST),
            flit.slice.eq(descriptor.slice[: params.node.slice_bits]),
            flit.ring.eq(held.ring),
            flit.tag.eq(held.tag),
            move.place.address.eq(descriptor.data),
            move.place.scattered.eq(descriptor.flags.scattered),
            move.place.page_shift.eq(descriptor.page_shift),
            move.length.eq(descriptor.length),
            move.slice.eq(descriptor.slice),
            move.ring.eq(held.ring),
            move.tag.eq(held.tag),
            move.context.eq(held.tag),
            self.sent.payload.token.eq(held.tag),
            self.sent.payload.error.eq(failed),
        ]
        last_bytes = of_keys[: (size - 1).bit_length()]
        sent = self.flits.valid & self.flits.ready

        with m.FSM() as machine:
            with m.State("IDLE"):
                m.d.comb += self.sends.ready.eq(1)
                m.d.sync += [held.eq(self.sends.payload), part.eq(0), ends.eq(0), failed.eq(0)]
                with m.If(self.sends.valid):
                    m.next = "ASK"

            with m.State("ASK"):
                m.d.comb += reader.rows.valid.eq(has_keys)
                with m.If(~has_keys | reader.rows.ready):
                    m.next = "COMMAND"

            with m.State("COMMAND"):
                m.d.comb += [
                    flit.data.eq(words[part]),
                    flit.count.eq(Mux(final, COMMAND_BYTES - size * (parts - 1), size)),
                    flit.last.eq(final & (~has_keys | key.payload.error)),
                    self.flits.valid.eq(~final | ~has_keys | key.valid),
                ]
                with m.If(sent):
                    m.d.sync += part.eq(part + 1)
                    with m.If(final):
                        m.next = "DONE"
                        with m.If(has_data):
                            m.next = "MOVE"
                        with m.If(has_keys):
                            m.next = "KEYS"
                        with m.If(has_keys & key.payload.error):
                            m.next = "SKIP"

            # The flit in hand waits until it is known whether the keys behind it are there.
            with m.State("KEYS"):
                m.d.comb += [
                    flit.data.eq(held_key),
                    flit.count.eq(Mux(ends & (last_bytes != 0), last_bytes, size)),
                    flit.last.eq(ends | key.payload.error),
                    self.flits.valid.eq(key_there & (ends | key.valid)),
                    key.ready.eq((~key_there | (sent & ~ends)) & ~(key_there & key.payload.error)),
                ]
                with m.If(sent):
                    m.d.sync += key_there.eq(0)
                    with m.If(ends):
                        m.next = "DONE"
                    with m.Elif(key.payload.error):
                        m.next = "SKIP"
                with m.If(key.valid & key.ready):
                    m.d.sync += [key_there.eq(1), held_key.eq(key.payload.data), ends.eq(key.payload.last)]

            with m.State("SKIP"):
                m.d.comb += key.ready.eq(1)
                m.d.sync += failed.eq(1)
                with m.If(key.valid & key.payload.last):
                    m.next = "DONE"

            with m.State("MOVE"):
                m.d.comb += self.moves.valid.eq(1)
                with m.If(self.moves.ready):
                    m.next = "IDLE"

            with m.State("DONE"):
                m.d.comb += self.sent.valid.eq(1)
                m.next = "IDLE"
        m.d.comb += self.idle.eq(machine.ongoing("IDLE"))
        return m
