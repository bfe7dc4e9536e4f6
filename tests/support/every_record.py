"""Small certificates that are accepted, which together have every kind of record, and every field of each."""

from __future__ import annotations

from shadowprice.instances.schedule_class import AMPLE_TYPES
from shadowprice.proofs.checker.form import PRICE_UNIT
from support.small_certificates import (
    CLASS,
    PAIRS,
    PARTS,
    certificate,
    earning,
    job,
    least,
    node,
    run,
)

GROW = f"{CLASS} and gangs may grow"
ONE = [node(0, 2), job(0, 10)]
MACHINE = node(0, 2, cpus=2000, memory=1000)
CELLS = {"kind": "profile", "profile": 0, "cells": [[500, 250, 1], [0, 125, "1/2"]]}
WIDER = {"kind": "widths", "widths": 0, "speeds": [1, "3/2"]}
NETWORK = {"kind": "network", "intra": 4, "nic": 2, "gpus": 3, "sharing": "per-job"}
STAGES = [[2, 1, "1/2", 0], [1, 1, 0, 8]]
GRAPH = {
    "kind": "graph",
    "graph": 0,
    "microbatches": 2,
    "stages": STAGES,
    "links": [[0, 1, 1, False]],
}
SECONDS = 2**20
RULES = {"kind": "copies", "round": 100, "restart": 2, "aggregation": 3, "most": 2}
CHECKPOINTS = {"kind": "checkpoints", "interval": 5, "cost": 1, "until": 2**60}
QUOTA = {"kind": "quota", "quota": 0, "periods": [[0, 1], [50, 2]]}
CUT = {"kind": "part", "cut": 0, "at": "31/2", "first": "early"}
WINDOWS = {**least("completion-windows"), "jobs": [0, 1], "unit": "1/2"}
DUE = [job(j, 10, worth=4, deadline=20) for j in range(2)]
BESIDE = {"sort": 0, "beside": {"a": {"0": 12}}}

EVERY = {
    "charges": certificate(
        node(0, 1),
        node(1, 1),
        job(0, 10, weight="1/2"),
        run(0, 0, 9, overhead=2),
        run(0, 20, 30, [1, 1], overhead=7),
        start=2,
        migration=1,
        restart=[[1, 4], [2, 6]],
    ),
    "the LP": certificate(*ONE, run(0, 0, 10), least("interval-lp", [0, 10], [0]), bound=10),
    "ample types": certificate(
        *ONE, run(0, 0, 10), about=f"{CLASS}, {AMPLE_TYPES}", types="ample", bound=5
    ),
    "plans": certificate(*ONE, run(0, 0, 10), least("priced-plans", [0, 10], [3]), bound=4),
    "configurations": certificate(
        *ONE, run(0, 0, 10), least("configurations", [0, 10], [[3]]), bound=10
    ),
    "the last end": certificate(
        *ONE, run(0, 0, 10), least("priced-span", None, [[1], [1]]), objective="makespan", bound=10
    ),
    "values": certificate(
        *ONE,
        run(0, 0, 10),
        {**least("typed-interval-lp", [0, 10], [[0]]), "values": ["1/2"]},
        bound=4,
    ),
    "nodes": certificate(
        *ONE,
        run(0, 0, 10),
        {**least("priced-fluid-of-nodes", None, [1, 1]), "rows": [[0, 2, [PRICE_UNIT // 2], 0]]},
        placement="consolidated",
        about=f"{CLASS}, on as few nodes as gangs fit on",
    ),
    "powers": certificate(
        node(0, 2),
        WIDER,
        job(0, 10, widths=0),
        run(0, 0, 10),
        {**least("speed-up-power", [5]), "exponent": 2**19},
        about=GROW,
    ),
    "windows": certificate(
        node(0, 1),
        job(0, 10),
        job(1, 10),
        run(0, 0, 10),
        run(1, 10, 20),
        WINDOWS,
        CUT,
        {"kind": "part", "grid": [0, "41/2"], "prices": [[0], [0]]},
        {"kind": "part", "grid": [], "prices": []},
        bound=20,
    ),
    "lists": certificate(
        node(0, 1),
        job(0, 10),
        run(0, 0, 10),
        {**least("list-schedules", [0, 10], [3]), "least": "19/2"},
        starts="once",
        about=f"non-{CLASS}",
        bound=9,
    ),
    "utility": earning(
        node(0, 1),
        *DUE,
        run(0, 0, 10),
        run(1, 10, 20),
        {**least("typed-round-prices", None, [[1, 1]]), "unit": "1/2"},
        earned=8,
        bound=8,
        round=10,
        rounds="whole",
        about=f"{CLASS}, in whole rounds of {10 / SECONDS!r} s",
    ),
    "a window": certificate(
        node(0, 1),
        job(0, 10),
        job(1, 10),
        run(1, 0, 10),
        window=[1, 2],
        about=f"{CLASS}, counting jobs 1 to 1 alone",
    ),
    "stopped, restarting": certificate(
        node(0, 1),
        job(0, 10),
        run(0, 0, 5),
        stopped=5,
        preemption="restart",
        cost=5,
        about=f"{CLASS}, jobs restart when preempted, counting time until {5 / SECONDS!r} s alone",
    ),
    "copies": certificate(
        RULES,
        node(0, 2),
        node(1, 2, "b"),
        job(0, {}, steps=20, rate={"a": "1/2"}),
        run(0, 0, 20, [0, 2], copy=0, steps=20),
        about="schedules in which a job is at most 2 copies on whole nodes",
    ),
    "failures": certificate(
        CHECKPOINTS,
        node(0, 1),
        {"kind": "fault", "node": 0, "down": 8, "up": 12},
        job(0, 10),
        run(0, 0, 8),
        run(0, 12, 17),
        about=CLASS.replace("schedules", "schedules on nodes that fail"),
    ),
    "quotas": certificate(
        node(0, 2),
        QUOTA,
        job(0, 10, quota=0),
        job(1, 10, quota=0),
        run(0, 0, 10),
        run(1, 10, 20),
        about=CLASS.replace("schedules", "schedules within quotas of tenants"),
    ),
    "growth, profiles and spreading": certificate(
        MACHINE,
        WIDER,
        CELLS,
        job(0, 30, widths=0, profile=0, spread="1/2"),
        run(0, 0, 20, [0, 2, 0]),
        about=GROW,
    ),
    "amounts": certificate(
        MACHINE,
        CELLS,
        *(job(j, 10, profile=0) for j in range(2)),
        *(run(j, 0, 10, [0, 1, 0]) for j in range(2)),
        least("priced-fluid-of-amounts", None, [1, 1, 1]),
    ),
    "who begins again where he could go on": certificate(
        MACHINE,
        CELLS,
        job(0, 10, profile=0),
        run(0, 0, 4, [0, 1, 0]),
        run(0, 4, 12, [0, 1, 0], overhead=2, goes_on=False),
        restart=[[1, 2]],
    ),
    "graphs": certificate(
        NETWORK,
        node(0, 3),
        GRAPH,
        job(0, {}, 3, graph=0, work="3/1048576"),
        run(0, 0, 9, [0, 3, [2, 1]]),
    ),
    "powers of graphs": certificate(
        NETWORK,
        node(0, 3),
        GRAPH,
        job(0, {}, 3, graph=0, work="3/1048576"),
        run(0, 0, 9, [0, 3, [2, 1]]),
        {**least("speed-up-power"), "exponent": 2**19},
    ),
    "pairs": certificate(
        node(0, 1),
        *(job(j, 10, **BESIDE) for j in range(2)),
        *(run(j, 0, 12, partner=1 - j) for j in range(2)),
        {**least("priced-fluid-of-pairs", None, [1]), "rows": [[0, [PRICE_UNIT // 2]]]},
        about=PAIRS,
    ),
    "parts": certificate(node(0, 1), job(0, 10, part=500), run(0, 0, 10, [0, 1, 0]), about=PARTS),
}
