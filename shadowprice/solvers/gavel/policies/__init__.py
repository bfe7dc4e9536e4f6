"""Allocation policies of Gavel and their kin, one a file; each lists what it offers in ``ALLOCATIONS``."""
