"""How the specification says that it broke its own contract."""

from hw.params.errors import KvnodeError


class InvariantViolation(KvnodeError, AssertionError):
    """An invariant of the contract, by its number, does not hold."""

    def __init__(self, number: int, message: str) -> None:
        super().__init__(f"invariant {number}: {message}")
        self.number = number


def invariant(number: int, holds: bool, message: str, *subjects: object) -> None:
    """Raise InvariantViolation unless ``holds``; the subjects are put into the message's braces only then."""
    if not holds:
        raise InvariantViolation(number, message.format(*subjects))
