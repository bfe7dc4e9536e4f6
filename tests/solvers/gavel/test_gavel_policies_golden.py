"""Allocation policies against recorded runs of Gavel's code and independent optima of its programmes.

Optima of linear programmes are not unique, so objectives are compared; Gavel's own values where
its code is exact, and optima computed apart from both where it is not.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, linear_sum_assignment, milp

from shadowprice.instances.allocation_problem import AllocationProblem, Pairs
from shadowprice.solvers.gavel.allocation import AllocationPolicy
from shadowprice.solvers.gavel.earlier_names import WRITTEN_NOW
from shadowprice.solvers.gavel.policies.isolated import isolated_shares
from shadowprice.solvers.gavel.policies.water_filling import WaterFilling
from shadowprice.solvers.gavel.workspace import Workspace
from shadowprice.solvers.registry import allocation
from support.paths import SHARED

GOLDEN = SHARED / "golden" / "gavel" / "policies.json"
THROUGHPUTS = SHARED / "data" / "gavel" / "simulation_throughputs.json.xz"

pytestmark = pytest.mark.skipif(
    not (GOLDEN.exists() and THROUGHPUTS.exists()), reason=f"no recorded runs in {SHARED}"
)

PROGRAMMES = (
    "max_min_fairness",
    "max_min_fairness_perf",
    "max_min_fairness_packed",
    "finish_time_fairness",
    "finish_time_fairness_perf",
    "finish_time_fairness_packed",
    "min_total_duration",
    "min_total_duration_perf",
    "min_total_duration_packed",
    "max_sum_throughput_perf",
    "max_sum_throughput_normalized_by_cost_perf",
    "max_sum_throughput_normalized_by_cost_perf_SLOs",
    "max_sum_throughput_normalized_by_cost_packed_SLOs",
)
WATER_FILLING = tuple(f"max_min_fairness_water_filling{s}" for s in ("", "_perf", "_packed"))
CLOSED = ("isolated", "proportional", "fifo_perf", "allox")
RANDOM = ("fifo", "fifo_packed", "gandiva")
"""Policies whose recorded runs depend on another random generator, or oversubscribe."""


@cache
def recorded() -> Any:
    return json.loads(GOLDEN.read_text())


@cache
def table() -> Any:
    with lzma.open(THROUGHPUTS) as file:
        return json.load(file)


def cases(*policies: str, stateful: bool = False, entities: bool = False) -> list[Any]:
    """Recorded cases of some policies, named for pytest."""
    if not GOLDEN.exists():
        return []
    found = []
    for case in recorded()["cases"]:
        params = case.get("params", {})
        if (
            case["policy"] in policies
            and ("call" in case) == stateful
            and ("entities" in params) == entities
        ):
            parts = [case["input"], case["policy"], params.get("SLO_set", "")]
            parts += [params["reweighting"]["B"]] if entities else []
            parts += [str(case["call"]["step"])] if stateful else []
            found.append(pytest.param(case, id="-".join(filter(None, parts))))
    return found


def policy_of(case: Mapping[str, Any]) -> AllocationPolicy:
    """Ours of the name that Gavel's code has."""
    return allocation(WRITTEN_NOW.get(case["policy"], case["policy"]))


def pairs_of(jobs: list[Mapping[str, Any]], types: list[str]) -> Pairs:
    """All pairs of equal gangs, with their throughputs from the table."""
    first, second = np.triu_indices(len(jobs), 1)
    equal = [jobs[a]["sf"] == jobs[b]["sf"] for a, b in zip(first, second, strict=True)]
    first, second = first[equal], second[equal]
    keys = [str((job["type"], job["sf"])) for job in jobs]
    rates = np.array(
        [
            [table()[t][keys[a]].get(keys[b], [0.0, 0.0]) for t in types]
            for a, b in zip(first, second, strict=True)
        ]
    ).reshape(-1, len(types), 2)
    return Pairs(first, second, rates[:, :, 0], rates[:, :, 1])


def problem_of(case: Mapping[str, Any], **columns: Any) -> AllocationProblem:
    given = recorded()["inputs"][case["input"]]
    types, jobs, params = sorted(given["cluster"]), given["jobs"], case.get("params", {})
    n = len(jobs)
    slo = np.full(n, np.inf)
    for job, seconds in params.get("SLO_seconds_from_now", {}).items():
        slo[int(job)] = seconds
    prices = params.get("instance_costs", {})
    return AllocationProblem.from_columns(
        **{
            "gpu_types": types,
            "capacity": [given["cluster"][t] for t in types],
            "throughput": [job["tput"] for job in jobs] if n else np.zeros((0, len(types))),
            "gpus": [job["sf"] for job in jobs],
            "weight": [job["w"] for job in jobs],
            "steps": [job["steps"] for job in jobs],
            "elapsed_s": [job["t0"] for job in jobs],
            "slo_s": slo,
            "price": [prices.get(t, 1.0) for t in types],
            "pairs": pairs_of(jobs, types) if "packed" in case["policy"] else None,
            "source": case["input"],
        }
        | columns
    )


def test_every_recorded_case_is_compared_or_known_to_be_random() -> None:
    policies = {case["policy"] for case in recorded()["cases"]}
    assert policies == {*PROGRAMMES, *WATER_FILLING, *CLOSED, *RANDOM}
    assert len(recorded()["cases"]) == 233


@pytest.mark.parametrize("case", cases(*PROGRAMMES))
def test_the_objective_is_the_exact_optimum(case: Any) -> None:
    problem = problem_of(case)
    found = policy_of(case).allocate(problem, Workspace())
    found.verify()
    if not len(problem):
        assert found.objective is None
        return
    exact = case["objective"]["exact"]
    if isinstance(exact, str):  # Gavel gives up all objectives where these cannot all be kept.
        assert "infeasible" in exact
        assert found.notes
        assert found.objective < case["objective"]["gavel"] * (1 + 1e-6)
        return
    assert found.objective == pytest.approx(exact, rel=1e-6)
    assert found.bound == pytest.approx(exact, rel=1e-6)
    unweighted = case["policy"] in ("finish_time_fairness", "finish_time_fairness_perf")
    noted = unweighted and bool((problem.weight != 1.0).any())
    assert [note[:23] for note in found.notes] == ["weights are left aside,"] * noted


@pytest.mark.parametrize("case", cases(*WATER_FILLING))
def test_water_filling_is_lexicographically_optimal(case: Any) -> None:
    problem = problem_of(case)
    found = policy_of(case).allocate(problem, Workspace())
    found.verify()
    if not len(problem):
        return
    assert found.prices is not None
    levels = np.sort(found.prices.level / problem.weight)
    exact = case["objective"]["exact"]
    np.testing.assert_allclose(levels, exact, rtol=1e-5)
    assert found.objective == pytest.approx(exact[0], rel=1e-5)


@pytest.mark.parametrize("case", cases("max_min_fairness_water_filling_perf", entities=True))
def test_entities_share_as_in_gavel(case: Any) -> None:
    params = case["params"]
    problem = problem_of(case)
    entity = ["A" if job % 2 == 0 else "B" for job in range(len(problem))]
    policy = WaterFilling(
        "hierarchy",
        entity_weights={k: float(v) for k, v in params["entity_weights"].items()},
        inside=params["reweighting"],
    )
    found = policy.allocate(problem_of(case, entity=entity), Workspace())
    found.verify()
    np.testing.assert_allclose(
        found.effective_throughput, case["effective_throughput"], rtol=1e-3, atol=1e-6
    )


def allocation_of(case: Any, jobs: int) -> np.ndarray:
    shares = np.zeros((jobs, 3))
    for job, row in case["allocation"] or ():
        shares[job] = row
    return shares


@pytest.mark.parametrize(
    "case", cases("isolated", "proportional", "fifo_perf") + cases("fifo_perf", stateful=True)
)
def test_rules_without_a_programme_allocate_the_same(case: Any) -> None:
    problem = problem_of(case)
    expected = allocation_of(case, len(problem))
    if "call" in case:
        here = np.isin(np.arange(len(problem)), case["call"]["active"])
        problem, expected = problem.select(here), expected[here]
    found = policy_of(case).allocate(problem, Workspace())
    np.testing.assert_allclose(found.alone, expected, rtol=1e-5, atol=1e-9)
    if case["policy"] != "proportional":
        found.verify()


@pytest.mark.parametrize("case", cases("allox") + cases("allox", stateful=True)[::3])
def test_allox_assigns_at_the_same_cost(case: Any) -> None:
    # From the second call on Gavel keeps running jobs where they are; the rule here is stateless.
    problem = problem_of(case)
    found = allocation("allox").allocate(problem, Workspace())
    found.verify()
    expected = allocation_of(case, len(problem))
    if len(problem):
        best = completion_time(problem)
        assert completion_time(problem, expected) == pytest.approx(best, rel=1e-9)
        assert completion_time(problem, found.alone) == pytest.approx(best, rel=1e-9)


def completion_time(problem: AllocationProblem, running: np.ndarray | None = None) -> float:
    """Least total completion time [s]; with these jobs first on GPUs of their types if given."""
    n, deep = len(problem), 4
    alone_s = problem.steps[:, None] / problem.throughput
    if running is None:
        types = np.repeat(np.arange(3), problem.capacity.astype(int))
        slots = [(j, k) for j in types for k in range(1, deep + 1)]
        cost = np.array([[alone_s[m, j] * k for j, k in slots] for m in range(n)])
        rows, columns = linear_sum_assignment(cost)
        return float(cost[rows, columns].sum())
    heads = np.flatnonzero(running.any(axis=1))
    place = np.arange(1, deep + 1)
    # z[m, h, k]: m is k-th from last on the GPU whose first job is h.
    cost = alone_s[:, running[heads].argmax(axis=1), None] * place
    at = np.arange(cost.size).reshape(cost.shape)
    rows_: list[tuple[Any, Any, float, float]] = [(at[m].ravel(), 1.0, 1.0, 1.0) for m in range(n)]
    for h, head in enumerate(heads):
        rows_.append((at[head, h], 1.0, 1.0, 1.0))
        for k in range(deep):
            rows_.append((at[:, h, k], 1.0, 0.0, 1.0))
            others = np.delete(at[:, h, k:], head, axis=0).ravel()
            columns = np.append(others, at[head, h, k])
            rows_.append((columns, np.append(np.ones(len(others)), n), 0.0, n))
    matrix = np.zeros((len(rows_), cost.size))
    for row, (columns, value, _, _) in zip(matrix, rows_, strict=True):
        row[columns] = value
    limits = LinearConstraint(matrix, [r[2] for r in rows_], [r[3] for r in rows_])
    found = milp(cost.ravel(), constraints=limits, integrality=1, bounds=Bounds(0, 1))
    return float(found.fun) if found.success else float("inf")


def series() -> Iterator[Any]:
    names = dict.fromkeys(
        p.values[0]["input"] for p in cases("finish_time_fairness_perf", stateful=True)
    )
    for name in names:
        steps = [
            p.values[0]
            for p in cases("finish_time_fairness_perf", stateful=True)
            if p.values[0]["input"] == name
        ]
        yield pytest.param(steps, id=name)


@pytest.mark.parametrize("calls", list(series()))
def test_finish_time_fairness_with_a_history(calls: list[Any]) -> None:
    isolated_s: Any = 0.0
    workspace = Workspace()
    before = None
    assert len(calls) == 3
    for case in calls:
        steps = np.array(case["call"]["num_steps_remaining"], dtype=float)
        problem = problem_of(case, steps=steps, elapsed_s=case["call"]["times_since_start"])
        isolated = (problem.throughput * isolated_shares(problem)).sum(axis=1)
        if before is not None:
            isolated_s = isolated_s + (before - steps) / isolated
        before = steps
        problem = replace(problem, isolated_s=np.zeros(len(problem)) + isolated_s)
        found = allocation("finish_time_fairness:aware=true").allocate(problem, workspace)
        found.verify()
        got = np.array(case["effective_throughput"])
        ratio = (problem.elapsed_s + steps / got) / (problem.isolated_s + steps / isolated)
        assert found.objective == pytest.approx(ratio.max(), rel=2e-5)
        assert found.bound == pytest.approx(found.objective, rel=1e-6)
