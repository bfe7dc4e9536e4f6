"""Theorems on Gandiva."""
