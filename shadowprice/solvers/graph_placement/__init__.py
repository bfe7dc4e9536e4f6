"""Placement of job graphs' replicas. Adding a rule is adding a file with ``GRAPH_PLACEMENTS``."""
