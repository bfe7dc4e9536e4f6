"""Orders of jobs on one pool of GPUs, in compiled loops: gangs without further terms, thousands of orders a second."""

from __future__ import annotations

import time

import numpy as np

from shadowprice.analysis.outcome import Outcome
from shadowprice.errors import InputError
from shadowprice.instances.features import missing
from shadowprice.instances.grid import TICKS_PER_S, to_ticks
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.instances.schedule import Schedule
from shadowprice.library.search import list_loops
from shadowprice.library.search.list_loops import Ints
from shadowprice.solvers.offline.bounds import RelaxedJobs
from shadowprice.solvers.offline.node_assignment import assign_nodes_to_runs
from shadowprice.solvers.offline.one_pool import require_exact
from shadowprice.solvers.offline.preemptive import KNOWS

_BATCH, _REACH = 200, 40
"""Moves by which one is timed; places by which a job moves at most."""


def is_plain(instance: Instance) -> bool:
    """True if jobs are gangs on GPUs that are all alike, and nothing else is said."""
    if missing(instance, KNOWS) or not len(instance.workload):
        return False
    try:
        require_exact(instance)
    except InputError:
        return False
    return instance.overheads.start_s == 0 and instance.failures is None


def better_by_loops(
    instance: Instance,
    goal: Objective,
    outcome: Outcome,
    *,
    preemptive: bool,
    seconds: float,
    seed: int,
    heats: tuple[float, ...] = (0.0, 0.02, 0.3),
) -> tuple[Schedule, int]:
    """The best schedule that orders near that of a run come to, unverified, and how many were tried.

    Parameters
    ----------
    instance : Instance
        A plain one.
    heats : tuple of float
        What a move may cost more at the beginning, in mean costs of a job; each has its share of the time.
    """
    jobs, span = RelaxedJobs.of(instance), goal is Objective.MAKESPAN
    release, work, gang = (np.array(each) for each in (jobs.release, jobs.work, jobs.gpus))
    weight = np.array([float(each) for each in jobs.weight])
    arrivals, once = np.argsort(release, kind="stable"), not preemptive
    ends = to_ticks(outcome.end_s)
    order = np.lexsort((arrivals, ends - work if once else ends))
    fixed = 0.0 if span else float(weight @ release)
    rng = np.random.default_rng([seed, 7])

    def searched(since: Ints, moves: int, heat: float) -> tuple[Ints, float]:
        return list_loops.anneal(
            since,
            arrivals,
            release,
            work,
            gang,
            weight,
            jobs.total_gpus,
            once,
            span,
            rng.random((moves, 4)),
            min(_REACH, len(since) - 1),
            heat,
        )

    best, cost = searched(order, 0, 0.0)
    tried = 1
    for heat in heats:
        until = time.process_time() + seconds / len(heats)
        moves = _BATCH
        while (left := until - time.process_time()) > 0:
            began = time.process_time()
            found, value = searched(best, moves, heat * (cost - fixed) / len(order))
            tried += moves
            if value < cost:
                best, cost = found, value
            pace = (time.process_time() - began) / moves
            moves = max(_BATCH, min(int(left / max(pace, 1e-9) / 2), 400_000))
    if once:
        list_loops.once_ends(best, release, work, gang, jobs.total_gpus, ends)
        runs = np.column_stack((np.arange(len(ends)), ends - work, ends))
    else:
        runs = _runs(best, arrivals, release, work, gang, jobs.total_gpus)
    start_s, end_s = (runs[:, k] / TICKS_PER_S for k in (1, 2))
    return assign_nodes_to_runs(instance, runs[:, 0], start_s, end_s), tried


def _runs(
    order: Ints, arrivals: Ints, release: Ints, work: Ints, gang: Ints, gpus: int
) -> Ints:
    """Job, start and end of runs, those that go on joined."""
    rank, ends = np.empty(len(order), np.int64), np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    most = 4 * len(order)
    while True:
        rows = np.empty((most, 3), np.int64)
        made = list_loops.preemptive_ends(rank, arrivals, release, work, gang, gpus, ends, rows)
        if made < most:
            break
        most *= 2
    rows = rows[:made]
    rows = rows[np.lexsort((rows[:, 1], rows[:, 0]))]
    begins = np.ones(made, dtype=bool)
    begins[1:] = (rows[1:, 0] != rows[:-1, 0]) | (rows[1:, 1] != rows[:-1, 2])
    first = np.flatnonzero(begins)
    last = np.append(first[1:], made) - 1
    return np.column_stack((rows[first, 0], rows[first, 1], rows[last, 2]))


