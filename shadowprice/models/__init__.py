"""Declarative Pyomo models of the optimisation problems, one formulation a file."""
