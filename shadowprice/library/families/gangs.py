"""Rigid gangs: every job holds a number of GPUs together, and all GPUs are alike."""

from __future__ import annotations

from shadowprice.instances.objective import Objective
from shadowprice.library.families.family import Declaration, Family
from shadowprice.library.recipes.generated import Generated
from shadowprice.library.recipes.trace_cut import TraceCut

_BOTH = (Objective.FLOW, Objective.MAKESPAN)
_NARROW = {"gang_shares": {1: 5, 2: 3, 4: 2}}
_FEW = {"sigma": 1.0, "gang_shares": {1: 4, 2: 3, 3: 1, 4: 2}}

FAMILY = Family(
    "gangs",
    "Every job holds a number of GPUs together, and all GPUs are alike.",
    (
        Declaration(
            Generated("lognormal", 10, 1, "1x4", {**_FEW, "load": 3.0, "gpus_total": 4}), _BOTH
        ),
        Declaration(
            Generated("lognormal", 10, 2, "2x4", {**_FEW, "load": 3.0, "gpus_total": 8}),
            _BOTH,
            preemptive=False,
        ),
        Declaration(
            Generated(
                "lognormal",
                10,
                3,
                "1x4",
                {**_FEW, "load": 2.0, "gpus_total": 4},
                weights=(1, 2, 4, 8),
            )
        ),
        Declaration(TraceCut("philly-flat", 10, 33_000, "1x4", 4, 300.0, 20_000.0)),
        Declaration(
            Generated("lognormal", 100, 1, "4x4", {**_NARROW, "load": 1.5, "gpus_total": 16}),
            _BOTH,
        ),
        Declaration(
            Generated(
                "lognormal",
                100,
                2,
                "2x8",
                {**_NARROW, "load": 1.0, "gpus_total": 16, "sigma": 1.0},
            ),
            _BOTH,
            preemptive=False,
        ),
        Declaration(Generated("lognormal", 100, 3, "4x4", {"load": 1.0, "gpus_total": 16})),
        Declaration(TraceCut("philly-flat", 100, 65_500, "4x4", 16, 60.0, 100_000.0), _BOTH),
        Declaration(
            Generated("lognormal", 1000, 1, "16x4", {"load": 1.1, "gpus_total": 64}), _BOTH
        ),
        Declaration(TraceCut("philly-flat", 1000, 24_500, "16x8", 32, 60.0, 200_000.0)),
        Declaration(
            Generated("lognormal", 10_000, 1, "32x8", {"load": 1.0, "gpus_total": 256}),
        ),
        Declaration(TraceCut("philly-flat", 10_000, 16_000, "32x8", 32, 60.0, 200_000.0)),
    ),
)
"""The family."""
