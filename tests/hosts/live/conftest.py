"""Fixtures of tests of real runs."""

from __future__ import annotations

from support.in_memory_runs import no_power_cuts

__all__ = ["no_power_cuts"]
