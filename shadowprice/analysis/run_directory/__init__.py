"""Run directories: enough on disk to verify a run, and to plot it, again."""
