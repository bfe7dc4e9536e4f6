"""Where leases run: one file a host, found by its name."""
