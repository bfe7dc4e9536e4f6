"""Gavel's simulator."""
