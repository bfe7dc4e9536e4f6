"""Sia: configurations of GPUs for jobs by an integer programme in every round."""
