"""The guards, one module a group; each lists its own in `GUARDS`."""
