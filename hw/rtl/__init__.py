"""The hardware in Amaranth: one component a file, one concept a component."""
