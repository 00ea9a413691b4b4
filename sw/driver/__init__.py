"""The driver: transports, a device on one of them, and clients of the device."""

from sw.driver.client import Client, Put
from sw.driver.device import Device, Ticket
from sw.driver.errors import BufferMismatch, CommandFailed, DeviceError, Diverged, RegisterError
from sw.driver.transport import SpecificationTransport, Transport

__all__ = [
    "BufferMismatch",
    "Client",
    "CommandFailed",
    "Device",
    "DeviceError",
    "Diverged",
    "Put",
    "RegisterError",
    "SpecificationTransport",
    "Ticket",
    "Transport",
]
