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
from shadowprice.library.search.list_loops import Ints, Jobs
from shadowprice.solvers.offline.bounds import Relaxation
from shadowprice.solvers.offline.node_assignment import assign_nodes_to_runs
from shadowprice.solvers.offline.one_pool import require_exact
from shadowprice.solvers.offline.preemptive import KNOWS

_BATCH, _MOST_AT_ONCE = 200, 400_000
"""Moves by which one is timed, and as many as random numbers are drawn for at once."""


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
    relaxed, span, once = Relaxation.of(instance), goal is Objective.MAKESPAN, not preemptive
    jobs = np.zeros(len(relaxed.release), dtype=list_loops.JOB)
    jobs["release"], jobs["work"], jobs["gang"] = relaxed.release, relaxed.work, relaxed.gpus
    jobs["weight"] = [float(each) for each in relaxed.weight]
    arrivals = np.argsort(jobs["release"], kind="stable")
    ends, gpus = to_ticks(outcome.end_s), relaxed.total_gpus
    order = np.lexsort((arrivals, ends - jobs["work"] if once else ends))
    fixed = 0.0 if span else float(jobs["weight"] @ jobs["release"])
    rng = np.random.default_rng([seed, 7])

    def searched(since: Ints, moves: int, heat: float) -> tuple[Ints, float]:
        draws = rng.random((moves, 4))
        found: tuple[Ints, float] = list_loops.anneal(
            jobs, since, arrivals, gpus, once, span, draws, heat
        )
        return found

    best, cost = searched(order, 0, 0.0)
    tried = 1
    for heat in heats:
        until, moves = time.process_time() + seconds / len(heats), _BATCH
        while (left := until - time.process_time()) > 0:
            began = time.process_time()
            found, value = searched(best, moves, heat * (cost - fixed) / len(order))
            tried += moves
            if value < cost:
                best, cost = found, value
            pace = (time.process_time() - began) / moves
            moves = max(_BATCH, min(int(left / max(pace, 1e-9) / 2), _MOST_AT_ONCE))
    runs = _runs_once(jobs, best, gpus) if once else _runs(jobs, best, arrivals, gpus)
    start_s, end_s = (runs[:, k] / TICKS_PER_S for k in (1, 2))
    return assign_nodes_to_runs(instance, runs[:, 0], start_s, end_s), tried


def _runs_once(jobs: Jobs, order: Ints, gpus: int) -> Ints:
    """Job, start and end of each run."""
    list_loops.once_ends(jobs, order, gpus)
    return np.column_stack((np.arange(len(jobs)), jobs["end"] - jobs["work"], jobs["end"]))


def _runs(jobs: Jobs, order: Ints, arrivals: Ints, gpus: int) -> Ints:
    """Job, start and end of runs, those that go on joined."""
    jobs["rank"][order] = np.arange(len(order))
    made = most = 4 * len(order)
    while made == most:
        most *= 2
        rows = np.empty((most, 3), np.int64)
        made = list_loops.preemptive_ends(jobs, arrivals, gpus, rows)
    rows = rows[:made]
    rows = rows[np.lexsort((rows[:, 1], rows[:, 0]))]
    begins = np.ones(made, dtype=bool)
    begins[1:] = (rows[1:, 0] != rows[:-1, 0]) | (rows[1:, 1] != rows[:-1, 2])
    first = np.flatnonzero(begins)
    last = np.append(first[1:], made) - 1
    return np.column_stack((rows[first, 0], rows[first, 1], rows[last, 2]))
