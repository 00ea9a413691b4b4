"""What is done to a segment on its way: checksum, codec, cipher."""

from hw.rtl.transform.crc32c import Crc32c

__all__ = ["Crc32c"]
