"""Policies that were learned: what they see, what they choose, and how they decide."""
