"""An adversary that settles run times after it has seen what a policy does: against nonclairvoyant policies.

Jobs run until a moment without one of them ending; then each gets the run time that is worst, and the policy, for which
nothing has changed until then, runs again. The theorem, NC-flow in ``proofs/classic/nonclairvoyant.py``, says the ratio
that this forces at least. The result is a hard instance like others, on one GPU, together with the optimal schedule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from shadowprice.analysis.adversary.search import SHORTEST, WorstInstance, rerun
from shadowprice.analysis.metrics import end_s
from shadowprice.brief import BriefTable
from shadowprice.errors import InputError, VerificationError
from shadowprice.execution.engine import run
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.grid import TICKS_PER_S, check_seconds, to_ticks
from shadowprice.instances.hard_instances import HardInstance
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.instances.schedule import Schedule
from shadowprice.instances.workload import Workload
from shadowprice.proofs.classic import nonclairvoyant
from shadowprice.solvers import registry
from shadowprice.solvers.classic.srtf import Srtf
from shadowprice.solvers.knowledge import OF_RUN_TIMES
from shadowprice.solvers.policy import Policy
from shadowprice.solvers.policy_checks import expect_policy
from shadowprice.version import __version__

MOST_JOBS = 100


@dataclass(frozen=True, repr=False)
class ForcedRatio(BriefTable):
    """A policy's ratio on an instance that was made for it.

    Parameters
    ----------
    worst : WorstInstance
        The instance, both schedules verified, and the ratio to the optimum.
    proven : Fraction
        The least that the theorem says of any nonclairvoyant policy.
    """

    worst: WorstInstance
    proven: Fraction

    @property
    def ratio(self) -> Fraction:
        """Cost of the policy over the optimum."""
        return self.worst.ratio


def force_completion(
    policy: str | Policy, jobs: int = 8, horizon_s: float = 36_000.0
) -> ForcedRatio:
    """Jobs that are all there at 0, for total completion time: 2 - 2 / (n + 1) but for a tick a job.

    Parameters
    ----------
    policy : str or Policy
        A nonclairvoyant policy.
    jobs : int
        n, 2 to 100.
    horizon_s : float
        T, until when no job ends [s]; long beside the policy's rounds and quanta.

    Raises
    ------
    InputError
        If the policy knows run times, or a number is out of range.
    VerificationError
        If the policy did something else until T when run times were others.
    """
    acting = _nonclairvoyant(policy)
    _check(jobs, 2, horizon_s)
    attained, before = _attained(acting, jobs, horizon_s)
    times = nonclairvoyant.completion_times(attained, 1)
    forced = _forced(
        policy, times, [0] * jobs, Objective.COMPLETION, "hidden run times, completion"
    )
    _expect_same(before, forced.policy.schedule, horizon_s, acting.name)
    proven = nonclairvoyant.bound(jobs, to_ticks(horizon_s).item() * Fraction(1), Fraction(1))
    return ForcedRatio(forced, proven)


def force_flow(policy: str | Policy, first: int = 4, horizon_s: float = 36_000.0) -> ForcedRatio:
    """Some jobs at 0 and a stream of short ones behind them, for total flow time: of the order of their cube root.

    Parameters
    ----------
    policy : str or Policy
        A nonclairvoyant policy.
    first : int
        k, 3 to 100; k^2 (k - 1) jobs come later.
    horizon_s : float
        T, until when no job ends [s]; long beside the policy's rounds and quanta.

    Raises
    ------
    InputError
        If the policy knows run times, a number is out of range, or the policy never runs a job.
    VerificationError
        If the policy did something else until T when run times were others.
    """
    acting = _nonclairvoyant(policy)
    _check(first, 3, horizon_s)
    attained, before = _attained(acting, first, horizon_s)
    times, rest = nonclairvoyant.flow_times(attained)
    later, ticks = first**2 * (first - 1), int(to_ticks(horizon_s).item())
    release = [0] * first + [ticks + number * rest for number in range(later)]
    every = [*times, *[rest] * later]
    forced = _forced(policy, every, release, Objective.FLOW, "hidden run times, flow")
    _expect_same(before, forced.policy.schedule, horizon_s, acting.name)
    return ForcedRatio(
        forced, nonclairvoyant.flow_bound(first, later, Fraction(ticks), Fraction(rest))
    )


def _nonclairvoyant(policy: str | Policy) -> Policy:
    acting = registry.policy(policy) if isinstance(policy, str) else expect_policy(policy)
    known = acting.knows & OF_RUN_TIMES
    if known:
        names = ", ".join(sorted(map(str, known)))
        raise InputError(
            f"policy {acting.name!r}: knows {names}, expected a nonclairvoyant policy, one that knows no run times"
        )
    return acting


def _check(jobs: int, least: int, horizon_s: float) -> None:
    if not least <= jobs <= MOST_JOBS:
        raise InputError(f"hidden run times: {jobs} jobs, expected {least} to {MOST_JOBS}")
    check_seconds("hidden run times: horizon_s", horizon_s, most_s=10**6)


def _instance(times: Sequence[int], release: Sequence[int]) -> Instance:
    workload = Workload.from_columns(
        id=[f"j{number}" for number in range(len(times))],
        arrival_s=[at / TICKS_PER_S for at in release],
        gpus=1,
        work=[ticks / TICKS_PER_S for ticks in times],
        source="hidden run times",
    )
    return Instance(Cluster.parse("1x1"), workload)


def _attained(acting: Policy, jobs: int, horizon_s: float) -> tuple[list[int], Schedule]:
    """Work done on each job until T [ticks] while none ends, and the schedule of it."""
    endless = _instance([2 * int(to_ticks(horizon_s).item())] * jobs, [0] * jobs)
    schedule = run(endless, acting).schedule
    start, end = to_ticks(schedule.start_s), to_ticks(schedule.end_s)
    until = np.clip(end, 0, to_ticks(horizon_s).item()) - start
    done = np.zeros(jobs, dtype=np.int64)
    np.add.at(done, schedule.job, np.maximum(until, 0))
    return done.tolist(), schedule


def _forced(
    policy: str | Policy,
    times: Sequence[int],
    release: Sequence[int],
    objective: Objective,
    method: str,
) -> WorstInstance:
    """The policy on the instance, beside SRPT."""
    instance = _instance(times, release)
    acting = registry.policy(policy) if isinstance(policy, str) else policy
    costs, schedules = [], []
    for each in (acting, Srtf()):
        schedule = run(instance, each).schedule
        schedules.append(schedule)
        costs.append(objective.cost_s(instance.workload, end_s(instance, schedule)))
    hard = HardInstance(
        f"{acting.name}-hidden-{objective}",
        registry.name_with_parameters(policy),
        None,
        objective,
        instance,
        schedules[1],
        costs[0],
        costs[1],
        Fraction(costs[0]) / Fraction(costs[1]),
        SHORTEST,
        {"method": method, "version": __version__},
    )
    return rerun(hard, policy=policy)


def _expect_same(before: Schedule, after: Schedule, horizon_s: float, name: str) -> None:
    """Compare what was done until T."""

    def until(schedule: Schedule) -> list[tuple[int, float, float]]:
        rows = zip(schedule.job, schedule.start_s, schedule.end_s, strict=True)
        cut = [(int(j), float(s), min(float(e), horizon_s)) for j, s, e in rows if s < horizon_s]
        return sorted(cut, key=lambda row: row[1])

    if until(before) != until(after):
        raise VerificationError(
            f"policy {name!r}: does something else until {horizon_s:g} s when run times are others that end "
            "later, expected a policy that does not know them"
        )
