"""Commands of a service and of its users."""
