"""Certified limits: how much better than a run any scheduler could be, in mean JCT, TTD and makespan.

A published factor over a baseline says little where no scheduler can reach it, and nothing below tells
whether one can. Here the verified cost of a baseline's run is divided by a lower bound of that cost over
all schedules of the same instance, evaluated in exact arithmetic: no scheduler whatever, of the past or to
come, is better by more than this quotient.

What is bounded is every schedule that the verifier accepts on the instance: preemptive or not, wherever it
places gangs, knowing the future; sharing GPUs and growing where the instance lets jobs do so. Measures:

============  ====================================================================  =====================
measure       of a run                                                              arrivals
============  ====================================================================  =====================
mean JCT      mean of completion minus arrival                                      count
TTD           first start to last completion                                        are left out, since
                                                                                    one may wait for all
makespan      first arrival to last completion                                      count
============  ====================================================================  =====================

Of some of the jobs, such as the window whose completion ends a run, the limit holds as well: the others can
only be in the way. Where two jobs may share GPUs a partner may be one of the others: of a window its bound knows them,
for other choices of jobs there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shadowprice.analysis.bounds import certified_bounds
from shadowprice.analysis.certificates.effort import BoundEffort
from shadowprice.analysis.certificates.exact_cost import measured_rows
from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.wording import at_most, cost_in_words, counted
from shadowprice.errors import InputError, VerificationError
from shadowprice.instances.features import DECLARED_KNOWS, Feature, require
from shadowprice.instances.grid import TICKS_PER_S, to_ticks
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import BoundedCost, Objective
from shadowprice.instances.sharing_gain import SharingGain
from shadowprice.solvers.offline.bounds import KNOWS as RELAXED_KNOWS
from shadowprice.solvers.offline.bounds import Bound

KNOWS = (
    RELAXED_KNOWS
    | {Feature.COPIES, Feature.QUOTAS, Feature.PARTS, Feature.WINDOW, Feature.OWN}
    | DECLARED_KNOWS
)
"""Of a run that was stopped no measure is known; jobs outside a window are not measured."""

COLUMNS = 20_000
"""Size of the interval LPs that may sharpen a limit; the other bounds need no programme of that size."""

Rows = NDArray[np.int64]


class Measure(StrEnum):
    """Measures that limits are about; all are better the smaller they are."""

    MEAN_JCT = "mean JCT"
    TTD = "TTD"
    MAKESPAN = "makespan"


@dataclass(frozen=True, repr=False)
class BestPossible(BoundedCost):
    """The best factor over a run that any scheduler could have.

    Parameters
    ----------
    measure : Measure
    policy : str
        Name of the policy that made the run.
    jobs : int
        Jobs that are measured.
    cost_ticks : Fraction
        The run's measure [ticks], from its verified schedule.
    bound_ticks : Fraction
        No schedule has a lower measure [ticks].
    proven_by : Bound
        Where that comes from: its kind, and the class of schedules for which it holds.
    failing : bool
        Whether nodes failed in the run. The bound is about nodes that never do: faults only restrict.
    """

    measure: Measure
    policy: str
    jobs: int
    cost_ticks: Fraction
    bound_ticks: Fraction
    proven_by: Bound
    failing: bool = False

    def _cost_and_bound(self) -> tuple[Fraction, Fraction]:
        return self.cost_ticks, self.bound_ticks

    def __repr__(self) -> str:
        measured = f"{self.policy}'s {self.measure} of {counted(self.jobs, 'job')}"
        return f"BestPossible({measured}: {cost_in_words(self)} by {self.proven_by.kind})"

    def sentence(self) -> str:
        """The limit in words."""
        exact = self.factor
        of_these = f"{self.policy}'s {self.measure} of {_time(self.cost)}"
        if exact is None:
            return f"no bound above 0 of what {self.measure} can be was found"
        where = " on nodes that never fail" if self.failing else ""
        return (
            f"none of all {self.proven_by.holds_for}{where} is more than {at_most(exact)} better than {of_these} "
            f"(certified by {self.proven_by.kind})"
        )

    def to_dict(self) -> dict[str, object]:
        """The limit as JSON has it; an infinite factor is None."""
        return {
            "measure": str(self.measure),
            "policy": self.policy,
            "jobs": self.jobs,
            "cost_s": self.cost,
            "bound_s": self.bound,
            "bound_kind": self.proven_by.kind,
            "class": self.proven_by.holds_for.to_dict(),
            "factor": None if self.factor is None else self.ratio,
            **({"bound_on_nodes": "that never fail"} if self.failing else {}),
        }


def _time(seconds: float) -> str:
    return f"{seconds / 3600:.4g} h" if seconds >= 3600 else f"{seconds:.4g} s"


def limit(
    outcome: Outcome,
    measure: Measure | str,
    *,
    jobs: Rows | None = None,
    columns: int = COLUMNS,
) -> BestPossible:
    """Find how much better than a run any scheduler could be; the same on every run of this function.

    O(n log n) for n jobs and a fixed number of GPU types, besides linear programmes of a size that is
    given.

    Parameters
    ----------
    jobs : ndarray of int, optional
        Rows of the jobs that are measured; if not given all of them, or the window whose completion
        ended the run.
    columns : int
        Size of the interval LPs.

    Raises
    ------
    InputError
        If the measure is unknown, there are no jobs, a row is none of the workload's or of a job that is
        not complete, the instance has features that are not in ``KNOWS``, or only some are measured where two may
        share GPUs.
    VerificationError
        If the run is better than the bound, which would be an error of this package.
    """
    what = _measure(measure)
    require(outcome.instance, KNOWS, "limits")
    rows = _rows(outcome, jobs)
    cost = _COSTS[what](outcome, rows)
    goal, relaxed = _relaxed(outcome.instance, what, rows)
    bound = certified_bounds(relaxed, (goal,), BoundEffort.of_size(columns))[goal]
    ticks = bound.ticks / (len(rows) if what is Measure.MEAN_JCT else 1)
    if cost < ticks:
        raise VerificationError(
            f"{outcome.policy}: {what} of {float(cost / TICKS_PER_S)!r} s is below the bound "
            f"{float(ticks / TICKS_PER_S)!r} s by {bound.kind}"
        )
    failing = outcome.instance.failures is not None
    return BestPossible(what, outcome.policy, len(rows), cost, ticks, bound, failing)


def limits(
    outcome: Outcome, *, jobs: Rows | None = None, columns: int = COLUMNS
) -> dict[Measure, BestPossible]:
    """All limits of a run; see :func:`limit`."""
    return {each: limit(outcome, each, jobs=jobs, columns=columns) for each in Measure}


def _measure(measure: Measure | str) -> Measure:
    try:
        return Measure(measure)
    except ValueError:
        raise InputError(
            f"measure {str(measure)!r}: expected one of {', '.join(Measure)}"
        ) from None


def _rows(outcome: Outcome, jobs: Rows | None) -> Rows:
    """The measured jobs, in order of arrival, each once."""
    instance = outcome.instance
    count, source = len(instance.workload), instance.workload.source
    rows = np.arange(count)[outcome.measured] if jobs is None else np.unique(np.asarray(jobs))
    if not len(rows):
        raise InputError(f"{source}: no jobs are measured, expected at least one")
    if not np.issubdtype(rows.dtype, np.integer) or rows[0] < 0 or rows[-1] >= count:
        raise InputError(f"{source}: measured jobs, expected row numbers from 0 to {count - 1}")
    left = rows[~outcome.complete[rows]]
    if len(left):
        raise InputError(
            f"{source}: job {instance.workload.id[left[0]]!r} is measured and the run ended before it was complete"
        )
    counted = len(rows) == count or np.array_equal(rows, measured_rows(instance))
    if not counted and SharingGain.of(instance) is not None:
        raise InputError(
            f"{source}: limits of {len(rows)} of {count} jobs are for instances in which nobody shares "
            "GPUs; measure all jobs"
        )
    return rows


def _relaxed(instance: Instance, measure: Measure, rows: Rows) -> tuple[Objective, Instance]:
    """The measured jobs, all of equal weight, and the objective that bounds the measure."""
    counted = np.zeros(len(instance.workload), dtype=np.bool_)
    counted[rows] = True
    window = None
    if not counted.all() and SharingGain.of(instance) is not None:
        # Whoever is not measured may be the partner of who is.
        counted[:], window = True, instance.until_complete
    ended = replace(instance, until_complete=window, failures=None, declared=())
    relaxed = ended.select(counted)
    jobs = replace(relaxed.workload, weight=np.ones(int(counted.sum())))
    if measure is Measure.TTD:
        # A scheduler may wait until all are there: its first start is then the last arrival.
        jobs = replace(jobs, arrival_s=np.zeros(len(jobs)))
    relaxed = replace(relaxed, workload=jobs)
    return (Objective.FLOW if measure is Measure.MEAN_JCT else Objective.MAKESPAN), relaxed


def _ends(outcome: Outcome, rows: Rows) -> list[int]:
    return [int(tick) for tick in to_ticks(outcome.end_s[rows])]


def _mean_jct(outcome: Outcome, rows: Rows) -> Fraction:
    arrivals = to_ticks(outcome.instance.workload.arrival_s[rows]).tolist()
    return Fraction(sum(_ends(outcome, rows)) - sum(arrivals), len(rows))


def _ttd(outcome: Outcome, rows: Rows) -> Fraction:
    mine = np.isin(outcome.schedule.job, rows)
    begin = to_ticks(outcome.schedule.start_s[mine]).min()
    return Fraction(max(_ends(outcome, rows)) - int(begin))


def _makespan(outcome: Outcome, rows: Rows) -> Fraction:
    first = to_ticks(outcome.instance.workload.arrival_s[rows]).min()
    return Fraction(max(_ends(outcome, rows)) - int(first))


_COSTS: Mapping[Measure, Callable[[Outcome, Rows], Fraction]] = {
    Measure.MEAN_JCT: _mean_jct,
    Measure.TTD: _ttd,
    Measure.MAKESPAN: _makespan,
}
