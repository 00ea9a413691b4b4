"""Bench of the SRAM, against a dictionary."""
