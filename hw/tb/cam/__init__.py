"""Bench of the block CAM, against `pymodel.spec.cam.BlockCam`: every hit, frame and place."""
