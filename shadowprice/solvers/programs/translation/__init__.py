"""From Pyomo models to arrays: traced rules expanded by NumPy, all others row by row."""
