"""Guarantees of theorems for runs, by system: a file for the policies of each."""
