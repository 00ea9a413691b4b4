"""Bench of the core of a slice: random operations, judged by the specification along the order log."""
