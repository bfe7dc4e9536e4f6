"""Gandiva (OSDI'18): time slicing, and introspection that packs, migrates and grows."""
