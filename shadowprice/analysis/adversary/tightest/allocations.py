"""Theorems on allocations, rounds and pairs: Gavel's, POP, and Gandiva's packing."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from shadowprice.analysis.adversary.tightest.comparisons import (
    SOLVED,
    TightnessOf,
    WholeColumn,
    WitnessedRatio,
    as_solved,
)
from shadowprice.analysis.adversary.tightest.pool_theorems import gangs, least_known
from shadowprice.errors import PolicyError, SolverError
from shadowprice.execution.shares import run_in_shares
from shadowprice.instances.allocation_problem import AllocationProblem
from shadowprice.instances.hard_instances import Rows
from shadowprice.proofs.gandiva import matching
from shadowprice.proofs.gavel import pop, proportional_fairness, rounds, share
from shadowprice.solvers.gandiva.exact import best_pairs, greedy_pairs
from shadowprice.solvers.gavel.policies.pop import Pop
from shadowprice.solvers.gavel.rounds import Combinations, fractions, priorities, select
from shadowprice.solvers.gavel.workspace import Workspace
from shadowprice.solvers.registry import allocation

ROUNDS = 40
"""Rounds of the rule that are looked at."""


def of_matching(rows: Rows) -> WitnessedRatio | None:
    """Pairs of jobs with their gains; the best gain over greedy's."""
    gains = {(a, b): float(gain) for a, b, gain in rows if a < b}
    if not gains:
        return None
    best, greedy = (
        sum((Fraction(gains[pair]) for pair in pairs), Fraction(0))
        for pairs in (best_pairs(gains), greedy_pairs(gains))
    )
    return WitnessedRatio(best / greedy, best / matching.bound(gains))


def of_rounds(rows: Rows) -> WitnessedRatio:
    """Fractions in proportion to parts; what a job lacks in some round by the package's own mechanism."""
    parts = [row[0] for row in rows]
    shares = [Fraction(part, sum(parts)) for part in parts]
    count = len(shares)
    jobs, one = np.arange(count), np.ones((count, 1), dtype=bool)
    queue = Combinations(jobs, jobs, np.ones(count, dtype=np.int64), one)
    x = np.array([[float(each)] for each in shares])
    received, served = np.zeros((count, 1)), [0] * count
    made = []
    for number in range(1, ROUNDS + 1):
        keys = [priorities(x, fractions(received), one), x]
        job = int(select(queue, keys, np.array([1])).row[0])
        received[job] += 1.0
        served[job] += 1
        lacks = [number * each - n for each, n in zip(shares, served, strict=True)]
        made += [
            WitnessedRatio(lack, limit)
            for lack, (_, limit) in zip(lacks, rounds.bound(shares), strict=True)
        ]
    return max(made, key=lambda each: each.closeness)


def _two_types(rows: Rows) -> AllocationProblem:
    """Jobs of gang and rates on two types of four GPUs."""
    return AllocationProblem.from_columns(
        gpu_types=["a", "b"],
        capacity=[4, 4],
        throughput=[[float(a), float(b)] for _, a, b in rows],
        gpus=[gang for gang, _, _ in rows],
    )


def of_share(rows: Rows) -> WitnessedRatio:
    """The least level of max-min fairness, not below the bound of statement 1."""
    problem = _two_types(rows)
    answer = allocation("max_min_fairness:aware=true").allocate(problem, Workspace())
    level = float(share.levels(problem, answer.alone).min())
    return WitnessedRatio(as_solved(share.bound(problem)), as_solved(level))


def of_parts(rows: Rows) -> WitnessedRatio | None:
    """The level of the whole over that of POP with two parts; jobs are dealt by seed 0."""
    if any(a == b == 0 for _, a, b in rows):
        return None
    problem = _two_types(rows)
    try:
        answer = Pop(parts=2, seed=0).allocate(problem, Workspace())
    except (PolicyError, SolverError):
        return None
    level = float(answer.objective or 0.0)
    least, most = pop.bound(problem, 2)
    if level <= 0 or least <= 0:
        return None
    return WitnessedRatio(as_solved(most / level), as_solved(most / least))


def of_proportional_fairness(rows: Rows) -> WitnessedRatio:
    """Total completion time in shares of two GPUs over that of a schedule one could have made."""
    instance = gangs("1x2", rows)
    total = run_in_shares(instance, "proportional_fairness:aware=true").total_completion_s
    ratio = as_solved(float(total / least_known(instance)))
    return WitnessedRatio(ratio, Fraction(proportional_fairness.FACTOR))


ENTRIES = (
    TightnessOf(
        "gandiva.matching",
        "largest total gain over greedy's, and the factor",
        (WholeColumn("job", 0, 6), WholeColumn("other", 1, 7), WholeColumn("gain", 1, 10**6)),
        1,
        8,
        of_matching,
        known=(((0, 1, 10**6 - 1), (1, 2, 10**6), (2, 3, 10**6 - 1)),),
    ),
    TightnessOf(
        "gavel.rounds",
        f"rounds that a job lacks within {ROUNDS}, and the most that it may lack",
        (WholeColumn("parts", 1, 10**6),),
        3,
        6,
        of_rounds,
        known=(((10**6,), (1,), (1,), (1,)),),
    ),
    TightnessOf(
        "gavel.share",
        "the least level that is proven, and the optimum's",
        (
            WholeColumn("gpus", 1, 4),
            WholeColumn("rate_a", 1, 4),
            WholeColumn("rate_b", 1, 4),
        ),
        2,
        5,
        of_share,
        off=SOLVED,
    ),
    TightnessOf(
        "gavel.pop",
        "the level of the whole over that of two parts, and the factor",
        (
            WholeColumn("gpus", 1, 4),
            WholeColumn("rate_a", 0, 4),
            WholeColumn("rate_b", 0, 4),
        ),
        2,
        8,
        of_parts,
        off=SOLVED,
    ),
    TightnessOf(
        "gavel.proportional_fairness",
        "total completion time in shares of two GPUs over the optimum's, and the factor",
        (WholeColumn("arrival_s", 0, 6), WholeColumn("work_s", 1, 8), WholeColumn("gpus", 1, 2)),
        2,
        8,
        of_proportional_fairness,
        off=SOLVED,
    ),
)
"""Entries of these theorems."""
