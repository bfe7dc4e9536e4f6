"""Theorems on Hadar and HadarE."""
