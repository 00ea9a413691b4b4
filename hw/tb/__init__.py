"""Testbenches: what every bench is made of, and one folder of cocotb tests a block."""
