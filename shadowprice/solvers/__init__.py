"""How to decide: online policies, placements, the offline optimum and its bounds."""
