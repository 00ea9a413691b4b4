"""Bench of registers behind AXI4-Lite, against a model made from the same register map."""
