"""Terms: what instances say of how jobs run, one module each; how they compose is in :mod:`.term`."""
