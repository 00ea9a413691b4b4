"""The driver: transports, a device on one of them, and clients of the device."""

from sw.driver.aio import AsyncClient
from sw.driver.client import Client, Put
from sw.driver.device import Device, Ticket
from sw.driver.errors import BufferMismatch, CommandFailed, DeviceError, Diverged, RegisterError
from sw.driver.statistics import Statistics
from sw.driver.transport import Bus, MessagesLost, MmioTransport, RingFailed, SpecificationTransport, Transport

__all__ = [
    "AsyncClient",
    "BufferMismatch",
    "Bus",
    "Client",
    "CommandFailed",
    "Device",
    "DeviceError",
    "Diverged",
    "MessagesLost",
    "MmioTransport",
    "Put",
    "RegisterError",
    "RingFailed",
    "SpecificationTransport",
    "Statistics",
    "Ticket",
    "Transport",
]
