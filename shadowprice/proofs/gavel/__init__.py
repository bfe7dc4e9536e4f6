"""Theorems on allocations in the manner of Gavel."""
