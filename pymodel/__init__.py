"""Models in plain Python: executable specification, traces, and what is built on them."""
