"""Queue of a run: jobs that come while others run."""
