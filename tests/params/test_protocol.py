"""The words of the protocol: one meaning a status, one order of refusals, identifiers that fit their words."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hw.params import InputError
from hw.params.commands import Command
from hw.params.protocol import PRECEDENCE, REGISTERS, Handle, Opcode, PinId, SessionId, SlotId, Status

REFUSALS_OF_ALL = [Status.INVALID, Status.UNAVAILABLE, Status.DENIED, Status.STALE, Status.RETIRED, Status.RANGE]


def test_every_status_has_a_meaning_of_its_own_in_one_line() -> None:
    meanings = [status.meaning for status in Status]
    assert len(set(meanings)) == len(Status)
    assert all(meaning and meaning.isprintable() for meaning in meanings)


def test_statuses_are_numbered_from_zero_without_gaps() -> None:
    assert [int(status) for status in Status] == list(range(len(Status)))


def test_precedence_has_every_refusal_that_comes_before_others_once() -> None:
    assert list(PRECEDENCE) == REFUSALS_OF_ALL


def test_every_opcode_has_one_command_and_five_bits_are_enough() -> None:
    kinds = {each.__name__: each.opcode for each in Command.__subclasses__() if hasattr(each, "opcode")}  # no task
    assert sorted(kinds.values()) == sorted(Opcode)
    assert all(0 < opcode < 32 for opcode in Opcode)


def test_what_the_administrator_may_do_is_what_tenants_may_not() -> None:
    assert [opcode.name for opcode in Opcode if opcode.administrative] == [
        "BIND",
        "SET_PARTITION",
        "DROP_PARTITION",
        "SET_MODEL",
        "RETIRE",
        "SET_EPOCH",
    ]


def test_no_ring_has_the_stamp_of_the_registers() -> None:
    assert REGISTERS.port < 0


VECTORS = {
    Handle(0, 0, 0, 0, 0): 0,
    Handle(0, 0, 0, 0, 1): 1,
    Handle(0, 0, 0, 1, 0): 1 << 64,
    Handle(0, 0, 1, 0, 0): 1 << 96,
    Handle(0, 1, 0, 0, 0): 1 << 116,
    Handle(1, 0, 0, 0, 0): 1 << 122,
    Handle(63, 63, (1 << 20) - 1, (1 << 32) - 1, (1 << 64) - 1): (1 << 128) - 1,
    Handle(0x15, 0x2A, 0x12345, 0x89ABCDEF, 0x0123456789ABCDEF): 0x56A1234589ABCDEF0123456789ABCDEF,
}
SLOTS = {
    SlotId(0, 1): 1,
    SlotId(1, 0): 1 << 48,
    SlotId(0xFFFF, (1 << 48) - 1): (1 << 64) - 1,
    SlotId(0x1234, 0x56789ABCDEF0): 0x123456789ABCDEF0,
}


@pytest.mark.parametrize("handle", VECTORS)
def test_the_word_of_a_handle_is_fixed(handle: Handle) -> None:
    assert handle.pack() == VECTORS[handle]
    assert Handle.unpack(VECTORS[handle]) == handle


@pytest.mark.parametrize("slot", SLOTS)
@pytest.mark.parametrize("kind", [PinId, SessionId])
def test_the_word_of_a_pin_or_session_is_fixed(slot: SlotId, kind: type[SlotId]) -> None:
    assert kind(*slot).pack() == SLOTS[slot]
    assert kind.unpack(SLOTS[slot]) == slot
    assert type(kind.unpack(SLOTS[slot])) is kind


@settings(deadline=None)
@given(st.integers(0, (1 << 128) - 1))
def test_every_word_is_one_handle(word: int) -> None:
    assert Handle.unpack(word).pack() == word


@settings(deadline=None)
@given(st.integers(0, (1 << 64) - 1))
def test_every_word_is_one_slot(word: int) -> None:
    assert PinId.unpack(word).pack() == word


@pytest.mark.parametrize("field", Handle._fields)
def test_a_value_that_would_run_over_into_its_neighbour_is_refused(field: str) -> None:
    widths = {"node": 6, "slice": 6, "frame": 20, "generation": 32, "epoch": 64}
    for value in (-1, 1 << widths[field]):
        with pytest.raises(InputError, match=f"{value} does not fit its {widths[field]} bits"):
            Handle(0, 0, 0, 0, 0)._replace(**{field: value}).pack()


def test_a_word_that_is_too_long_is_no_identifier() -> None:
    for word, kind, bits in ((1 << 128, Handle, 128), (-1, Handle, 128), (1 << 64, PinId, 64)):
        with pytest.raises(InputError, match=f"expected a word of {bits} bits"):
            kind.unpack(word)
