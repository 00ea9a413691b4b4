"""The lock of a device, which nobody gets past once the device is closed."""

from collections.abc import Callable
from threading import RLock
from typing import Self

from sw.driver.errors import DeviceError


class Gate:
    """A lock that its holder may take again; DeviceError once it is ``closed``, for those who wait for it too."""

    def __init__(self) -> None:
        self._lock = RLock()
        self.closed = False

    def __enter__(self) -> Self:
        self._lock.acquire()
        if self.closed:
            self._lock.release()
            raise DeviceError("the device is closed, expected a new one on a new transport")
        return self

    def __exit__(self, *exc: object) -> None:
        self._lock.release()

    def shut(self, release: Callable[[], None]) -> None:
        """Shut it for good, behind whoever is inside; the first time, ``release`` is called then."""
        with self._lock:
            if not self.closed:
                self.closed = True
                release()
