"""Theorems on total utility: Hadar's prices, on jobs of one GPU and one round whose worth is the same in each round.

Any two of these jobs can change places, so that the most that can be earned is the sum of the largest utilities, as
many as there are GPUs in all rounds: exact, and without rounds as well, for no schedule completes more jobs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from shadowprice.analysis.adversary.tightest.comparisons import (
    TightnessOf,
    WholeColumn,
    WitnessedRatio,
)
from shadowprice.instances.hard_instances import Rows
from shadowprice.proofs.hadar import any_schedule, competitive, run_certificate
from shadowprice.solvers.hadar.commit_schedule import CommittableJob

GPUS, ROUNDS = 2, 2
_ROUND_TICKS = 10


@dataclass(frozen=True)
class Worth:
    """Utility of completion in a round before the end, 0 after.

    Parameters
    ----------
    each : float
    """

    each: float

    def __call__(self, number: int) -> float:
        """Utility if complete at the end of a round."""
        return self.each if number < ROUNDS else 0.0


def _committed(rows: Rows) -> tuple[list[CommittableJob], competitive.Committed]:
    """The jobs in their order, and what the commit-once algorithm makes of them."""
    jobs = [CommittableJob(1, 0, (1,), 1, Worth(float(utility)), ROUNDS - 1) for (utility,) in rows]
    committed = competitive.commit_once(jobs, np.array([GPUS]), np.array([0]), ROUNDS)
    return jobs, committed


def _most(rows: Rows) -> Fraction:
    return Fraction(sum(sorted((utility for (utility,) in rows), reverse=True)[: GPUS * ROUNDS]))


def of_competitive(rows: Rows) -> WitnessedRatio | None:
    """The optimum over what was earned; 2 alpha where statement (c) applies."""
    _, committed = _committed(rows)
    if committed.ratio_bound is None or not committed.earned:
        return None
    return WitnessedRatio(_most(rows) / committed.earned, committed.ratio_bound)


def of_certificate(rows: Rows) -> WitnessedRatio:
    """The dual value of a run's own prices over the optimum."""
    jobs, committed = _committed(rows)
    certificate = run_certificate.certify(
        jobs, np.array([GPUS]), np.array([0]), committed.prices, committed.earned
    )
    return WitnessedRatio(certificate.dual / _most(rows))


def of_any_schedule(rows: Rows) -> WitnessedRatio:
    """The same for schedules without rounds."""
    _, committed = _committed(rows)
    jobs = [
        any_schedule.BoundedJob(
            1, 0, (_ROUND_TICKS,), Fraction(1), (float(utility),) * ROUNDS + (0.0,)
        )
        for (utility,) in rows
    ]
    dual = any_schedule.bound(jobs, np.array([GPUS]), committed.prices, _ROUND_TICKS).dual
    return WitnessedRatio(dual / _most(rows))


def _entry(
    theorem: str, says: str, compare: Callable[[Rows], WitnessedRatio | None], off: Fraction
) -> TightnessOf:
    return TightnessOf(theorem, says, (WholeColumn("utility", 1, 100),), 1, 12, compare, off=off)


# Prices are powers in floats; their last bits may differ from one library to the next.
_POWERS = Fraction(1, 10**9)

ENTRIES = (
    _entry(
        "hadar.competitive",
        f"the largest total utility in {ROUNDS} rounds of {GPUS} GPUs over what was earned, and 2 alpha",
        of_competitive,
        _POWERS,
    ),
    _entry(
        "hadar.run_certificate",
        f"the dual value over the largest total utility in {ROUNDS} rounds of {GPUS} GPUs",
        of_certificate,
        _POWERS,
    ),
    _entry(
        "hadar.any_schedule",
        f"the dual value over the largest total utility in {ROUNDS} rounds of {GPUS} GPUs, rounds or not",
        of_any_schedule,
        _POWERS,
    ),
)
"""Entries of these theorems."""
