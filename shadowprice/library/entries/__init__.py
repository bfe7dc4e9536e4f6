"""Entries: of an instance and an objective the best schedule and the best bound that are known, as files."""
