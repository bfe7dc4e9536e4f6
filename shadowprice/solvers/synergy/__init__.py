"""Synergy (OSDI'22): CPUs and memory by the sensitivity of jobs."""
