"""The preemptive optimum of a few jobs: orders of completions, their windows, and prices of time within them."""
