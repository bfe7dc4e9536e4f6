"""Lower bounds of the offline optimum, one a file."""
