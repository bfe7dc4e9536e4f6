"""Hosts that run leases: one package a host, found by its name."""
