"""Analysis: outcomes and their metrics, comparisons with what was possible, plots."""
