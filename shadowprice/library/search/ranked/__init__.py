"""Policies that follow an order of all jobs, and a choice for each: what a search varies, and the engine carries out."""
