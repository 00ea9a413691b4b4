"""The bench of a whole node, compiled: what one slice has, for each of them."""
