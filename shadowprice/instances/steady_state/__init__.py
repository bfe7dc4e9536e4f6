"""Measurement in a steady state: which jobs are measured, and workloads that never end around them."""
