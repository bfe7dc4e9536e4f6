r"""LB-job: no job ends before it could alone.

Statement. For every schedule, of any kind, :math:`\sum_j w_j C_j \ge \sum_j w_j (r_j + p_j)`, with :math:`p_j`
the shortest possible processing time, over all placements, conditions and partners on the same GPUs, and
:math:`w_j \ge 0`.

Status. Trivial. Proof: j runs for at least :math:`p_j`, all of it after :math:`r_j`, so
:math:`C_j \ge r_j + p_j`.
"""

from __future__ import annotations

from fractions import Fraction

from shadowprice.instances.features import require
from shadowprice.instances.grid import TICKS_PER_S, to_ticks
from shadowprice.instances.instance import Instance
from shadowprice.instances.sharing_gain import SharingGain
from shadowprice.solvers.offline.bounds import KNOWS as RELAXED_KNOWS

STATUS = "trivial"

KNOWS = RELAXED_KNOWS


def bound(instance: Instance) -> Fraction:
    """Lower bound of total weighted completion time [s], exact.

    Raises
    ------
    InputError
        If the instance has features that are not in ``KNOWS``.
    """
    require(instance, KNOWS, "LB-job")
    jobs, gain = instance.workload, SharingGain.of(instance)
    # Beside a partner a job may be faster than alone: its service is what it needs at least.
    least = to_ticks(instance.shortest_s).tolist() if gain is None else gain.service
    rows = zip(jobs.weight.tolist(), to_ticks(jobs.arrival_s).tolist(), least, strict=True)
    terms = (Fraction(w) * (release + ticks) for w, release, ticks in rows)
    return sum(terms, Fraction(0)) / TICKS_PER_S


def check(instance: Instance, weighted_completion_s: float | Fraction) -> bool:
    """True if a schedule's total weighted completion time [s] respects the bound."""
    return Fraction(weighted_completion_s) >= bound(instance)
