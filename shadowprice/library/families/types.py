"""GPU types: a job is faster on some GPUs than on others, or runs on some alone."""

from __future__ import annotations

from shadowprice.instances.objective import Objective
from shadowprice.library.families.family import Declaration, Family
from shadowprice.library.recipes.generated import Generated
from shadowprice.library.recipes.trace_cut import TraceCut

_BOTH = (Objective.FLOW, Objective.MAKESPAN)
_RATES = "gavel-simulation-throughputs"

SPEEDS = {
    "resnet-50": {"v100": 1.0, "p100": 0.5, "k80": 0.2},
    "vgg-19": {"v100": 1.0, "p100": 0.625, "k80": 0.25},
    "bert-large": {"v100": 1.0, "p100": 0.375, "k80": 0.125},
    "gpt-2-medium": {"v100": 1.0, "p100": 0.375, "k80": 0.0},
    "t5-base": {"v100": 1.0, "p100": 0.5, "k80": 0.0},
    "resnet-18": {"v100": 1.0, "p100": 0.875, "k80": 0.5},
}
"""Units of work a second by model and GPU type; ours, of the order of what is measured."""

_FEW = {"gang_shares": {1: 5, 2: 3, 4: 2}, "spread_low": 0.1}

FAMILY = Family(
    "types",
    "A job is faster on some GPU types than on others, and runs on some alone.",
    (
        Declaration(
            Generated(
                "recurrent",
                10,
                1,
                "1x2:v100,1x2:p100,1x4:k80",
                {"gang_shares": {1: 5, 2: 3}, "load": 3.0, "gpus_total": 5},
                speeds=SPEEDS,
            ),
            _BOTH,
        ),
        Declaration(
            Generated(
                "recurrent",
                10,
                2,
                "1x4:v100,1x4:p100",
                {**_FEW, "load": 3.0, "gpus_total": 6},
                speeds=SPEEDS,
            ),
            preemptive=False,
        ),
        Declaration(
            TraceCut("gavel-small-test", 20, 0, "1x2:v100,1x2:p100,1x2:k80", throughputs=_RATES)
        ),
        Declaration(
            Generated(
                "recurrent",
                100,
                1,
                "2x4:v100,2x4:p100,2x4:k80",
                {**_FEW, "load": 0.7, "gpus_total": 24},
                speeds=SPEEDS,
            ),
            _BOTH,
        ),
        Declaration(
            TraceCut(
                "gavel-minimize-makespan", 100, 0, "4x4:v100,4x4:p100,4x4:k80", throughputs=_RATES
            ),
            (Objective.MAKESPAN,),
        ),
        Declaration(
            TraceCut(
                "gavel-max-min-fairness", 96, 0, "3x4:v100,3x4:p100,3x4:k80", throughputs=_RATES
            ),
        ),
        Declaration(
            Generated(
                "recurrent",
                1000,
                1,
                "6x4:v100,6x4:p100,6x4:k80",
                {"load": 0.6, "gpus_total": 64, "gang_shares": {1: 5, 2: 3, 4: 2, 8: 1}},
                speeds=SPEEDS,
            ),
        ),
        Declaration(
            TraceCut(
                "gavel-msr-seed0-103959", 861, 0, "1x4:v100,2x4:p100,2x4:k80", throughputs=_RATES
            ),
        ),
        Declaration(
            Generated(
                "recurrent",
                10_000,
                1,
                "16x4:v100,16x4:p100,16x4:k80",
                {"load": 0.55, "gpus_total": 176, "gang_shares": {1: 5, 2: 3, 4: 2, 8: 1}},
                speeds=SPEEDS,
            ),
        ),
    ),
)
"""The family."""
