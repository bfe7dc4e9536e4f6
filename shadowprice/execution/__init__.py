"""Execution: the engine, simulated hosts, presets of published simulators."""
