"""Where it runs: the engine, simulated hosts, presets of published simulators."""
