"""Bench of the segment CRC32C unit, against the google-crc32c library."""
