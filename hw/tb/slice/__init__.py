"""Bench of a slice: traffic over its links, judged by the specification along the order log, bytes included."""
