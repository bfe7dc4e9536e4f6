"""Factors of the speed of a run: throughputs, profiles, locality, width, sharing."""
