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
    node,
    run,
)

SECOND = 2**20


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
    "a graph has all its replicas": (
        graphs,
        [run(0, 0, SECOND, [0, 3, [3]], [1, 2, [2]])],
        [run(0, 0, SECOND, [0, 3, [3]], [1, 2, [1]])],
        "not a replica on each|replicas of stage 0",
    ),
}


@pytest.mark.parametrize("rule", CASES)
def test_a_schedule_that_breaks_one_rule_is_rejected(rule):
    write, fine, forged, says = CASES[rule]
    check(write(*fine))
    with pytest.raises(Rejected, match=says):
        check(write(*forged))
