"""Scheduling algorithms: online policies, placements, the offline optimum and its bounds."""
