"""What the driver raises; every message says what was wrong and what was expected."""

from hw.params.errors import InputError, KvnodeError
from hw.params.protocol import Status


class DeviceError(KvnodeError):
    """The device is not what the driver expects, or does not answer."""


class RegisterError(InputError):
    """A register access that the register map does not allow."""


class BufferMismatch(InputError):
    """A buffer that the data cannot be moved from or to without a copy, or of the wrong size."""


class CommandFailed(KvnodeError):
    """A command ended with a status that its caller did not allow for."""

    def __init__(self, what: str, status: Status) -> None:
        super().__init__(f"{what}: {status.name}, {status.meaning}")
        self.status = status


class Diverged(KvnodeError):
    """A recorded run and the specification that follows it differ."""
