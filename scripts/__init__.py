"""The kvnode command: one module a subcommand. Knows all; nothing imports it."""
