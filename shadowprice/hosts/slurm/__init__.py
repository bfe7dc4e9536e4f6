"""A Slurm cluster."""
