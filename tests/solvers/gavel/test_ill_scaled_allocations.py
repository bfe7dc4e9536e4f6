"""Allocations of problems whose numbers are of very different size, held against rationals.

What is printed as the objective is that of the printed allocation, and nothing is called optimal
that misses its optimum by more than :data:`PRINTED`, relative to the objective.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shadowprice.instances.allocation_problem import AllocationProblem, Pairs
from shadowprice.solvers.gavel import max_min_level
from shadowprice.solvers.gavel.allocate import allocate
from shadowprice.solvers.gavel.allocation import Allocation
from shadowprice.solvers.gavel.crossing import crossing
from shadowprice.solvers.gavel.explain import explain
from shadowprice.solvers.gavel.policies import water_filling
from shadowprice.solvers.gavel.programme import Programme
from shadowprice.solvers.gavel.rates import Rates
from shadowprice.solvers.gavel.reached import CLOSE
from shadowprice.solvers.gavel.total import Charges, Values, ratio_bound
from shadowprice.solvers.programs.solution import Unbounded
from support.allocation_policies import with_settings
from support.command_line import CommandLine
from support.exact_allocations import ExactProblem, Row, dot
from support.paths import ROOT

PRINTED = Fraction(1, 100_000)
"""Relative to the objective; what docs/semantics.md states."""

Verdict = tuple[Fraction, bool]
"""Objective of the printed allocation, and whether none is better by more than :data:`PRINTED`."""


def of_level(exact: ExactProblem, got: Row, need: Row) -> Verdict:
    """Smallest throughput over need, against the largest that any allocation has."""
    smallest = min(g / n for g, n in zip(got, need, strict=True))
    return smallest, exact.level(need) * (1 - PRINTED) <= smallest


def max_min(exact: ExactProblem, found: Allocation, got: Row) -> Verdict:
    return of_level(
        exact, got, [w * f for w, f in zip(exact.weight, exact.fair_share(), strict=True)]
    )


def makespan(exact: ExactProblem, found: Allocation, got: Row) -> Verdict:
    level, best = of_level(exact, got, exact.steps)
    return 1 / level if level else Fraction(10) ** 400, best


def finish_time(exact: ExactProblem, found: Allocation, got: Row, weighted: bool) -> Verdict:
    work = [s * (w if weighted else 1) for s, w in zip(exact.steps, exact.weight, strict=True)]
    due = [
        i + s / rate
        for i, s, rate in zip(exact.isolated_s, exact.steps, exact.isolated(), strict=True)
    ]
    if not all(got):
        return Fraction(10) ** 400, False
    rho = max((t + w / g) / d for t, w, g, d in zip(exact.elapsed_s, work, got, due, strict=True))
    lower = rho * (1 - PRINTED)
    room = [lower * d - t for d, t in zip(due, exact.elapsed_s, strict=True)]
    if min(room) <= 0:
        return rho, True
    return rho, exact.level([w / r for w, r in zip(work, room, strict=True)]) <= 1


def total(exact: ExactProblem, found: Allocation, value: Row, least: Row | None = None) -> Verdict:
    x = _columns(exact, found)
    best = exact.total(value, least or ())
    reached = dot(value, x)
    return reached, best is not None and best * (1 - PRINTED) <= reached


def _columns(exact: ExactProblem, found: Allocation) -> Row:
    both = np.concatenate((found.alone.reshape(-1), found.shared.reshape(-1)))
    return [Fraction(x) for x in both[: len(exact.column_type)].tolist()]


def sum_of_steps(exact: ExactProblem, found: Allocation, got: Row, per_price: bool) -> Verdict:
    value = exact.value_of_steps()
    if per_price:
        price = [exact.price[j] or Fraction(1) for j in exact.column_type]
        value = [v / p for v, p in zip(value, price, strict=True)]
    return total(exact, found, value)


def queue(exact: ExactProblem, found: Allocation, got: Row, shortest: bool) -> Verdict:
    n = len(exact.alone)
    fastest = [max(row) for row in exact.alone]
    left = [s / f for s, f in zip(exact.steps, fastest, strict=True)]
    order = sorted(range(n), key=lambda m: (left[m] if shortest else 0, m))
    weight = [(n - order.index(m)) / fastest[m] for m in range(n)]
    return total(exact, found, exact.value_of_steps(weight))


def per_dollar(exact: ExactProblem, found: Allocation, got: Row) -> Verdict:
    value = exact.value_of_steps()
    cost = [
        exact.price[j] / 3600 * gang
        for j, gang in zip(exact.column_type, exact.column_gang, strict=True)
    ]
    x = _columns(exact, found)
    if not dot(cost, x):
        return Fraction(0), False
    open_ = [
        any(row[c] and w for row, w in zip(exact.gpus, exact.capacity, strict=True))
        for c in range(len(cost))
    ]
    best = max(v / c for v, c, there in zip(value, cost, open_, strict=True) if there)
    reached = dot(value, x) / dot(cost, x)
    return reached, best * (1 - PRINTED) <= reached


def proportional(exact: ExactProblem, found: Allocation, got: Row) -> Verdict:
    """The logarithm is concave: a sum of gains, relative to what jobs have, bounds any other allocation."""
    if not all(got):
        return Fraction(0), False
    total_weight = sum(exact.weight, Fraction(0))
    share = [w / total_weight for w in exact.weight]
    logs = sum(
        float(s) * math.log(g / max(row)) for s, g, row in zip(share, got, exact.alone, strict=True)
    )
    gain = exact.total(exact.value_of_steps([s / g for s, g in zip(share, got, strict=True)]))
    assert gain is not None
    return Fraction(math.exp(logs)), gain - 1 <= PRINTED


@dataclass(frozen=True)
class Case:
    """A policy, what it sees, and what it maximises or minimises."""

    name: str
    judge: Callable[[ExactProblem, Allocation, Row], Verdict]
    aware: bool = True
    packed: bool = False


def _cases() -> list[Case]:
    sees = {
        "": (False, False),
        "aware=true": (True, False),
        "aware=true,packed=true": (True, True),
        "packed=true": (False, True),
    }
    found = []
    for flags, (aware, packed) in sees.items():
        both: list[tuple[str, Callable[..., Verdict]]] = [
            ("max_min_fairness", max_min),
            ("water_filling", max_min),
            ("min_total_duration", makespan),
            ("finish_time_fairness", lambda e, f, g: finish_time(e, f, g, weighted=False)),
            (
                "finish_time_fairness:weighted=true",
                lambda e, f, g: finish_time(e, f, g, weighted=True),
            ),
        ]
        if flags != "packed=true":
            both += [
                ("max_sum_throughput", lambda e, f, g: sum_of_steps(e, f, g, per_price=False)),
                (
                    "max_sum_throughput:per_price=true",
                    lambda e, f, g: sum_of_steps(e, f, g, per_price=True),
                ),
                ("min_cost", per_dollar),
                ("queue_order", lambda e, f, g: queue(e, f, g, shortest=False)),
                ("queue_order:order=shortest", lambda e, f, g: queue(e, f, g, shortest=True)),
            ]
        if not packed:
            both.append(("proportional_fairness", proportional))
        found += [Case(with_settings(name, flags), judge, aware, packed) for name, judge in both]
    return found


CASES = _cases()


def _case(name: str) -> Case:
    return next(each for each in CASES if each.name == name)


def drawn(seed: int, decades: float, what: str = "weights") -> AllocationProblem:
    """A problem of one to four jobs with numbers spread over so many decades on either side of 1."""
    random = np.random.default_rng(seed)
    n, types = int(random.integers(1, 5)), int(random.integers(1, 3))

    def wide(name: str, *shape: int) -> np.ndarray:
        spread = decades if name == what or what == "all" else 0.3
        return np.asarray(10.0 ** random.uniform(-spread, spread, shape))

    throughput = wide("throughputs", n, types)
    throughput[:, 1:][random.random((n, types - 1)) < 0.2] = 0.0
    gpus = random.choice([1, 1, 2, 4], n)
    first, second = np.triu_indices(n, 1)
    keep = (gpus[first] == gpus[second]) & (random.random(len(first)) < 0.7)
    first, second = first[keep], second[keep]
    slow = random.uniform(0.3, 1.0, (2, len(first), types))
    steps = wide("steps", n)
    return AllocationProblem.from_columns(
        gpu_types=[f"type{j}" for j in range(types)],
        capacity=[int(random.integers(1, 5)), *random.integers(0, 5, types - 1).tolist()],
        throughput=throughput,
        gpus=gpus,
        weight=wide("weights", n),
        steps=steps,
        elapsed_s=random.choice([0.0, 1.0, 100.0], n),
        isolated_s=random.choice([0.0, 1.0], n),
        slo_s=steps / throughput[:, 0] / wide("slos", n),
        price=wide("prices", types),
        pairs=Pairs(first, second, throughput[first] * slow[0], throughput[second] * slow[1]),
    )


def judged(case: Case, problem: AllocationProblem) -> bool:
    """Whether an answer was called optimal, after everything that it says was held against rationals."""
    found = allocate(problem, case.name)
    if case.name != "proportional":
        found.verify()
    exact = ExactProblem.of(problem, aware=case.aware, packed=case.packed)
    got = exact.steps_per_s(found.alone, found.shared if case.packed else found.shared[:0])
    value, best = case.judge(exact, found, got)
    assert found.objective is not None
    if math.isfinite(found.objective) or found.proven:
        assert abs(Fraction(found.objective) - value) <= PRINTED * abs(value), (
            found.objective,
            float(value),
        )
    if found.proven:
        assert best, f"{case.name}: {float(value)} is called optimal"
    return found.proven


FEW_DECADES = 3
"""Numbers up to so many decades on either side of 1: what is called optimal has to be all of it."""

numbers = st.integers(0, 2**32 - 1)
what_is_wide = st.sampled_from(["weights", "throughputs", "steps", "prices", "all"])


@settings(max_examples=35)
@given(st.sampled_from(CASES), numbers, what_is_wide)
# A solver's word on a ratio, whose scale has no bound: 1.2 was called optimal, 232229 is.
@example(_case("min_cost:aware=true,packed=true"), 2658096298, "all")
# Time of 1e-17 on a type without GPUs was counted, and the path's level printed, which nobody reached.
@example(_case("water_filling:aware=true"), 2472687750, "throughputs")
@example(_case("water_filling:aware=true,packed=true"), 2036540710, "throughputs")
# A solver finds a level unbounded whose entries it takes for 0.
@example(_case("finish_time_fairness:aware=true"), 1005185747, "throughputs")
@example(_case("water_filling:aware=true"), 3983689622, "throughputs")
# Brent's method has a hundred halvings for thirty decades.
@example(_case("water_filling"), 3677337733, "weights")
def test_what_is_printed_is_true_of_what_is_printed(case: Case, seed: int, wide: str) -> None:
    judged(case, drawn(seed, 12.0, wide))


@settings(max_examples=18)
@given(st.sampled_from(CASES), numbers)
@example(_case("water_filling"), 3677337733)
# Next to no work after a long time: its need falls by decades within a rounding error of the ratio.
@example(_case("finish_time_fairness:weighted=true"), 883698559)
@example(_case("max_min_fairness:aware=true,packed=true"), 781218693)
def test_weights_of_any_size_are_answered(case: Case, seed: int) -> None:
    """Weights are a matter of units: none of them is too small or too large for an answer that is proven."""
    assert judged(case, drawn(seed, 12.0, "weights"))


@pytest.mark.parametrize(
    ("name", "wide", "seed"),
    [
        ("max_min_fairness:aware=true", "weights", 2),
        ("max_min_fairness:aware=true,packed=true", "weights", 3),
        ("max_min_fairness", "weights", 2),
        ("min_total_duration:aware=true", "throughputs", 2),
        ("min_cost:aware=true", "prices", 1),
    ],
)
def test_shares_too_small_for_a_solver_have_units_of_their_own(
    name: str, wide: str, seed: int
) -> None:
    """To what a solver leaves out in the model's own units nothing can be added that reaches the bound."""
    assert judged(_case(name), drawn(seed, 12.0, wide))


@settings(max_examples=18)
@given(st.sampled_from(CASES), numbers, what_is_wide)
# What is dear has no GPUs.
@example(_case("max_sum_throughput:per_price=true,aware=true"), 1222806556, "prices")
def test_numbers_within_a_few_decades_are_answered(case: Case, seed: int, wide: str) -> None:
    assert judged(case, drawn(seed, FEW_DECADES, wide))


SLOS = {
    "max_sum_throughput:aware=true,per_price=true,slos=true": False,
    "max_sum_throughput:aware=true,packed=true,per_price=true,slos=true": True,
    "min_cost:aware=true,slos=true": False,
    "min_cost:aware=true,packed=true,slos=true": True,
}


@settings(max_examples=18)
@given(
    st.sampled_from(sorted(SLOS)),
    numbers,
    st.sampled_from(["slos", "throughputs", "prices", "all"]),
    st.sampled_from([FEW_DECADES, 12]),
)
# No search tells which of them can be kept.
@example("min_cost:aware=true,packed=true,slos=true", 2115714276, "throughputs", 12)
@example(
    "max_sum_throughput:aware=true,packed=true,per_price=true,slos=true",
    2593385655,
    "throughputs",
    12,
)
def test_slos_that_are_said_to_be_kept_are_kept(
    name: str, seed: int, wide: str, decades: float
) -> None:
    problem = drawn(seed, decades, wide)
    found = allocate(problem, name)
    found.verify()
    exact = ExactProblem.of(problem, aware=True, packed=SLOS[name])
    given_up = {note.split("'")[1] for note in found.notes if "its SLO needs" in note}
    least = [
        Fraction(0) if job in given_up else steps / Fraction(slo_s)
        for job, steps, slo_s in zip(
            problem.id.tolist(), exact.steps, problem.slo_s.tolist(), strict=True
        )
    ]
    got = exact.steps_per_s(found.alone, found.shared if SLOS[name] else found.shared[:0])
    x, value = _columns(exact, found), exact.value_of_steps()
    cost = [
        exact.price[j] / 3600 * gang
        for j, gang in zip(exact.column_type, exact.column_gang, strict=True)
    ]
    assert found.objective is not None
    assert found.proven or decades > FEW_DECADES
    if name.startswith("min_cost"):
        reached = dot(value, x) / dot(cost, x) if dot(cost, x) else Fraction(0)
        worth = [v - reached * (1 + PRINTED) * c for v, c in zip(value, cost, strict=True)]
        better = exact.total(worth, least)
    else:
        price = [exact.price[j] for j in exact.column_type]
        worth = [v / p for v, p in zip(value, price, strict=True)]
        reached = dot(worth, x)
        best = exact.total(worth, least)
        better = None if best is None else best * (1 - PRINTED) - reached
    assert abs(Fraction(found.objective) - reached) <= PRINTED * reached
    if found.proven:
        assert all(g >= need * (1 - PRINTED) for g, need in zip(got, least, strict=True))
        # With SLOs in conflict a margin is left, so that exactly they may not hold together.
        assert better is None or better <= 0


@settings(max_examples=35)
@given(numbers, st.booleans(), st.sampled_from([FEW_DECADES, 12]))
def test_no_prices_bound_a_ratio_below_its_optimum(seed: int, slos: bool, decades: float) -> None:
    problem = drawn(seed, decades, "all")
    rates = Rates.of(problem, packed=True)
    values = Values.of_throughput(rates, np.ones_like(rates.alone))
    costs = Values.of_gpus(rates, problem.price)
    exact = ExactProblem.of(problem, aware=True, packed=True)
    # A throughput that can be had: what an allocation of one job that runs alone has.
    own = np.where(np.arange(rates.rows) == 0, rates.alone[:, 0] / rates.gang, 0.0)
    least = own * (0.5 if slos else 0.0)
    random = np.random.default_rng(seed)
    for _ in range(3):
        charges = Charges(
            10.0 ** random.uniform(-decades, decades, rates.rows),
            10.0 ** random.uniform(-decades, decades, len(rates.workers)),
            10.0 ** random.uniform(-decades, decades, rates.rows),
        )
        bound = Fraction(ratio_bound(rates, values, costs, least, charges))
        cost = [
            exact.price[j] * gang
            for j, gang in zip(exact.column_type, exact.column_gang, strict=True)
        ]
        worth = [v - bound * c for v, c in zip(exact.value_of_steps(), cost, strict=True)]
        best = exact.total(worth, [Fraction(each) for each in least.tolist()])
        assert best is not None
        assert best <= 0


@given(
    st.floats(1e-30, 1e30), st.floats(1e-30, 1e30), st.floats(0.0, 1e-40), st.floats(1e31, math.inf)
)
@example(5.6e-12, 1e-6, 0.0, 1e23)
def test_a_crossing_is_where_the_sign_changes(
    root: float, reach: float, low: float, high: float
) -> None:
    def excess(candidate: float) -> float:
        return min(candidate - root, reach)

    for monotone in (excess, lambda candidate: -excess(candidate)):
        assert crossing(monotone, low, high) == pytest.approx(root, rel=1e-14)


# What is printed.


def _two_jobs(weight: float) -> AllocationProblem:
    """One GPU for two jobs, one of which weighs more."""
    return AllocationProblem.from_columns(
        gpu_types=["k80"], capacity=[1], throughput=[[3.0], [4.0]], weight=[1.0, weight]
    )


@pytest.mark.parametrize("weight", [1e7, 1e9, 1e12, 1e15])
def test_a_gpu_is_not_left_idle_for_weights_that_are_far_apart(weight: float) -> None:
    """Nobody got it, at an objective of 0 that was called optimal."""
    found = allocate(_two_jobs(weight), "max_min_fairness:aware=true")
    assert found.proven
    assert found.objective == pytest.approx(1 / (1 + weight), rel=1e-5)
    light, heavy = found.effective_throughput
    assert (light / 3, heavy / 4) == pytest.approx((1 / weight, 1), rel=1e-5)
    reasons = explain(found)
    assert "bounded by its own time" in reasons[1]
    assert not any("nobody" in each for each in reasons)


def test_one_job_of_any_weight_has_the_gpu() -> None:
    for weight in (1e-12, 1e10, 1e15):
        one = AllocationProblem.from_columns(
            gpu_types=["k80"], capacity=[1], throughput=[[3.0]], weight=[weight]
        )
        found = allocate(one, "max_min_fairness:aware=true")
        assert found.proven
        assert found.alone.tolist() == [[pytest.approx(1.0)]]


def test_what_misses_its_bound_is_not_proven(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its words, status and exit code are of their own, and no price is taken for a reason."""
    whole = Programme.allocation
    monkeypatch.setattr(
        Programme, "allocation", lambda *of: tuple(0.5 * part for part in whole(*of))
    )
    monkeypatch.setattr(max_min_level, "completed", lambda rates, x, y, wanted: (x, y))
    path = tmp_path / "problem.json"
    path.write_text('{"cluster": {"k80": 1}, "jobs": [{"tput": [3]}, {"tput": [4]}]}')
    command = CommandLine(capfd)
    done = command("allocate", "max_min_fairness:aware=true", path, "--json", "--explain")
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert report["status"] == "not proven"
    assert report["objective"] == pytest.approx(0.25)
    assert report["bound"] == pytest.approx(0.5)
    note = "not proven: the objective is 0.25, and nothing shows that it cannot be 0.5"
    assert report["notes"] == [note]
    assert report["explanation"] == [
        "job 0: 0.75 steps/s; the allocation is not proven, so no price says why",
        "job 1: 1 steps/s; the allocation is not proven, so no price says why",
    ]
    told = command("allocate", "max_min_fairness:aware=true", path)
    assert told.returncode == 1
    assert note in " ".join(told.stderr.split())


def test_water_filling_prints_the_level_that_its_fractions_reach(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not that of the path, which nobody may have reached."""
    whole = water_filling.fill

    def halved(*of: Any) -> water_filling.Filled:
        filled = whole(*of)
        return replace(filled, last=replace(filled.last, x=0.5 * filled.last.x))

    problem = _two_jobs(1.0)
    assert allocate(problem, "water_filling").objective == pytest.approx(0.5)
    monkeypatch.setattr(water_filling, "fill", halved)
    found = allocate(problem, "water_filling")
    assert found.objective == pytest.approx(0.25)
    assert not found.proven


@pytest.mark.parametrize("policy", ["max_min_fairness", "water_filling", "max_sum_throughput"])
def test_what_no_solver_answers_is_one_sentence(
    policy: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A solver that calls every allocation unbounded is not believed, and not quoted; no answer is printed."""

    def solve(*of: Any, **data: Any) -> None:
        raise Unbounded("the model is unbounded")

    monkeypatch.setattr(Programme, "solve", solve)
    path = tmp_path / "problem.json"
    path.write_text('{"cluster": {"k80": 1}, "jobs": [{"tput": [3]}, {"tput": [4]}]}')
    done = CommandLine(capfd)("allocate", policy, path)
    assert done.returncode == 2
    assert "too far apart" in done.stderr
    assert "unbounded" not in done.stderr


def test_what_nothing_bounds_is_not_called_optimal(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The parts of POP are optimal, the whole is not; water filling has the bound of its first prices."""
    path = tmp_path / "problem.json"
    path.write_text(
        '{"cluster": {"k80": 4}, "jobs": [{"tput": [3]}, {"tput": [4]}, {"tput": [5], "w": 9}]}'
    )
    for policy, status in (
        ("pop:parts=2", "found"),
        ("water_filling:aware=true", "optimal"),
        ("isolated", "rule"),
    ):
        done = CommandLine(capfd)("allocate", policy, path, "--json")
        assert (done.returncode, json.loads(done.stdout)["status"]) == (0, status)


def test_the_page_states_the_tolerance_that_answers_keep() -> None:
    page = " ".join((ROOT / "docs" / "semantics.md").read_text().split())
    assert f"to {float(PRINTED):.0e}".replace("e-05", "e-5") + " relative" in page
    assert float(PRINTED) / 2 >= CLOSE
