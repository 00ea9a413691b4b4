"""What drives a slice in tests and when it runs alone: seeded traffic, faults, and the order of operations."""
