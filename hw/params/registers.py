"""What only registers carry: kinds of logged errors, what a ring is bound to, and the names of counters."""

from enum import IntEnum

from hw.params.protocol import FrameState, Status


class ErrorKind(IntEnum):
    """What an entry of the error log reports."""

    CAM_ECC = 1
    FRAME_ECC = 2
    MEM_ERROR = 3
    POISON = 4
    CRC = 5
    LOST = 6
    TABLE_ECC = 7
    LINK = 8

    @property
    def meaning(self) -> str:
        """One sentence for documents, with the meaning of the entry's code."""
        return _MEANINGS[self]


_MEANINGS = {
    ErrorKind.CAM_ECC: "a word of the block CAM had more than one bit wrong; code: its bank",
    ErrorKind.FRAME_ECC: "a word of a frame's state had more than one bit wrong; the frame is quarantined",
    ErrorKind.MEM_ERROR: "memory failed to store a segment",
    ErrorKind.POISON: "memory returned bytes that fail their check",
    ErrorKind.CRC: "the CRC32C to seal did not match the bytes accepted",
    ErrorKind.LOST: "a ring was lost",
    ErrorKind.TABLE_ECC: "a word of another table had more than one bit wrong; no command is taken until a restart",
    ErrorKind.LINK: "a port was lost: nothing came over its link for too long, or its other end was reset",
}


class Bound(IntEnum):
    """What BIND binds a ring to, in ADMIN_RING.binding."""

    NONE = 0
    PARTITION = 1
    ADMINISTRATIVE = 2


COUNTERS = (
    *(f"status_{status.name.lower()}" for status in Status),
    "evictions",
    "replacement_stall_steps",
    "cam_refusals",
    "ecc_corrected",
    "ecc_uncorrected",
)
"""What is counted since the last restart."""

LEVELS = (*(f"frames_{state.name.lower()}" for state in FrameState), "pins_used", "sessions_used", "parked_used")
"""What is in use at the moment."""
