"""From the speed of every job in every round to GPUs on nodes."""

from __future__ import annotations

from collections.abc import Mapping

import networkx as nx

from shadowprice.errors import SolverError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.instance import Instance
from shadowprice.instances.round_plan import GpusByNode, Plan
from shadowprice.models.round_jobs import RoundJobs
from shadowprice.solvers.hadar.offline.pricing import IDLE, Levels


def place(instance: Instance, jobs: RoundJobs, chosen: Mapping[int, Levels]) -> Plan:
    """The plan that runs jobs at given levels, from the first node of each type on.

    Parameters
    ----------
    chosen : mapping of int to Levels
        By job; jobs that are not in it never run.

    Raises
    ------
    SolverError
        If the GPUs of a round do not suffice.
    """
    runs: list[list[tuple[int, GpusByNode]]] = [[] for _ in range(jobs.jobs)]
    for t in range(jobs.rounds):
        running = {
            job: jobs.levels[job][levels[t]].types
            for job, levels in sorted(chosen.items())
            if t < len(levels) and levels[t] != IDLE
        }
        free = _Free(instance.cluster)
        for job, gpus in _types(jobs, running, t).items():
            runs[job].append((t, free.take(gpus)))
    return Plan(tuple(map(tuple, runs)))


def _types(jobs: RoundJobs, running: Mapping[int, tuple[int, ...]], t: int) -> dict[int, list[int]]:
    """GPUs of each type for each running job: an integral flow from jobs to types they admit."""
    flow = nx.DiGraph()
    for job, types in running.items():
        flow.add_edge("source", ("job", job), capacity=int(jobs.gang[job]))
        for r in types:
            flow.add_edge(("job", job), ("type", r))
            flow.add_edge(("type", r), "sink", capacity=int(jobs.capacity[r]))
    if not running:
        return {}
    asked = sum(int(jobs.gang[job]) for job in running)
    given, paths = nx.maximum_flow(flow, "source", "sink")
    if given != asked:
        raise SolverError(f"round {t}: jobs ask for {asked} GPUs, only {given} can be given")
    return {
        job: [int(paths[("job", job)].get(("type", r), 0)) for r in range(jobs.types)]
        for job in running
    }


class _Free:
    """GPUs not yet taken in a round."""

    def __init__(self, cluster: Cluster) -> None:
        self._free = cluster.gpus_per_node.tolist()
        self._nodes: list[list[int]] = [[] for _ in cluster.gpu_types]
        for node, r in enumerate(cluster.type_of_node.tolist()):
            self._nodes[r].append(node)

    def take(self, gpus: list[int]) -> GpusByNode:
        """Nodes for so many GPUs of each type, first fit."""
        taken = []
        for r, wanted in enumerate(gpus):
            for node in self._nodes[r]:
                some = min(wanted, self._free[node])
                if some:
                    self._free[node] -= some
                    wanted -= some
                    taken.append((node, some))
        return tuple(sorted(taken))
