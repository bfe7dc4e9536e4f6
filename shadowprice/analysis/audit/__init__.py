"""Audits: what a scheduler did, verified, measured, and against what any scheduler could have done."""
