"""Theorems on Synergy."""
