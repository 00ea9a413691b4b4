"""Software for the compiled system that is less than a driver."""
