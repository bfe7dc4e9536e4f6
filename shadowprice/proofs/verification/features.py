"""Features of instances that some rule of the verifier is about."""

from __future__ import annotations

from shadowprice.instances.features import Feature

KNOWS = frozenset(
    {
        Feature.RATES,
        Feature.TYPES,
        Feature.CHARGES,
        Feature.SHARING,
        Feature.GRAPHS,
        Feature.PROFILES,
        Feature.SPREAD,
        Feature.WIDTHS,
        Feature.COPIES,
        Feature.FAILURES,
        Feature.QUOTAS,
        Feature.PARTS,
        Feature.CORES,
        Feature.CPU_MEMORY,
        Feature.WINDOW,
        Feature.STOPPED,
        Feature.RESTART,
        Feature.RACKS,
        Feature.GOODPUT,
        Feature.OWN,  # each by a rule of its own
    }
)
"""Features that the rules are about: what no rule knows is not approved."""
