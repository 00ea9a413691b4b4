"""The data path of a slice, between the core's verdicts and the memory channels."""
