"""Terms of instances, one module each: rates and factors of runs, and their fields."""
