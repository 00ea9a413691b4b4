"""How hardware is reached: registers, memory that it can reach too, and interrupts."""

from abc import ABC, abstractmethod


class Bus(ABC):
    """What an operating system gives a driver. Not thread-safe.

    Units of registers are numbered: of S slices, 0 to S - 1, then those of the requesters, by their ports.
    """

    @abstractmethod
    def read(self, unit: int, offset: int) -> int:
        """The 32-bit register at a byte offset of a unit; RegisterError where there is none."""

    @abstractmethod
    def write(self, unit: int, offset: int, value: int) -> None:
        """Write it, after all that was written to memory before; RegisterError if the device refuses."""

    @abstractmethod
    def map(self, port: int, view: memoryview, *, writable: bool) -> int:
        """Let the requester of a port reach bytes, in place: the address by which it does, a multiple of 4096.

        Nothing else can reach them, and it nothing else: an access beyond them fails. Simulators can place any buffer;
        a bus to hardware has to bounce one that does not begin at a page of the host, until ``unmap``.
        """

    @abstractmethod
    def unmap(self, port: int, address: int) -> None:
        """End it. Nothing is read or written there afterwards."""

    @abstractmethod
    def wait(self) -> bool:
        """Sleep until a unit interrupts, or for a while; whether one does."""

    @property
    @abstractmethod
    def cycle(self) -> int | None:
        """The device's clock; None if it has none that could be seen."""

    @abstractmethod
    def close(self) -> None:
        """Release the device; the memory is no longer mapped."""
