"""What would be optimal: declarative Pyomo models, one formulation a file."""
