"""Policies that follow an order of all jobs and a choice for each, which a search varies."""
