"""Nodes that fail, second by second: what a schedule of whole seconds did, and the best there is."""

from __future__ import annotations

import math
from functools import cache
from itertools import product

import numpy as np
import pandas as pd

from shadowprice.instances.cluster import Cluster, Node
from shadowprice.instances.failures.checkpointing import Checkpointing
from shadowprice.instances.failures.node_failures import NodeFailures, merged
from shadowprice.instances.instance import Instance
from shadowprice.instances.workload import Workload

Fault = tuple[int, float, float]
"""Node, and from when to when it is down [s]."""


def failures(
    faults: list[Fault], interval_s: float = math.inf, cost_s: float = 0.0
) -> NodeFailures:
    node, down_s, up_s = zip(*faults, strict=True) if faults else ((), (), ())
    return merged(
        np.array(node, dtype=np.int64),
        np.array(down_s, dtype=np.float64),
        np.array(up_s, dtype=np.float64),
        "faults",
        Checkpointing(interval_s, cost_s),
    )


def instance_of(
    jobs: list[tuple[int, int, int]],
    nodes: list[int],
    faults: list[Fault],
    interval_s: float = math.inf,
    cost_s: float = 0.0,
) -> Instance:
    """Jobs (arrival [s], gang, work [s]) on nodes of so many GPUs."""
    arrival_s, gpus, work = zip(*jobs, strict=True)
    return Instance(
        Cluster(tuple(Node(each) for each in nodes)),
        Workload.from_columns(arrival_s=arrival_s, gpus=gpus, work=work, source="jobs"),
        failures=failures(faults, interval_s, cost_s),
    )


def second_by_second(instance: Instance, rows: pd.DataFrame) -> bool:
    """True if no run is on a node that is down, and each job does its work and stops with it.

    For whole seconds, gangs at one speed, and no charges; all else is taken to be in order.
    """
    f = instance.failures
    assert f is not None
    down = {
        (node, second)
        for node, begin, end in zip(
            f.node.tolist(), f.down_s.tolist(), f.up_s.tolist(), strict=True
        )
        for second in range(int(begin), int(min(end, 1000)))
    }
    falls = set(zip(f.node.tolist(), f.down_s.tolist(), strict=True))
    for job, work in enumerate(instance.workload.work.tolist()):
        saved, runs = 0, list(rows[rows.job == job].groupby("start_s"))
        for k, (_, pieces) in enumerate(runs):
            end_s, nodes = float(pieces.end_s.iloc[0]), pieces.node.tolist()
            unsaved = in_interval = writing = 0
            for second in range(int(pieces.start_s.iloc[0]), int(end_s)):
                if saved + unsaved >= work or any((node, second) in down for node in nodes):
                    return False
                if writing:
                    writing -= 1
                    if not writing:
                        saved, unsaved = saved + unsaved, 0
                    continue
                unsaved, in_interval = unsaved + 1, in_interval + 1
                if in_interval == f.checkpoints.interval_s and saved + unsaved < work:
                    in_interval = 0
                    writing = int(f.checkpoints.cost_s)
                    if not writing:
                        saved, unsaved = saved + unsaved, 0
            if saved + unsaved >= work:
                if k + 1 < len(runs):
                    return False
            elif not any((node, end_s) in falls for node in nodes):
                unsaved, saved = 0, saved + unsaved
            unsaved_at_end = unsaved
        if not runs or saved + unsaved_at_end < work:
            return False
    return True


def least_total_completion_s(instance: Instance) -> float:
    """Least total completion time of all schedules that start and stop at whole seconds [s].

    By exhaustion, for jobs of one GPU on nodes of one GPU without checkpoints: who knows all faults, and
    stops and moves jobs at will. Who is stopped by choice saves his work, who loses his node does not.
    """
    f = instance.failures
    assert f is not None
    assert all(node.gpus == 1 for node in instance.cluster.nodes)
    nodes = range(len(instance.cluster.nodes))
    spans = list(zip(f.node.tolist(), f.down_s.tolist(), f.up_s.tolist(), strict=True))
    work = [int(each) for each in instance.workload.work.tolist()]
    arrival = [int(each) for each in instance.workload.arrival_s.tolist()]
    last = int(max([0, *(up for _, _, up in spans)])) + max(arrival) + 2 * sum(work) + 2

    def is_down(node: int, second: int) -> bool:
        return any(of == node and begin <= second < end for of, begin, end in spans)

    def falls(node: int, second: int) -> bool:
        return any(of == node and begin == second for of, begin, _ in spans)

    # Of each job: work left that is saved, work done in this run, node of this run or -1.
    @cache
    def best(second: int, jobs: tuple[tuple[int, int, int], ...]) -> float:
        now = tuple(
            (left, 0, -1)
            if node >= 0 and left > done and falls(node, second)
            else (left, done, node)
            for left, done, node in jobs
        )
        if all(left <= done for left, done, _ in now):
            return 0.0
        if second > last:
            return math.inf
        least = math.inf
        up = [node for node in nodes if not is_down(node, second)]
        choices = [
            (-1, *up) if left > done and arrival[job] <= second else (-1,)
            for job, (left, done, _) in enumerate(now)
        ]
        for chosen in product(*choices):
            used = [node for node in chosen if node >= 0]
            if len(set(used)) < len(used):
                continue
            after, cost = [], 0.0
            for (left, done, node), to in zip(now, chosen, strict=True):
                if left <= done:
                    after.append((0, 0, -1))
                    continue
                if to != node:
                    left, done = left - done, 0
                done += to >= 0
                if done >= left:
                    cost += second + 1
                    left, done, to = 0, 0, -1
                after.append((left, done, to))
            least = min(least, cost + best(second + 1, tuple(after)))
        return least

    return best(0, tuple((each, 0, -1) for each in work))
