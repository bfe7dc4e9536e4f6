"""Where leases run: one package a host, found by its name."""
