"""Sealed policies: each in a process of its own, which gets what it may see as bytes and never holds the workload."""
