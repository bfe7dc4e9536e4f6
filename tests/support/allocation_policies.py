"""Allocation policies that laws are held for, as they are written: a name, and settings behind a colon."""

from __future__ import annotations

from shadowprice.solvers.gavel.earlier_names import WRITTEN_NOW
from shadowprice.solvers.registry import allocations

EVERY_POLICY = sorted({*allocations(), *WRITTEN_NOW.values()})
"""Every policy as it is, and under the settings for which Gavel's code has a name."""


def with_settings(policy: str, *settings: str) -> str:
    """A policy with further settings.

    >>> with_settings("pop", "parts=8", "packed=true")
    'pop:parts=8,packed=true'
    """
    base, _, own = policy.partition(":")
    several = [each for each in (own, *settings) if each]
    return f"{base}:{','.join(several)}" if several else base
