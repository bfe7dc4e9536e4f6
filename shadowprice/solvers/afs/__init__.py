"""AFS: elastic shares by comparisons of pairs of jobs."""
