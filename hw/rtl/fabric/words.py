"""Words, of which a link with replay is made: the one home of each field. docs/link.md has the picture."""

from amaranth import Const, Value
from amaranth.lib import data, enum, wiring
from amaranth.lib.wiring import Out
from amaranth.utils import ceil_log2

from hw.params import Params, crc32c
from hw.rtl.fabric.layouts import Channel, flit_layout
from hw.rtl.transform.crc32c import product

Buffers = dict[Channel, int]
"""For each channel of a direction, the flits that its receiver has room for: the credits of its sender."""


class Phase(enum.Enum, shape=2):  # type: ignore[call-arg]
    """How far an end of a link is in joining the other; every word says it."""

    DOWN = 0
    INIT = 1
    UP = 2


def replay_rows(sent: Buffers) -> int:
    """Return the flits that a replay buffer has room for: one for each credit, rounded up to a power of two.

    A flit stays until it is acknowledged, and a credit comes back in no earlier word than the acknowledgement of its
    flit: so whoever sends only against credits finds room.
    """
    return 1 << ceil_log2(sum(sent.values()))


def number_bits(sent: Buffers) -> int:
    """Return the bits of a number of a flit: of two that both ends may have in mind, it says which is ahead."""
    return (2 * sum(sent.values())).bit_length()


def counts_layout(buffers: Buffers) -> data.StructLayout:
    """Return a number for each channel, counted modulo a power of two above its credits."""
    return data.StructLayout({channel.name.lower(): size.bit_length() for channel, size in buffers.items()})


def pulses_layout(buffers: Buffers) -> data.StructLayout:
    """Return a bit for each channel: a credit in this cycle."""
    return data.StructLayout({channel.name.lower(): 1 for channel in buffers})


def flow_layout(sent: Buffers) -> data.StructLayout:
    """Return what a word says of the flits that its sender sends.

    - `carries`: there is a flit in it. `number`: which one, or which comes next.
    - `turn`: changes whenever the sender begins to send again.
    """
    return data.StructLayout({"carries": 1, "turn": 1, "number": number_bits(sent)})


def answer_layout(received: Buffers) -> data.StructLayout:
    """Return what a word says of the flits that its sender receives.

    - `number`: which one it waits for; it has all before.
    - `missing`: it has heard of a later one, in a word with this `turn`.
    """
    return data.StructLayout({"missing": 1, "turn": 1, "number": number_bits(received)})


def word_layout(params: Params, *, sent: Buffers, received: Buffers) -> data.StructLayout:
    """Return the layout of a word, by what the end that sends it sends and receives.

    - `phase`: what its sender is in. In any but UP all else means nothing.
    - `flow`, `answer`: as above.
    - `taken`: of each channel, the credits that its sender has given back since the link is up.
    - `flit`: if `flow.carries`.
    """
    return data.StructLayout(
        {
            "phase": Phase,
            "flow": flow_layout(sent),
            "answer": answer_layout(received),
            "taken": counts_layout(received),
            "flit": flit_layout(params),
        }
    )


def piece_bits(params: Params, word_bits: int) -> int:
    """Return the wires that words of so many bits, each with its CRC, need."""
    return -(-(word_bits + crc32c.WIDTH) // params.link.flit_cycles)


def wire(bits: int) -> wiring.Signature:
    """Return the signature of one direction of a wire, from the sender's view.

    A word with its CRC behind it comes in pieces, the low bits first, in cycles behind each other.

    - `valid`: there is a piece. A wire that is cut has none.
    - `first`: it is the first of its word.
    - `bits`: the piece.
    """
    return wiring.Signature({"valid": Out(1), "first": Out(1), "bits": Out(bits)})


def crc_of(word: Value) -> Value:
    """Return the CRC32C of a word, filled up with zeros to whole bytes."""
    count = -(-len(word) // 8)
    begin = crc32c.apply(crc32c.zeros(count), crc32c.ONES) ^ crc32c.ONES
    return product(crc32c.data(count), word) ^ Const(begin, crc32c.WIDTH)
