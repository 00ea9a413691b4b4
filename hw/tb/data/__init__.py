"""Benches of the data path: what lies in memory and what comes out against bytes in a dictionary."""
