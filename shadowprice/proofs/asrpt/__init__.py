"""Theorems on A-SRPT."""
