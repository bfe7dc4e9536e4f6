"""Allocation policies of Gavel and their kin: which share of each GPU type every job should get."""
