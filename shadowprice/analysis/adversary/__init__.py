"""Adversaries: the instance of a family on which a policy is worst."""
