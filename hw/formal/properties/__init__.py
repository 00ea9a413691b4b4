"""The properties, one module a group; each lists its own in `PROPERTIES`."""
