"""Costs in hours of waiting: what something cost somebody, by running the jobs again without it.

Every run again is EASY backfilling over the same jobs. Hours are those of waiting until the first start, summed over
jobs: a difference of two schedules, both of them verified, and no bound. They do not add up: who waits for two reasons
is counted in both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil

import numpy as np
from numpy.typing import NDArray

from shadowprice.analysis.audit.measures import HOUR_S, Levels
from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.preparation import prepare_run
from shadowprice.analysis.run_options import RunOptions
from shadowprice.analysis.simulate import execute
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.clusters.quotas import Quotas
from shadowprice.instances.instance import Instance

POLICY = "easy"
_LONGEST = 0.01
"""Share of the jobs that are called long: those that ran for longest."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Cost:
    """Hours of waiting that something cost.

    Parameters
    ----------
    name : str
        What it is.
    hours : float
        Waiting with it, less waiting without it [job-h]; below 0 where jobs wait for less with it.
    later : int
        Jobs that begin later with it.
    payer : str
        User, tenant or partition that pays most, and what it pays; empty where the record names none.
    with_it, without_it : str
        The two schedules that are compared.
    """

    name: str
    hours: float
    later: int
    payer: str
    with_it: str
    without_it: str

    def sentence(self) -> str:
        """The cost in words."""
        paid = f", {self.payer}" if self.payer and self.hours > 0 else ""
        return (
            f"{self.name}: {self.hours:,.1f} job-hours of waiting, {self.later:,} jobs later{paid} "
            f"({self.with_it} against {self.without_it})"
        )


def costs(outcome: Outcome, progress: Callable[[str], None]) -> list[Cost]:
    """Costs of a recorded schedule, the largest first.

    Parameters
    ----------
    progress : callable
        Told of each step.
    """
    instance = outcome.instance
    waits = _waits_s(outcome)
    progress("running the jobs again, backfilled")
    easy = _waits_s(_easy(instance))
    result = [
        _cost(instance, "head-of-line blocking", waits, easy, "as recorded", "EASY backfilling")
    ]
    if len(instance.cluster.nodes) > 1 and instance.workload.throughput is None:
        progress("running the jobs again, gangs on as few nodes as they fit on")
        packed = _waits_s(_easy(instance, RunOptions(placement="consolidate")))
        sound = "EASY on as few nodes as gangs fit on"
        result.append(_cost(instance, "fragmentation", packed, easy, sound, "on any nodes"))
    walled = _walls(outcome)
    if walled is not None:
        progress("running the jobs again, within their partitions")
        apart = _waits_s(_easy(walled))
        name = "EASY within the most that each partition held"
        result.append(_cost(instance, "partitions", apart, easy, name, "one pool"))
    long = _long_jobs(instance)
    if long is not None:
        progress("running the jobs again, without the longest")
        alone = np.zeros(len(long))
        alone[~long] = _waits_s(_easy(instance.select(~long)))
        others = np.where(long, 0.0, easy)
        most_h = float(instance.workload.work[long].min()) / HOUR_S
        name = f"long jobs, {int(long.sum()):,} of {most_h:,.1f} h and more"
        result.append(_cost(instance, name, others, alone, "EASY with them", "without them"))
    return sorted(result, key=lambda each: -each.hours)


def _easy(instance: Instance, options: RunOptions | None = None) -> Outcome:
    return execute(prepare_run(instance, None, POLICY, options))


def _waits_s(outcome: Outcome) -> Floats:
    """Wait of every job until its first start [s]."""
    result: Floats = outcome.totals.first_start_s - outcome.instance.workload.arrival_s
    return result


def _cost(
    instance: Instance, name: str, with_it: Floats, without: Floats, first: str, second: str
) -> Cost:
    more = with_it - without
    return Cost(
        name,
        float(more.sum()) / HOUR_S,
        int((more > 0).sum()),
        _payer(instance, more),
        first,
        second,
    )


def _payer(instance: Instance, more_s: Floats) -> str:
    """Whoever pays most, of the first of users, tenants and partitions that the record names."""
    jobs = instance.workload
    for kind, names in (
        ("user", jobs.name),
        ("tenant", jobs.tenant),
        ("partition", jobs.job_class),
    ):
        values, of = np.unique(names.astype(str), return_inverse=True)
        if len(values) > 1:
            hours = np.bincount(of, more_s, minlength=len(values)) / HOUR_S
            worst = int(hours.argmax())
            return f"{kind} {values[worst] or '(none)'} pays most, {hours[worst]:,.1f}"
    return ""


def _walls(outcome: Outcome) -> Instance | None:
    """The jobs within their partitions, each of which has what its jobs held at most; None of one partition."""
    instance, s = outcome.instance, outcome.schedule
    partition = instance.workload.job_class
    names = sorted(set(partition.tolist()))
    if len(names) < 2 or instance.workload.throughput is not None:
        return None
    of = partition[s.job]
    most = []
    for name in names:
        mine = of == name
        held = Levels.of(s.start_s[mine], s.end_s[mine], s.gpus[mine].astype(np.float64))
        most.append(int(held.value.max()))
    shown = tuple(name or "(none)" for name in names)
    quotas = Quotas(shown, (0.0,), (tuple(most),))
    tenants = np.where(partition == "", "(none)", partition).astype(object)
    jobs = replace(instance.workload, tenant=tenants)
    return Instance(Cluster(instance.cluster.nodes, quotas), jobs)


def _long_jobs(instance: Instance) -> NDArray[np.bool_] | None:
    """True for the jobs that ran for longest; None where they are all, or no longer than others."""
    work = instance.workload.work
    if instance.workload.throughput is not None or len(work) < 2:
        return None
    least = np.sort(work)[-ceil(_LONGEST * len(work))]
    long: NDArray[np.bool_] = work >= least
    return None if long.all() else long
