"""Proofs of the hardware: properties by invariant number, and the machinery that proves them.

A property is a design whose inputs are free, with the unit under proof inside and claims about it (`Assert`), rules for
its surroundings (`Assume`) and situations that must be possible (`Cover`), so that no rule makes a claim empty.
A guard is a line of the hardware without which a property is not proved, so that every claim can fail.
"""

from hw.formal.guard import Guard, removed, without
from hw.formal.property import Bounded, Induction, Method, Pdr, Property
from hw.formal.prove import Outcome, Verdict, prove
from hw.formal.registry import all_guards, all_properties, choose

__all__ = [
    "Bounded",
    "Guard",
    "Induction",
    "Method",
    "Outcome",
    "Pdr",
    "Property",
    "Verdict",
    "all_guards",
    "all_properties",
    "choose",
    "prove",
    "removed",
    "without",
]
