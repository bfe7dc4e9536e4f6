"""What Gandiva's figures share: instances with interference and charges, verified runs, measures.

Charges are those of OSDI'18, sections 4.1 and 6.1: 0.5 s to suspend and resume (published: under
0.1 s for image models, up to 1 s), 2 s more to migrate (1 to 2 s). Jobs that share GPUs lose what
``shadowprice.instances.speeds.interference`` derives from the utilisations of Table 1; at most two share.
The YARN-like baseline is FIFO: the head of the queue blocks, and every gang is on as few servers as can be.
The bin-packing one passes over jobs that do not fit and places gangs on few servers if it can.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import shadowprice as sp
from shadowprice.analysis.limits import Measure, limit
from shadowprice.analysis.outcome import Outcome
from shadowprice.execution.engine import run
from shadowprice.instances.schedule import ALONE
from shadowprice.instances.speeds.interference import UTILISATION, Interference, locality_of
from shadowprice.solvers.registry import placement, policy

CHARGES = sp.Overheads(restart_s=0.5, migration_s=2.0)
YARN_LIKE = ("fifo", "consolidate")
BIN_PACKING = ("fifo-skip", "pack")
REACTIVE = ("gandiva-reactive", "count")
GANDIVA = ("gandiva", "count")


def instance(
    jobs: sp.Workload, cluster: str, *, sharing: bool = True, locality: bool = False
) -> sp.Instance:
    """Jobs on a cluster with Gandiva's charges, interference, and losses of spread gangs."""
    where = sp.Cluster.parse(cluster)
    together = Interference().of(jobs, where) if sharing else None
    spread = locality_of(jobs) if locality else None
    return sp.Instance(where, jobs, CHARGES, together, locality=spread)


@dataclass(frozen=True)
class Run:
    """A verified run.

    Parameters
    ----------
    end_s, start_s : ndarray, shape (n,)
        Completion and first start of every job [s].
    speed : ndarray, shape (rows,)
        Progress of every row while it makes any, against the job alone and not spread.
    migrations : int
        Times that a job resumed on other servers than before.
    """

    instance: sp.Instance
    schedule: sp.Schedule
    end_s: NDArray[np.float64]
    start_s: NDArray[np.float64]
    speed: NDArray[np.float64]
    migrations: int

    @property
    def jct_s(self) -> NDArray[np.float64]:
        """Time in the system of every job [s]."""
        return self.end_s - self.instance.workload.arrival_s

    def utilisation(self, from_s: float = 0.0, until_s: float | None = None) -> float:
        """Share of the GPUs' time in [from, until), the last end if not given, in which they are busy."""
        schedule = self.schedule
        until = self.end_s.max() if until_s is None else until_s
        begin = np.clip(schedule.start_s + schedule.overhead_s, from_s, until)
        ran_s = np.clip(schedule.end_s, begin, until) - begin
        models = self.instance.workload.model
        u = np.array([UTILISATION[name] for name in models])[schedule.job]
        busy = (schedule.gpus * ran_s * self.speed * u).sum()
        return float(busy / (self.instance.cluster.total_gpus * (until - from_s)))

    def time_to(self, work_s: float) -> NDArray[np.float64]:
        """Time from its arrival until each job has done so much of its work [s], shape (n,)."""
        schedule = self.schedule
        # One row for every run: a gang on several nodes has a row a node.
        first = np.unique(np.stack((schedule.job, schedule.start_s)), axis=1, return_index=True)[1]
        order = first[np.lexsort((schedule.start_s[first], schedule.job[first]))]
        begin = (schedule.start_s + schedule.overhead_s)[order]
        progress = np.maximum(schedule.end_s[order] - begin, 0.0) * self.speed[order]
        job = schedule.job[order]
        total = np.cumsum(progress)
        starts = np.searchsorted(job, np.arange(len(self.end_s)))
        before = np.concatenate(([0.0], total))[starts]
        row = np.searchsorted(total, before + work_s)
        row = np.minimum(row, np.append(starts[1:], len(job)) - 1)
        missing = before + work_s - (total[row] - progress[row])
        reached_s = begin[row] + missing / self.speed[order][row]
        return np.asarray(np.minimum(reached_s, self.end_s) - self.instance.workload.arrival_s)


def simulate(given: sp.Instance, system: tuple[str, str]) -> Run:
    """Run a system, policy and placement, and verify its schedule."""
    name, where = system
    result = run(given, policy(name), placement=placement(where))
    schedule = result.schedule
    sp.verify(given, schedule)
    end, start = np.zeros(len(given.workload)), np.full(len(given.workload), np.inf)
    np.maximum.at(end, schedule.job, schedule.end_s)
    np.minimum.at(start, schedule.job, schedule.start_s)
    return Run(given, schedule, end, start, _speed(given, schedule), _migrations(schedule))


def _speed(given: sp.Instance, schedule: sp.Schedule) -> NDArray[np.float64]:
    """Share of its own rate of every row, from the rates of pairs and losses of spread gangs."""
    speed = np.ones(len(schedule.job))
    kind = given.cluster.type_of_node[schedule.node]
    pair = np.flatnonzero(schedule.partner != ALONE)
    job, other = schedule.job[pair], schedule.partner[pair]
    speed[pair] = given.plain_processing_s[job, kind[pair]]
    speed[pair] /= given.shared_runs.run_s(job, other, kind[pair])
    if given.locality is not None:
        run_of = np.unique(np.stack((schedule.job, schedule.start_s)), axis=1, return_inverse=True)[
            1
        ]
        nodes = np.bincount(run_of.ravel())[run_of.ravel()]
        size = int(given.cluster.gpus_per_node.max())
        fewest = -(-given.workload.gpus[schedule.job] // size)
        slow = given.locality.spread_speed[schedule.job]
        speed = np.where(nodes > fewest, speed * slow, speed)
    return speed


def _migrations(schedule: sp.Schedule) -> int:
    """Runs of a job that begin on other servers than its run before."""
    frame = pd.DataFrame(
        {"job": schedule.job, "start": schedule.start_s, "node": schedule.node}
    ).sort_values(["job", "start", "node"])
    where = frame.groupby(["job", "start"], sort=True)["node"].agg(tuple)
    jobs = where.index.get_level_values(0).to_numpy()
    nodes = where.to_numpy()
    changed = [
        a == b and m != n for a, b, m, n in zip(jobs, jobs[1:], nodes, nodes[1:], strict=False)
    ]
    return int(sum(changed))


def certified_limit(found: Run, measure: Measure) -> float:
    """Best factor over a run that any scheduler could have; see :mod:`shadowprice.analysis.limits`."""
    outcome = Outcome.verified(found.instance, found.schedule, policy="baseline")
    return limit(outcome, measure).ratio
