"""Estimates with intervals."""
