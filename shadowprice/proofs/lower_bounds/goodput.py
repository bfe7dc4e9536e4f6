r"""LB-goodput: jobs that go through epochs at measured goodput are jobs with a least time on each number of GPUs.

Statement. Job :math:`j` has epochs :math:`e`, each with progress :math:`\ell_e`; while it holds :math:`w` GPUs
it makes progress at no more than :math:`g_e(w)`, which does not fall in :math:`w`: the largest goodput of any
placement of :math:`w` GPUs or fewer and any batch that it may have. With :math:`t_e(w) = \ell_e / g_e(w)`, any
shares :math:`\mu_e \ge 0` that add up to 1, and

.. math:: T(w) = \min_{e: \mu_e > 0} \frac{t_e(w)}{\mu_e}

every schedule in which :math:`j` is complete at :math:`C_j` has, of the times :math:`\tau_k` for which its runs
make progress on :math:`w_k` GPUs until then, :math:`\sum_k \tau_k / T(w_k) \ge 1`. So each lower bound of the
instance whose jobs take :math:`T(w)` on :math:`w` GPUs, of total flow time, weighted completion or makespan, is
one of that with goodput. Where epochs may end at the nearest whole second, :math:`t_e(w)` is taken less its
part :math:`1 / (2 t_e(m))`, :math:`m` being all GPUs. And :math:`T(1)` may be lowered to the least :math:`w\,T(w)`
, so that :math:`w` GPUs are at most :math:`w` times as fast as one.

Status. Ours; the shares are those by which a chain of operations becomes one job.

Proof.

1. In epoch e run k makes progress for :math:`\tau_{ek}`, at no more than :math:`g_e(w_k)`, and all of :math:`\ell_e` is
   made: :math:`\sum_k \tau_{ek} / t_e(w_k) \ge 1`. Ticks that an epoch takes are rounded up. On whole seconds its last
   run may lack half a second of its own progress, no more than :math:`g_e(m) / 2` of it: the part
   :math:`1 / (2 t_e(m))` of the epoch.
2. :math:`\mu_e / t_e(w) \le 1 / T(w)`. Hence :math:`\sum_k \tau_k / T(w_k) \ge \sum_e \mu_e \sum_k \tau_{ek} / t_e(w_k)
   \ge \sum_e \mu_e = 1`.
3. Let the job of the other instance hold what j holds when j does, and be complete when its shares add up to 1: that
   is at C_j or before. Charges, capacities and releases are the same, and GPUs left idle by it are no harm. A smaller
   T(1) makes it no slower. Q.E.D.

The relaxation is computed in doubles and lowered by more than they err (``instances/goodput/relaxation.py``); T is a
whole number of ticks, never increasing.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from shadowprice.instances.features import Feature, require
from shadowprice.instances.grid import TICKS_PER_S, to_ticks
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.instances.schedule import Schedule
from shadowprice.solvers.offline.bounds import simple_bounds

STATUS = "ours"

KNOWS = frozenset(
    {
        Feature.GOODPUT,
        Feature.CHARGES,  # only restrict
        Feature.CPU_MEMORY,  # only restrict
    }
)


def bound(instance: Instance, objective: Objective = Objective.FLOW) -> Fraction:
    """Lower bound of a schedule's cost [s] by the plain bounds of least times.

    Raises
    ------
    InputError
        If the instance has features that are not in ``KNOWS``.
    ValueError
        If its jobs have no goodput.
    """
    relaxed = _relaxed(instance)
    result = (each for one in relaxed for each in simple_bounds(one, objective))
    return max(each.ticks for each in result) / TICKS_PER_S


def least_ticks(relaxed: Instance, job: int) -> list[int]:
    """T(1), T(2) and so on of a job [ticks], as bounds of the relaxed instance have it."""
    elasticity = relaxed.elasticity
    assert elasticity is not None
    whole = int(to_ticks(relaxed.workload.work[job : job + 1])[0])
    width = np.arange(1, int(elasticity.widest[job]) + 1)
    speeds = elasticity.speed(np.full(len(width), job), np.ones_like(width), width)
    return [max(int(np.ceil(whole / speed)), 1) for speed in speeds.tolist()]


def check(instance: Instance, schedule: Schedule) -> bool:
    """True if the runs of every job are long enough for it, in exact fractions; O(rows).

    Parameters
    ----------
    schedule : Schedule
        One in which all jobs are complete.

    Raises
    ------
    InputError, ValueError
        As of :func:`bound`.
    """
    s = schedule
    width = np.zeros(len(s), dtype=np.int64)
    runs, pieces = np.unique(np.stack((s.job, to_ticks(s.start_s))), axis=1, return_inverse=True)
    held = np.bincount(pieces.ravel(), s.gpus, minlength=runs.shape[1]).astype(np.int64)
    width[:] = held[pieces.ravel()]
    ran = to_ticks(s.end_s - s.start_s - s.overhead_s).tolist()
    first = np.unique(pieces.ravel(), return_index=True)[1].tolist()
    for relaxed in _relaxed(instance):
        done = [Fraction(0)] * len(instance.workload)
        least = [least_ticks(relaxed, job) for job in range(len(done))]
        for row in first:
            job = int(s.job[row])
            known = least[job]
            done[job] += Fraction(ran[row], known[min(int(width[row]), len(known)) - 1])
        if any(each < 1 for each in done):
            return False
    return True


def _relaxed(instance: Instance) -> tuple[Instance, ...]:
    require(instance, KNOWS, "LB-goodput")
    if instance.course is None:
        raise ValueError("jobs have no goodput, expected a table of what was measured of each")
    return instance.relaxations
