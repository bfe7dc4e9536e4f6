"""Compiled loop for index policies: the same schedules as the engine's, in a fraction of its time."""
