"""Predictors of iterations, one kind a file; each lists what it offers in ``PREDICTORS``."""
