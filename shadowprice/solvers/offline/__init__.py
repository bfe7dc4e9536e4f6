"""The offline optimum, bounds of it, and good schedules: what online policies are compared with."""
