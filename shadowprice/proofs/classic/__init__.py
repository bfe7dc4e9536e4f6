"""Theorems of classic policies."""
