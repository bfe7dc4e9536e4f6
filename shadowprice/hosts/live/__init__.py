"""Real hosts: the engine's loop on a wall clock, over processes that train."""
