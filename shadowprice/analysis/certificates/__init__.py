"""Certificates of runs, as they are written: their records, and what their bounds are about."""
