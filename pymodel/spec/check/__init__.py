"""The invariants of the contract, checked at every operation of a slice against a ledger kept apart from it."""

from pymodel.spec.check.monitor import Monitor
from pymodel.spec.check.violation import InvariantViolation

__all__ = ["InvariantViolation", "Monitor"]
