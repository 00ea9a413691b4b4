"""The block CAM: from (partition, model, key) to frame, one request a cycle."""

from hw.rtl.node.cam.cam import Cam

__all__ = ["Cam"]
