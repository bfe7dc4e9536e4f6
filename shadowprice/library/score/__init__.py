"""Score of an online policy: certified ratios on a fixed suite of instances, and where each was lost."""
