"""A design of three gates that shows when the simulator takes what is driven, and when it may be read."""
