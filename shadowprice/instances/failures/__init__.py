"""Failures of nodes: when they are down, and what jobs save of their work."""
