"""The machine of the driver."""
