"""Software: the driver that engines use."""
