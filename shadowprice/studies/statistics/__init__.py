"""Statistics of runs: intervals, warm-up, paired differences, stability, rankings."""
