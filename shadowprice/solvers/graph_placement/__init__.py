"""Where the replicas of a job graph go. Adding a rule is adding a file with ``GRAPH_PLACEMENTS``."""
