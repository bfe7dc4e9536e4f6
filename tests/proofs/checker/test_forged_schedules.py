"""Small schedules that the checker takes, and beside each one that breaks a single rule and else is the same."""

from __future__ import annotations

from functools import partial

import pytest

from shadowprice.proofs.checker import Rejected, check
from support.small_certificates import (
    CLASS,
    PAIRS,
    PARTS,
    certificate,
    job,
    least,
    node,
    run,
)

SECOND = 2**20
FAULTS = {"kind": "checkpoints", "interval": 10, "cost": 0, "until": 99}


def of(*given, **claim):
    """Certificates of an instance, by their runs."""
    return lambda *runs: certificate(*given, *runs, **claim)


one = of(node(0, 1), job(0, 10))
two = of(node(0, 2), job(0, 10, 2), job(1, 10))
apart = of(node(0, 1), node(1, 1), job(0, 20))
parts = of(node(0, 2), job(0, 10, part=500), job(1, 10, part=500), job(2, 10, 1), about=PARTS)
full = of(node(0, 2), job(0, 10, part=500), job(1, 10, part=500), job(2, 10, 2), about=PARTS)
PROFILE = {"kind": "profile", "profile": 0, "cells": [[500, 200, 1], [0, 100, "1/2"]]}
ASKS = [job(j, 10, profile=0) for j in range(2)]
cpus = of(node(0, 2, cpus=900, memory=400), PROFILE, *ASKS)
memory = of(node(0, 2, cpus=1000, memory=300), PROFILE, *ASKS)
no_cpus = of(node(0, 2, memory=300), PROFILE, *ASKS)
types = of(node(0, 1), node(1, 1, "b"), job(0, {"a": 10, "b": 20}, 2))
spread = of(node(0, 1), node(1, 1, "b"), job(0, {"a": 10, "b": 20}, 2, spread=1))
near = of(
    node(0, 2),
    node(1, 2),
    job(0, 10, 2),
    about=f"{CLASS}, on as few nodes as gangs fit on",
    placement="consolidated",
)
again = of(
    node(0, 1), job(0, 10), about=f"{CLASS}, jobs restart when preempted", preemption="restart"
)
saved = of(
    node(0, 1),
    job(0, 10),
    {"kind": "checkpoints", "interval": 10, "cost": 5, "until": 99},
    about=CLASS.replace("schedules", "schedules on nodes that fail"),
)
window = of(
    node(0, 2), job(0, 10), job(1, 30), about=f"{CLASS}, counting jobs 0 to 0 alone", window=[0, 1]
)
until = f"counting jobs 0 to 0 alone, counting time until {20 / SECOND!r} s alone"
stopped_window = of(
    node(0, 2), job(0, 10), job(1, 30), about=f"{CLASS}, {until}", window=[0, 1], stopped=20
)
charged = of(node(0, 2), job(0, 10), start=2, migration=3, restart=[[1, 4]])
ALONE = [{"sort": 0, "beside": {"a": {"0": 8}}}] * 2
pairs = of(node(0, 2), *(job(j, 10, **more) for j, more in enumerate(ALONE)), about=PAIRS)
MIXED = {"sort": 0, "beside": {"a": {"0": 12}}}
pairs_of_types = of(
    node(0, 1),
    node(1, 1, "b"),
    *(job(j, {"a": 10, "b": 10}, 2, **MIXED) for j in range(2)),
    about=PAIRS,
)
BOTH = {"sort": 0, "beside": {"a": {"0": 12}, "b": {"0": 24}}}
pairs_on_both = of(
    node(0, 1),
    node(1, 1, "b"),
    *(job(j, {"a": 10, "b": 20}, 2, **BOTH) for j in range(2)),
    about=PAIRS,
)
either = of(node(0, 1), node(1, 1, "b"), job(0, {"a": 10, "b": 20}))
GRAPH = [
    {"kind": "network", "intra": 1, "nic": 1, "gpus": 3, "sharing": "per-job"},
    {"kind": "graph", "graph": 0, "microbatches": 1, "stages": [[5, 1, 0, 0]], "links": []},
]
graphs = of(*GRAPH, *(node(k, 3) for k in range(3)), job(0, {}, 5, graph=0, work=1))
ONE_STAGE = [GRAPH[0], GRAPH[1] | {"stages": [[1, 1, 0, 0]]}]
MAPPED = {"graph": 0, "work": 1, "sort": 0, "beside": {"a": {"0": "1/2"}}}
pairs_of_graphs = of(*ONE_STAGE, node(0, 1), *(job(j, {}, **MAPPED) for j in range(2)), about=PAIRS)
pairs_of_fed = of(
    node(0, 1, cpus=900, memory=400),
    PROFILE,
    *(job(j, 10, profile=0, **ALONE[0]) for j in range(2)),
    about=PAIRS,
)
TENANTS = [{"kind": "quota", "quota": k, "periods": [[0, 1], [50, 2]]} for k in range(2)]
quotas = of(
    node(0, 3),
    *TENANTS,
    *(job(j, 10, quota=j // 2) for j in range(4)),
    about=CLASS.replace("schedules", "schedules within quotas of tenants"),
)
moving = of(node(0, 1), node(1, 1), job(0, 10), start=2, migration=3, restart=[[1, 4]])
STEPS = [[1, 4], [2, 6]]
steps = of(node(0, 3), job(0, 10, 2), job(1, 10, 3), start=2, restart=STEPS)
SLOWER = {"kind": "profile", "profile": 0, "cells": [[1, 1, 1], [0, 0, "1/2"]]}
changing = of(node(0, 1, cpus=9, memory=9), SLOWER, job(0, 10, profile=0), start=2)
clocked = of(
    node(0, 1, cpus=9, memory=9),
    {"kind": "checkpoints", "interval": 10, "cost": 5, "until": 99},
    SLOWER,
    job(0, 20, profile=0),
    {"kind": "fault", "node": 0, "down": 30, "up": 40},
    about=CLASS.replace("schedules", "schedules on nodes that fail"),
)
forgetting = of(
    node(0, 1, cpus=9, memory=9),
    SLOWER,
    job(0, 10, profile=0),
    about=f"{CLASS}, jobs restart when preempted",
    preemption="restart",
)
uneven = of(
    node(0, 1, cpus=9, memory=9), node(1, 1, cpus=9, memory=9), SLOWER, job(0, 10, 2, profile=0)
)
both = of(node(0, 2, cpus=1000, memory=300), PROFILE, job(0, 10, 2, profile=0))
slow = of(node(0, 2), node(1, 2), job(0, 10, 2, spread="1/2"))
OTHERS = [run(0, 0, 10), run(2, 0, 10)]
failing = of(
    node(0, 1),
    FAULTS,
    job(0, 20),
    {"kind": "fault", "node": 0, "down": 15, "up": 18},
    about=CLASS.replace("schedules", "schedules on nodes that fail"),
)
WIDER = {"kind": "widths", "widths": 0, "speeds": [1, 2]}
growing = of(node(0, 3), WIDER, job(0, 10, widths=0), about=f"{CLASS} and gangs may grow")
GAIN = {"sort": 0, "beside": {"a": {"0": 12}}}
gaining = of(node(0, 1), *(job(j, 10, **GAIN) for j in range(2)), about=PAIRS)
RULES = {"kind": "copies", "round": 20, "restart": 2, "aggregation": 3, "most": 2}
HOSTS = [node(0, 2), node(1, 2), node(2, 1, "b")]
COPIES = "schedules in which a job is at most 2 copies on whole nodes"


def copied(*runs, arrival=0, **header):
    """A certificate of a job of 40 steps that runs as copies, and does a step a tick on each GPU of type a."""
    mine = job(0, {}, arrival=arrival, steps=40, rate={"a": 1})
    until = header.get("stopped")
    about = f", counting time until {until / SECOND!r} s alone" if until else ""
    return certificate(RULES, *HOSTS, mine, *runs, about=COPIES + about, **header)


def copied_beside(*faults, gpus=()):
    """As above, on nodes that are down at times."""
    found = [
        {"kind": "fault", "node": host, "down": since, "up": until} for host, since, until in faults
    ]
    limits, more = [], {}
    if gpus:
        periods = [[5 * k, n] for k, n in enumerate(gpus)]
        limits, more = [{"kind": "quota", "quota": 0, "periods": periods}], {"quota": 0}
    mine = job(0, {}, steps=40, rate={"a": 1}, **more)
    given = [RULES, {**FAULTS, "interval": 2**60}, *HOSTS, *found, *limits, mine]
    within = " within quotas of tenants" if gpus else ""
    about = COPIES.replace("schedules", f"schedules on nodes that fail{within}")
    return lambda *runs: certificate(*given, *runs, about=about)


def restarted(*runs):
    """As above, where it begins anew after a round without a copy."""
    mine = job(0, {}, steps=40, rate={"a": 1})
    about = f"{COPIES}, jobs restart when preempted"
    return certificate(RULES, *HOSTS, mine, *runs, about=about, preemption="restart")


def copied_within(*gpus):
    """As above, within a quota that changes every 5 ticks."""
    limits = {"kind": "quota", "quota": 0, "periods": [[5 * k, n] for k, n in enumerate(gpus)]}
    mine = job(0, {}, steps=40, rate={"a": 1}, quota=0)
    about = COPIES.replace("schedules", "schedules within quotas of tenants")
    return lambda *runs: certificate(RULES, *HOSTS, limits, mine, *runs, about=about)


def copy(start, end, host, number, steps, overhead=0, gpus=2):
    """A copy of that job for a round."""
    more = {"copy": number, "steps": steps, "overhead": overhead}
    return run(0, start, end, [host, gpus], **more)


OTHERS_COPY = {**copy(0, 13, 2, 0, 0, gpus=1), "job": 1}


def copied_in_window(*runs):
    """As above, and another job that runs on the node of type b until the first is complete."""
    both = [
        job(0, {}, steps=40, rate={"a": 1}),
        job(1, {}, steps=40, rate={"b": 1}),
    ]
    about = f"{COPIES}, counting jobs 0 to 0 alone"
    return certificate(RULES, *HOSTS, *both, *runs, about=about, window=[0, 1])


ALL = [copy(0, 20, 0, 0, 40)]
BOTH_HALVES = [copy(0, 13, 0, 0, 20, 3), copy(0, 13, 1, 1, 20, 3)]

CASES = {
    "amounts are given back when a run ends": (
        partial(two, run(0, 0, 10, [0, 2])),
        [run(1, 10, 20)],
        [run(1, 5, 15)],
        "node 0: 3 GPUs held",
    ),
    "a run has a length": (one, [run(0, 0, 10)], [run(0, 0, 0), run(0, 0, 10)], "end of job 0"),
    "a gang is no copy": (one, [run(0, 0, 10)], [run(0, 0, 10, copy=0)], "is a copy"),
    "a gang does no steps": (one, [run(0, 0, 10)], [run(0, 0, 10, steps=1)], "is a copy"),
    "a run does no more than the work": (
        one,
        [run(0, 0, 10)],
        [run(0, 0, 11)],
        "after the end of its work",
    ),
    "a run does the work": (one, [run(0, 0, 10)], [run(0, 0, 9)], "1 ticks short"),
    "nothing runs after the work": (
        one,
        [run(0, 0, 10)],
        [run(0, 0, 10), run(0, 10, 11)],
        "after the end of its work",
    ),
    "a run has no partner without speeds beside one": (
        one,
        [run(0, 0, 10)],
        [run(0, 0, 10, partner=0)],
        "has a partner",
    ),
    "pieces have GPUs": (
        apart,
        [run(0, 0, 20, [0, 1])],
        [run(0, 0, 20, [0, 1], [1, 0])],
        "GPUs of job 0 at tick 0 is 0",
    ),
    "a gang holds no more than its GPUs": (
        apart,
        [run(0, 0, 20, [0, 1])],
        [run(0, 0, 20, [0, 1], [1, 1])],
        "holds 2 GPUs, not its gang",
    ),
    "pieces are in order": (
        types,
        [run(0, 0, 20, [0, 1], [1, 1])],
        [run(0, 0, 20, [1, 1], [0, 1])],
        "node of job 0 at tick 0 is 0",
    ),
    "a node is there": (
        apart,
        [run(0, 0, 20, [1, 1])],
        [run(0, 0, 20, [2, 1])],
        "node 2 is not there",
    ),
    "a job runs once at a time": (
        apart,
        [run(0, 0, 10), run(0, 10, 20, [1, 1])],
        [run(0, 0, 10), run(0, 9, 19, [1, 1])],
        "runs twice at tick 9",
    ),
    "a GPU that is held in parts counts once": (
        parts,
        [run(0, 0, 10, [0, 1, 0]), run(1, 0, 10, [0, 1, 0]), run(2, 0, 10, [0, 1])],
        [run(0, 0, 10, [0, 1, 0]), run(1, 0, 10, [0, 1, 1]), run(2, 0, 10, [0, 1])],
        "node 0: 3 GPUs held",
    ),
    "a GPU counts until nobody holds a part": (
        full,
        [run(0, 0, 10, [0, 1, 0]), run(1, 5, 15, [0, 1, 0]), run(2, 15, 25, [0, 2])],
        [run(0, 0, 10, [0, 1, 0]), run(1, 5, 15, [0, 1, 0]), run(2, 14, 24, [0, 2])],
        "node 0: 3 GPUs held",
    ),
    "parts are of GPUs of the node": (
        parts,
        [run(0, 0, 10, [0, 1, 1]), run(1, 0, 10, [0, 1, 1]), run(2, 0, 10, [0, 1])],
        [run(0, 0, 10, [0, 1, 2]), run(1, 0, 10, [0, 1, 2]), run(2, 0, 10, [0, 1])],
        "holds GPU 2 of a node",
    ),
    "no more CPUs than there are": (
        cpus,
        [run(0, 0, 10, [0, 1, 0]), run(1, 0, 20, [0, 1, 1])],
        [run(0, 0, 10, [0, 1, 0]), run(1, 0, 10, [0, 1, 0])],
        "1000 thousandths of cpus held, it has 900",
    ),
    "no more memory than there is": (
        memory,
        [run(0, 0, 10, [0, 1, 0]), run(1, 0, 20, [0, 1, 1])],
        [run(0, 0, 10, [0, 1, 0]), run(1, 0, 10, [0, 1, 0])],
        "400 thousandths of memory held, it has 300",
    ),
    "what a node does not say it has it has not": (
        no_cpus,
        [run(0, 0, 20, [0, 1, 1]), run(1, 0, 20, [0, 1, 1])],
        [run(0, 0, 10, [0, 1, 0]), run(1, 10, 20, [0, 1, 0])],
        "500 thousandths of cpus held, it has 0",
    ),
    "a gang is as fast as the slowest of its types": (
        types,
        [run(0, 0, 20, [0, 1], [1, 1])],
        [run(0, 0, 10, [0, 1], [1, 1])],
        "10 ticks short",
    ),
    "a spread gang is as fast as the slowest of its types": (
        spread,
        [run(0, 0, 20, [0, 1], [1, 1])],
        [run(0, 0, 10, [0, 1], [1, 1])],
        "10 ticks short",
    ),
    "gangs are on as few nodes as they fit on": (
        near,
        [run(0, 0, 10, [1, 2])],
        [run(0, 0, 10, [0, 1], [1, 1])],
        "on 2 nodes, which are more than need be",
    ),
    "who restarts begins anew": (
        again,
        [run(0, 0, 5), run(0, 5, 15)],
        [run(0, 0, 5), run(0, 5, 10)],
        "5 ticks short",
    ),
    "a job ends before its checkpoint is written": (
        saved,
        [run(0, 0, 10)],
        [run(0, 0, 12)],
        "after the end of its work",
    ),
    "nobody runs when nodes may be down": (
        saved,
        [run(0, 88, 98)],
        [run(0, 89, 99)],
        "nobody knows which nodes are down",
    ),
    "nothing runs after the window that was complete before it was stopped": (
        stopped_window,
        [run(0, 0, 10), run(1, 0, 10, [0, 1])],
        [run(0, 0, 10), run(1, 0, 11, [0, 1])],
        "goes on after tick 10",
    ),
    "nothing runs after the window": (
        window,
        [run(0, 0, 10), run(1, 0, 10, [0, 1])],
        [run(0, 0, 10), run(1, 0, 11, [0, 1])],
        "goes on after tick 10",
    ),
    "a start, a restart and a migration are paid": (
        partial(charged, run(0, 0, 7, [0, 1], overhead=2)),
        [run(0, 7, 18, [0, 1], overhead=6)],
        [run(0, 7, 17, [0, 1], overhead=5)],
        "owes 1 ticks of overhead",
    ),
    "a partner shares": (
        pairs,
        [run(0, 0, 8, [0, 1], partner=1), run(1, 0, 8, [0, 1], partner=0)],
        [run(0, 0, 10, [0, 1]), run(1, 0, 8, [0, 1], partner=0)],
        "does not share what its partner, job 1, holds",
    ),
    "partners hold the same": (
        pairs,
        [run(0, 0, 8, [0, 1], partner=1), run(1, 0, 8, [0, 1], partner=0)],
        [run(0, 0, 4, [0, 1], partner=1), run(1, 0, 8, [0, 1], partner=0), run(0, 4, 9, [0, 1])],
        "do not hold the same",
    ),
    "nobody is a partner of himself": (
        pairs,
        [run(0, 0, 10), run(1, 0, 10)],
        [run(0, 0, 8, partner=0), run(1, 0, 10)],
        "its own partner",
    ),
    "pairs have speeds on all types that they hold": (
        pairs_of_types,
        [run(0, 0, 10, [0, 1], [1, 1]), run(1, 10, 20, [0, 1], [1, 1])],
        [run(j, 0, 12, [0, 1], [1, 1], partner=1 - j) for j in range(2)],
        "cannot share these GPUs",
    ),
    "a pair is as fast as on the slowest of its types": (
        pairs_on_both,
        [run(j, 0, 24, [0, 1], [1, 1], partner=1 - j) for j in range(2)],
        [run(j, 0, 12, [0, 1], [1, 1], partner=1 - j) for j in range(2)],
        "12 ticks short",
    ),
    "work on two types ends with the tick that completes it": (
        either,
        [run(0, 0, 5), run(0, 5, 15, [1, 1])],
        [run(0, 0, 5), run(0, 5, 17, [1, 1])],
        "after the end of its work",
    ),
    "every GPU of a graph has a replica": (
        graphs,
        [run(0, 0, SECOND, [0, 2, [2]], [1, 2, [2]], [2, 1, [1]])],
        [run(0, 0, SECOND, [0, 1, [2]], [1, 3, [2]], [2, 1, [1]])],
        "has not a replica on each of its GPUs",
    ),
    "two with graphs are slower beside each other": (
        pairs_of_graphs,
        [run(j, 0, 2 * SECOND, [0, 1, [1]], partner=1 - j) for j in range(2)],
        [run(j, 0, SECOND, [0, 1, [1]], partner=1 - j) for j in range(2)],
        f"{SECOND} ticks short",
    ),
    "two that share have CPUs of their own": (
        pairs_of_fed,
        [run(j, 0, 16, [0, 1, 1], partner=1 - j) for j in range(2)],
        [run(j, 0, 8, [0, 1, 0], partner=1 - j) for j in range(2)],
        "node 0: 1000 thousandths of cpus held, it has 900",
    ),
    "a graph has all its replicas": (
        graphs,
        [run(0, 0, SECOND, [0, 3, [3]], [1, 2, [2]])],
        [run(0, 0, SECOND, [0, 3, [3]], [1, 2, [1]])],
        "not a replica on each|replicas of stage 0",
    ),
    "a tenant holds no more than its quota": (
        partial(quotas, *OTHERS),
        [run(1, 10, 20), run(3, 10, 20)],
        [run(3, 9, 19), run(1, 10, 20)],
        "quota 1: 2000 thousandths held at tick 9, it has 1000",
    ),
    "a quota is that of the start": (
        partial(quotas, *OTHERS),
        [run(1, 50, 60), run(3, 50, 60)],
        [run(1, 8, 18), run(3, 50, 60)],
        "quota 0: 2000 thousandths held at tick 8, it has 1000",
    ),
    "a job pays for moving": (
        partial(moving, run(0, 0, 7, [0, 1], overhead=2)),
        [run(0, 7, 21, [1, 1], overhead=9)],
        [run(0, 7, 18, [1, 1], overhead=6)],
        "owes 3 ticks of overhead",
    ),
    "a job that goes on where it was pays for no move": (
        partial(moving, run(0, 0, 7, [0, 1], overhead=2)),
        [run(0, 7, 18, [0, 1], overhead=6)],
        [run(0, 7, 21, [0, 1], overhead=9)],
        "owes -3 ticks of overhead",
    ),
    "a job that stops pays, also where it goes on at once": (
        partial(moving, run(0, 0, 7, [0, 1], overhead=2)),
        [run(0, 7, 18, [0, 1], overhead=6)],
        [run(0, 7, 12, [0, 1])],
        "owes 6 ticks of overhead",
    ),
    "overhead that is cut short is owed": (
        moving,
        [run(0, 0, 1, [0, 1], overhead=1), run(0, 1, 18, [0, 1], overhead=7)],
        [run(0, 0, 2, [0, 1], overhead=1), run(0, 2, 17, [0, 1], overhead=6)],
        "owes 1 ticks of overhead",
    ),
    "no overhead is longer than its run": (
        moving,
        [run(0, 0, 1, [0, 1], overhead=1), run(0, 1, 18, [0, 1], overhead=7)],
        [run(0, 0, 1, [0, 1], overhead=2), run(0, 1, 17, [0, 1], overhead=6)],
        "shorter than its overhead",
    ),
    "a gang pays for its restart by its size": (
        partial(steps, run(0, 0, 7, [0, 2], overhead=2)),
        [
            run(0, 7, 20, [0, 2], overhead=8),
            run(1, 20, 27, [0, 3], overhead=2),
            run(1, 27, 40, [0, 3], overhead=8),
        ],
        [
            run(0, 7, 18, [0, 2], overhead=6),
            run(1, 20, 27, [0, 3], overhead=2),
            run(1, 27, 40, [0, 3], overhead=8),
        ],
        "job 0 owes 2 ticks of overhead",
    ),
    "who changes CPUs alone goes on": (
        partial(changing, run(0, 0, 7, [0, 1, 0], overhead=2)),
        [run(0, 7, 17, [0, 1, 1])],
        [run(0, 8, 18, [0, 1, 1])],
        "owes 2 ticks of overhead",
    ),
    "who is said to begin pays, though he could go on": (
        partial(changing, run(0, 0, 7, [0, 1, 0], overhead=2)),
        [run(0, 7, 17, [0, 1, 1])],
        [run(0, 7, 17, [0, 1, 1], goes_on=False)],
        "owes 2 ticks of overhead",
    ),
    "nobody goes on after a pause": (
        partial(changing, run(0, 0, 7, [0, 1, 0], overhead=2)),
        [run(0, 8, 20, [0, 1, 1], overhead=2)],
        [run(0, 8, 18, [0, 1, 1], goes_on=True)],
        "goes_on is True, and it begins",
    ),
    # Six ticks at full speed and four at half of it, a checkpoint, ten and another: 6/20 + 14/40 are kept.
    "the clock of checkpoints goes on with a run": (
        partial(clocked, run(0, 0, 6, [0, 1, 0]), run(0, 6, 30, [0, 1, 1])),
        [run(0, 40, 47, [0, 1, 0])],
        [run(0, 40, 49, [0, 1, 0])],
        "after the end of its work",
    ),
    # Of the second run ten ticks at half speed are kept: 6/20 + 10/40.
    "the clock of checkpoints begins with a run": (
        partial(clocked, run(0, 0, 6, [0, 1, 0]), run(0, 6, 30, [0, 1, 1], goes_on=False)),
        [run(0, 40, 49, [0, 1, 0])],
        [run(0, 40, 47, [0, 1, 0])],
        "2 ticks short",
    ),
    "a run that goes on has not lost its beginning": (
        partial(forgetting, run(0, 0, 5, [0, 1, 0])),
        [run(0, 5, 15, [0, 1, 1])],
        [run(0, 5, 15, [0, 1, 1], goes_on=False)],
        "10 ticks short",
    ),
    "the slowest piece of a profile counts": (
        uneven,
        [run(0, 0, 20, [0, 1, 0], [1, 1, 1])],
        [run(0, 0, 10, [0, 1, 0], [1, 1, 1])],
        "10 ticks short",
    ),
    "each GPU has its memory": (
        both,
        [run(0, 0, 20, [0, 2, 1])],
        [run(0, 0, 10, [0, 2, 0])],
        "400 thousandths of memory held, it has 300",
    ),
    "a gang that is spread is slower": (
        slow,
        [run(0, 0, 20, [0, 1], [1, 1])],
        [run(0, 0, 10, [0, 1], [1, 1])],
        "10 ticks short",
    ),
    "a gang that is not spread is not": (
        slow,
        [run(0, 0, 10, [0, 2])],
        [run(0, 0, 20, [0, 2])],
        "after the end of its work",
    ),
    "pieces of a gang have a node and GPUs": (
        one,
        [run(0, 0, 10)],
        [run(0, 0, 10, [0, 1, 0])],
        "a piece has 3 entries, not 2",
    ),
    "runs are of jobs": (one, [run(0, 0, 10)], [run(1, 0, 10)], "of job 1, which there is not"),
    "runs are of jobs with a number": (
        one,
        [run(0, 0, 10)],
        [run(0, 0, 10) | {"job": False}],
        "of job False, which there is not",
    ),
    "a run that a fault cuts short saves its checkpoints": (
        partial(failing, run(0, 0, 15)),
        [run(0, 18, 28)],
        [run(0, 18, 23)],
        "5 ticks short",
    ),
    "a run that no fault cuts short saves all": (
        partial(failing, run(0, 0, 14)),
        [run(0, 18, 24)],
        [run(0, 18, 28)],
        "after the end of its work",
    ),
    "a job grows to its greatest width": (
        growing,
        [run(0, 0, 5, [0, 2])],
        [run(0, 0, 5, [0, 3])],
        "holds 3 GPUs, not its gang",
    ),
    "two that share do more than one, each at its own speed": (
        gaining,
        [run(0, 0, 12, partner=1), run(1, 0, 12, partner=0)],
        [run(0, 0, 10, partner=1), run(1, 0, 10, partner=0)],
        "2 ticks short",
    ),
    "copies arrive before they run": (
        partial(copied, arrival=5),
        [copy(5, 25, 0, 0, 40)],
        [copy(4, 24, 0, 0, 40)],
        "before the job arrives",
    ),
    "a node has one copy": (
        copied,
        BOTH_HALVES,
        [BOTH_HALVES[0], copy(0, 13, 0, 1, 20, 3)],
        "node 0 has two",
    ),
    "a copy is on a node": (copied, ALL, [copy(0, 20, 3, 0, 40)], "node 3 has two"),
    "a copy has no more GPUs than its node": (
        copied,
        ALL,
        [copy(0, 14, 0, 0, 40, gpus=3)],
        "node 0: 3 GPUs held",
    ),
    "copies have numbers below the most": (
        copied,
        BOTH_HALVES,
        [BOTH_HALVES[0], copy(0, 13, 1, 2, 20, 3)],
        "copy 2 twice or more",
    ),
    "copies have numbers of their own": (
        copied,
        BOTH_HALVES,
        [BOTH_HALVES[0], copy(0, 13, 1, 0, 20, 3)],
        "copy 0 twice or more",
    ),
    "copies are on GPUs that the job can use": (
        copied,
        ALL,
        [copy(0, 20, 2, 0, 40, gpus=1)],
        "cannot run on node 2",
    ),
    "rounds do not overlap": (
        copied,
        [copy(0, 10, 0, 0, 20), copy(20, 30, 0, 0, 20)],
        [copy(0, 10, 0, 0, 20), copy(19, 29, 0, 0, 20)],
        "rounds are too near",
    ),
    "rounds are in order": (
        copied,
        [copy(0, 10, 0, 0, 20), copy(20, 30, 0, 0, 20)],
        [copy(20, 30, 0, 0, 20), copy(0, 10, 0, 0, 20)],
        "rounds are too near",
    ),
    "copies are aggregated": (
        copied,
        BOTH_HALVES,
        [copy(0, 10, 0, 0, 20), copy(0, 10, 1, 1, 20)],
        "owes another overhead than 0",
    ),
    "a single copy is not aggregated": (
        copied,
        [copy(0, 10, 0, 0, 20), copy(20, 30, 0, 0, 20)],
        [copy(0, 13, 0, 0, 20, 3), copy(20, 30, 0, 0, 20)],
        "owes another overhead than 3",
    ),
    "a copy ends with its steps": (
        copied,
        ALL,
        [copy(0, 19, 0, 0, 40)],
        "ends neither with its steps",
    ),
    "a copy ends with its round": (
        copied,
        [copy(0, 20, 0, 0, 39), copy(20, 21, 0, 0, 1)],
        [copy(0, 21, 0, 0, 42)],
        "ends neither with its steps",
    ),
    "copies do all steps": (copied, ALL, [copy(0, 20, 0, 0, 39)], "does 39 steps of its work, 40"),
    "copies do no more than all steps": (
        copied,
        ALL,
        [*ALL, copy(20, 21, 0, 0, 1)],
        "does 41 steps of its work, 40",
    ),
    "copies run": (copied, ALL, [], "never runs"),
    "copies hold their nodes whole within the quota": (
        copied_within(2, 0),
        [copy(0, 20, 0, 0, 20, gpus=1), copy(20, 40, 0, 0, 20, gpus=1)],
        [copy(0, 13, 0, 0, 10, 3, gpus=1), copy(0, 13, 1, 1, 10, 3, gpus=1)],
        "quota 0: 4 GPUs held at tick 0, it has 2",
    ),
    "copies go on where they were": (
        copied_within(2, 0),
        [copy(0, 10, 0, 0, 20), copy(20, 30, 0, 0, 20)],
        [copy(0, 10, 0, 0, 20), copy(20, 30, 1, 0, 20)],
        "quota 0: 2 GPUs held at tick 20, it has 0",
    ),
    "copies go on at once": (
        copied_within(2, 0),
        [copy(0, 10, 0, 0, 20), copy(20, 30, 0, 0, 20)],
        [copy(0, 10, 0, 0, 20), copy(21, 31, 0, 0, 20)],
        "quota 0: 2 GPUs held at tick 21, it has 0",
    ),
    "copies are on nodes that are up": (
        copied_beside((1, 3, 20)),
        ALL,
        BOTH_HALVES,
        "on node 1, which is down",
    ),
    "copies that were struck end when their node goes down": (
        copied_beside((1, 5, 20)),
        [BOTH_HALVES[0], copy(0, 5, 1, 1, 0, 3), copy(20, 30, 0, 0, 20)],
        [BOTH_HALVES[0], copy(0, 4, 1, 1, 0, 3), copy(20, 30, 0, 0, 20)],
        "is cut before tick",
    ),
    "nodes that were down owe a restart": (
        copied_beside((0, 12, 15)),
        [copy(0, 10, 0, 0, 20), copy(20, 32, 0, 0, 20, 2)],
        [copy(0, 10, 0, 0, 20), copy(20, 30, 0, 0, 20)],
        "owes another overhead than 0",
    ),
    "copies begin anew": (
        restarted,
        [copy(0, 10, 0, 0, 20), copy(40, 60, 0, 0, 40)],
        [copy(0, 10, 0, 0, 20), copy(40, 50, 0, 0, 20)],
        "does 20 steps of its work, 40",
    ),
    "copies that are complete do not begin anew": (
        restarted,
        [copy(0, 10, 0, 0, 20), copy(20, 30, 0, 0, 20)],
        [*ALL, copy(40, 60, 0, 0, 40)],
        "runs again after all steps of its work",
    ),
    "copies run while faults are known": (
        copied_beside((1, 3, 20)),
        [copy(70, 90, 0, 0, 40)],
        [copy(79, 99, 0, 0, 40)],
        "nobody knows which nodes are down",
    ),
    "copies are cut when it was stopped": (
        partial(copied, stopped=15),
        [copy(0, 15, 0, 0, 0)],
        [copy(0, 14, 0, 0, 0)],
        "is cut before tick 15",
    ),
    "copies do not go on after it was stopped": (
        partial(copied, stopped=15),
        [copy(0, 15, 0, 0, 0)],
        [copy(0, 20, 0, 0, 40)],
        "goes on after tick 15",
    ),
    "copies are cut when a window is complete": (
        copied_in_window,
        [*BOTH_HALVES, OTHERS_COPY],
        [*BOTH_HALVES, {**OTHERS_COPY, "end": 12}],
        "is cut before tick 13",
    ),
    "copies do not go on after a window": (
        copied_in_window,
        [*BOTH_HALVES, OTHERS_COPY],
        [*BOTH_HALVES, {**OTHERS_COPY, "end": 20, "steps": 20}],
        "goes on after tick 13",
    ),
    "copies of a job that is not complete cost until it was stopped": (
        partial(copied, stopped=35),
        [copy(0, 10, 0, 0, 20), copy(20, 35, 0, 0, 0, gpus=1)],
        [copy(0, 10, 0, 0, 20)],
        "the schedule costs 35, not 10",
    ),
    "copies that were struck have their node no more": (
        copied_beside((0, 25, 30), gpus=(2, *[0] * 11, 2)),
        [copy(0, 10, 0, 0, 20), copy(20, 25, 0, 0, 0), copy(60, 72, 0, 0, 20, 2)],
        [copy(0, 10, 0, 0, 20), copy(20, 25, 0, 0, 0), copy(40, 52, 0, 0, 20, 2)],
        "quota 0: 2 GPUs held at tick 40, it has 0",
    ),
    "copies that were cut have paid": (
        partial(copied, stopped=2),
        [copy(0, 2, 0, 0, 0, 2), copy(0, 2, 1, 1, 0, 2)],
        [copy(0, 2, 0, 0, 0, 1), copy(0, 2, 1, 1, 0, 2)],
        "owes another overhead than 1",
    ),
    "copies that were cut had steps to do": (
        partial(copied, stopped=13),
        BOTH_HALVES,
        [BOTH_HALVES[0], copy(0, 13, 1, 1, 0, 3)],
        "does 41 steps of its work, 40",
    ),
    "copies that were cut had time to do a step": (
        partial(copied, stopped=20),
        [copy(0, 20, 0, 0, 40)],
        [copy(0, 20, 0, 0, 0)],
        "ends neither with its steps nor with the round",
    ),
    "copies have no partners": (copied, ALL, [{**ALL[0], "partner": 0}], "has a partner"),
    "copies are of a job": (copied, ALL, [{**ALL[0], "job": 1}], "of job 1, which there is not"),
    "copies are of a job with a number": (
        copied,
        ALL,
        [{**ALL[0], "job": False}],
        "of job False, which there is not",
    ),
}


@pytest.mark.parametrize("rule", CASES)
def test_a_schedule_that_breaks_one_rule_is_rejected(rule):
    write, fine, forged, says = CASES[rule]
    check(write(*fine))
    with pytest.raises(Rejected, match=says):
        check(write(*forged))


def test_a_job_that_is_charged_for_another_pays():
    """Two jobs in turn on a node: the second pays for restarting there."""
    both = [job(j, {}, steps=20, rate={"a": 1}) for j in range(2)]
    for overhead, says in ((2, None), (0, "owes another overhead than 0")):
        end = 30 + overhead
        first, second = copy(0, 10, 0, 0, 20), copy(20, end, 0, 0, 20, overhead) | {"job": 1}
        text = certificate(RULES, *HOSTS, *both, first, second, about=COPIES)
        if says is None:
            check(text)
        else:
            with pytest.raises(Rejected, match=says):
                check(text)


CELLS = {"kind": "profile", "profile": 0, "cells": [[0, 0, 1]]}
RATED = job(0, {}, steps=40, rate={"a": 1})
QUOTA = {"kind": "quota", "quota": 0, "periods": [[0, 1], [5, 1]]}


def down(since, until, number=0):
    """A fault."""
    return {"kind": "fault", "node": number, "down": since, "up": until}


@pytest.mark.parametrize(
    ("given", "header", "says"),
    [
        ([RULES, *HOSTS, RATED], {"start": 1}, "copies have other charges"),
        ([RULES, *HOSTS, RATED], {"migration": 1}, "copies have other charges"),
        ([RULES, *HOSTS, RATED], {"restart": [[1, 0], [2, 1]]}, "copies have other charges"),
        ([RULES, *HOSTS, RATED], {"types": "ample"}, "copies are in whole rounds"),
        ([RULES, *HOSTS, RATED], {"placement": "consolidated"}, "never consolidated"),
        ([RULES | {"round": 5}, *HOSTS, RATED], {}, "round is 5, not an integer from 6"),
        ([RULES, FAULTS, *HOSTS, RATED], {}, "interval of checkpoints is 10, not"),
        ([RULES, *GRAPH[:1], *HOSTS, RATED], {}, "copies have no network"),
        ([RULES, *HOSTS, QUOTA, RATED], {}, "quota that is not there, or none"),
        ([*HOSTS, RATED], {}, "rates of copies that cannot be"),
        ([RULES, *HOSTS, RATED | {"rate": {"a": 0}}], {}, "rates of copies that cannot be"),
        ([RULES, *HOSTS, RATED | {"rate": {"c": 1}}], {}, "rates of copies that cannot be"),
        (
            [FAULTS, node(0, 1), job(0, 9)],
            {"preemption": "restart"},
            "interval of checkpoints is 10, not",
        ),
        ([node(0, 1), job(0, 9), down(1, 2)], {}, "nothing says what is saved"),
        ([FAULTS | {"interval": 0}, node(0, 1), job(0, 9)], {}, "interval of checkpoints is 0"),
        ([FAULTS, node(0, 1), down(1, 1), job(0, 9)], {}, "end of a fault is 1"),
        ([FAULTS, node(0, 1), down(1, 2, 1), job(0, 9)], {}, "node 1 fails, which there is not"),
        (
            [FAULTS, node(0, 1), down(50, 60), down(70, 80), down(60, 70), job(0, 9)],
            {},
            "faults of node 0 are out of order",
        ),
        ([node(1, 1), job(0, 9)], {}, "node 0 is out of order"),
        ([node(0, 1), {**CELLS, "profile": 1}, job(0, 9)], {}, "profile is out of order"),
        ([node(0, 1), {**QUOTA, "quota": 1}, job(0, 9)], {}, "a quota is out of order"),
        ([node(0, 1), QUOTA | {"periods": [[1, 1]]}, job(0, 9)], {}, "does not begin at 0"),
        ([node(0, 1), QUOTA | {"periods": [[0, 1], [0, 1]]}, job(0, 9)], {}, "out of order"),
        ([node(0, 1), QUOTA, job(0, 9)], {}, "quota that is not there, or none"),
        ([node(0, 1), job(0, 9, quota=0)], {}, "quota that is not there, or none"),
        ([node(0, 1), QUOTA, job(0, 9, quota=1)], {}, "quota that is not there"),
        ([node(0, 1), *GRAPH[:1], GRAPH[1] | {"graph": 1}, job(0, 9)], {}, "graph is out of order"),
        ([node(0, 1), GRAPH[1], job(0, 9)], {}, "graphs and no network"),
        (
            [node(0, 1), {"kind": "widths", "widths": 1, "speeds": [1]}, job(0, 9)],
            {},
            "widths are out of order",
        ),
        (
            [node(0, 1), {"kind": "widths", "widths": 0, "speeds": [2, 1]}, job(0, 9)],
            {},
            "own speed is not 1",
        ),
        ([node(0, 1), job(0, 9, part=1000)], {}, "a part of something else than a GPU"),
        ([node(0, 2), job(0, 9, 2, part=500)], {}, "a part of something else than a GPU"),
        ([node(0, 1), job(0, 9, spread=2)], {}, "is faster when spread"),
        ([node(0, 1), job(0, 9, spread=0)], {}, "is faster when spread"),
        ([node(0, 1), CELLS, job(0, 9, profile=1)], {}, "has a profile that is not there"),
        ([node(0, 1), job(0, {"b": 9})], {}, "on a type that no node is of"),
        ([node(0, 1), job(0, 9, id="x"), job(1, 9, id="x")], {}, "has the id of another"),
        ([node(0, 1), job(0, 9)], {"restart": [[2, 0], [2, 0]]}, "not increasing"),
        ([node(0, 1), job(0, 9)], {"restart": []}, "not increasing"),
        ([node(0, 1), job(0, 0)], {}, "run time of job 0 is 0"),
        ([node(0, 1), job(0, 9, 0)], {}, "gang of job 0 is 0"),
        ([node(0, 0), job(0, 9)], {}, "GPUs of node 0 is 0"),
        ([node(0, 1), {**CELLS, "cells": []}, job(0, 9)], {}, "no speeds, or one of 0"),
        ([node(0, 1), {**CELLS, "cells": [[0, 0, 0]]}, job(0, 9)], {}, "no speeds, or one of 0"),
        (
            [node(0, 1), GRAPH[0] | {"sharing": "none"}, job(0, 9)],
            {},
            "sharing of the network is 'none'",
        ),
        ([node(0, 1), GRAPH[0] | {"nic": 0}, job(0, 9)], {}, "a bandwidth is 0"),
        ([node(0, 1), *GRAPH, job(0, {}, 5, graph=0)], {}, "graph or work without the other"),
        ([node(0, 1), *GRAPH, job(0, {}, 5, work=1)], {}, "graph or work without the other"),
        ([node(0, 1), *GRAPH, job(0, 9, 5, graph=0, work=1)], {}, "a graph and other speeds"),
        (
            [node(0, 1), *ONE_STAGE, job(0, {}, **{**MAPPED, "beside": {"a": {"0": 0}}})],
            {},
            "job 0 has no speed beside another",
        ),
        (
            [node(0, 1), *GRAPH, job(0, {}, 5, graph=0, work=1, spread=1)],
            {},
            "a graph and other speeds",
        ),
        ([node(0, 1), job(0, 9)], {"window": [0, 0]}, "the window has no jobs"),
        ([node(0, 1), job(0, 9)], {"window": [0, 2]}, "the window has jobs that there are not"),
        (
            [node(0, 1), job(0, 9, arrival=9)],
            {"stopped": 9},
            "stopped before a job that counts arrived",
        ),
        (
            [node(0, 1), job(0, 9), job(1, 9, arrival=9)],
            {"window": [1, 2], "stopped": 9},
            "stopped before a job that counts arrived",
        ),
    ],
)
def test_an_instance_that_cannot_be_is_rejected(given, header, says):
    with pytest.raises(Rejected, match=says):
        check(certificate(*given, cost=1, **header))


def test_a_node_is_down_until_its_last_fault_is_over():
    given = [FAULTS, node(0, 1), down(10, 60), down(20, 30), job(0, 10)]
    about = CLASS.replace("schedules", "schedules on nodes that fail")
    check(certificate(*given, run(0, 60, 70), about=about))
    for start in (30, 59):
        with pytest.raises(Rejected, match="on node 0, which is down"):
            check(certificate(*given, run(0, start, start + 10), about=about))


def test_a_node_that_fails_twice_is_down_twice():
    given = [FAULTS, node(0, 1), down(5, 20), down(30, 40), job(0, 10)]
    about = CLASS.replace("schedules", "schedules on nodes that fail")
    check(certificate(*given, run(0, 20, 30), about=about))
    for start in (0, 19, 21, 35):
        with pytest.raises(Rejected, match=r"on node 0, which is down|ticks short"):
            check(certificate(*given, run(0, start, start + 10), about=about))


def test_bounds_of_pairs_are_not_of_jobs_with_graphs():
    runs = [run(j, 0, 2 * SECOND, [0, 1, [1]], partner=1 - j) for j in range(2)]
    jobs = [job(j, {}, **MAPPED) for j in range(2)]
    bound = {**least("priced-fluid-of-pairs", None, [1]), "rows": []}
    with pytest.raises(Rejected, match="pairs: jobs hold parts of GPUs or have graphs"):
        check(certificate(*ONE_STAGE, node(0, 1), *jobs, *runs, bound, about=PAIRS))
