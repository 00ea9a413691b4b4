"""The executable specification: small, slow, obviously correct; the judge of all the rest."""

from pymodel.spec.internal import IllegalOperation
from pymodel.spec.slice import Slice
from pymodel.spec.violation import InvariantViolation

__all__ = ["IllegalOperation", "InvariantViolation", "Slice"]
