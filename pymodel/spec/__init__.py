"""The executable specification: small, slow, obviously correct; the judge of all the rest."""

from pymodel.spec.check.violation import InvariantViolation
from pymodel.spec.internal import IllegalOperation
from pymodel.spec.slice import Slice

__all__ = ["IllegalOperation", "InvariantViolation", "Slice"]
