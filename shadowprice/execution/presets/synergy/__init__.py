"""Synergy's simulator."""
