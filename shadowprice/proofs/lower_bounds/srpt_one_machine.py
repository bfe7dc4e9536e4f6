r"""SRPT-1: on one machine SRPT minimises total completion time.

Statement. One machine that works on one job at a time, jobs with release dates :math:`r_j \ge 0` and processing
times :math:`p_j > 0`, preemption without cost. Among all schedules, also those that know the future, running
at every moment an available job with least remaining time minimises
:math:`\sum_j C_j`, hence also :math:`\sum_j (C_j - r_j)`.

Status. Classic: Schrage, Operations Research 16(3), 1968.

Proof. Take an optimal schedule that differs from SRPT, and the first moment t from which it runs
job k although an available job i has less remaining: :math:`q_i(t) < q_k(t)`.

1. After t, the schedule spends :math:`q_i + q_k` units on the two jobs together, in some set of
   moments A. Refill A: first finish i, then run k. Nothing else moves.
2. The later of the two ends where A ends, as before. The earlier now ends after the first
   :math:`q_i = \min(q_i, q_k)` units of A; before, whichever of the two ended first needed at
   least :math:`\min(q_i, q_k)` units of A. So the sum of the two completions did not grow.
3. Both jobs are available from t on, so releases are respected. The schedule now agrees with SRPT
   for longer; there are finitely many exchanges, since SRPT changes jobs at releases and
   completions only. Q.E.D.

Check. The exact value of ``fluid_ticks`` with one GPU is SRPT's; it is compared with exhaustive
search over slot schedules.
"""

from __future__ import annotations

from fractions import Fraction

from shadowprice.instances.features import Feature
from shadowprice.instances.grid import TICKS_PER_S, to_ticks
from shadowprice.instances.instance import Instance
from shadowprice.proofs.described_run import DescribedRun, missing_in, not_of_policy
from shadowprice.proofs.hypotheses import Hypotheses, not_one_gpu, not_one_weight
from shadowprice.solvers.classic.srtf import Srtf
from shadowprice.solvers.offline.bounds import fluid_ticks

STATUS = "classic"

KNOWS: frozenset[Feature] = frozenset({Feature.RATES})
"""Run times may be work over throughput."""

HYPOTHESES = Hypotheses("SRPT-1", KNOWS, (not_one_gpu, not_one_weight))


def missing_hypotheses(run: DescribedRun) -> tuple[str, ...]:
    """Hypotheses under which SRPT is the optimum that a run does not meet, in words."""
    return missing_in(run, HYPOTHESES, not_of_policy(run, Srtf, "srtf"))


def bound(instance: Instance) -> Fraction:
    """The optimal total completion time [s] of an instance with one GPU.

    Raises
    ------
    InputError
        If there are more, or another hypothesis fails.
    """
    HYPOTHESES.expect(instance)
    release = to_ticks(instance.workload.arrival_s).tolist()
    work = to_ticks(instance.shortest_s).tolist()
    return Fraction(fluid_ticks(release, work, [1] * len(work), 1), TICKS_PER_S)


def check(instance: Instance, total_completion_s: float | Fraction) -> bool:
    """True if a schedule's total completion time [s] is no less than the optimum.

    Raises
    ------
    InputError
        If a hypothesis fails.
    """
    return bound(instance) <= Fraction(total_completion_s)
