"""Measuring how fast jobs are by CPUs and memory."""
