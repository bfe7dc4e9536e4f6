"""Total utility: policies against a certified bound and the offline optimum."""
