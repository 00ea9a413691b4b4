"""Links with replay: a wire that does what wires do, and who uses the ends."""
