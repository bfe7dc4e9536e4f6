"""Theorems on Tiresias."""
