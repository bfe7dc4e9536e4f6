"""Laws of allocation policies: valid, optimal by plain linear programmes, and fair as Gavel claims."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq, linprog

from shadowprice.errors import InputError
from shadowprice.instances.allocation_problem import AllocationProblem, Pairs
from shadowprice.models import gavel
from shadowprice.solvers.gavel import max_min_level as level
from shadowprice.solvers.gavel.allocation import Allocation
from shadowprice.solvers.gavel.policies.isolated import isolated_shares
from shadowprice.solvers.gavel.policies.water_filling import WaterFilling
from shadowprice.solvers.gavel.programme import Programme
from shadowprice.solvers.gavel.rates import Rates
from shadowprice.solvers.gavel.workspace import Workspace
from shadowprice.solvers.programs.compile import SolverOptions
from shadowprice.solvers.programs.structure import block_arrow
from shadowprice.solvers.registry import allocation
from support.allocation_policies import EVERY_POLICY, with_settings

few, some = settings(max_examples=5), settings(max_examples=8)


def allocated(name: str, problem: AllocationProblem) -> Allocation:
    found = allocation(name).allocate(problem, Workspace())
    if name != "proportional":
        found.verify()
    return found


@st.composite
def problems(
    draw: st.DrawFn,
    jobs: tuple[int, int] = (1, 6),
    pairs: bool | None = None,
    placement: bool = False,
    gangs: tuple[int, ...] = (1, 2, 4),
    weights: tuple[float, ...] = (0.5, 1.0, 2.0, 5.0),
    zeros: bool = True,
) -> AllocationProblem:
    """Random problems; every job runs on some type that has GPUs."""
    n, types = draw(st.integers(*jobs)), draw(st.integers(2 if placement else 1, 3))
    accelerators = [0, 0, 1][:types] if placement else list(range(types))
    capacity = [draw(st.integers(0 if zeros else 1, 8)) for _ in set(accelerators)]
    capacity[0] = max(capacity[0], 1)
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kinds = random.uniform(0.2, 1.0, (max(1, draw(st.integers(1, n))), types))
    kinds *= 10.0 ** random.uniform(-1, 2, (len(kinds), 1))
    kinds[random.random(kinds.shape) < (0.2 if zeros else 0.0)] = 0.0
    kinds[:, 0] = np.maximum(kinds[:, 0], 0.1)
    throughput = kinds[random.integers(0, len(kinds), n)]
    gpus = np.array([draw(st.sampled_from(gangs)) for _ in range(n)])
    shared = draw(st.booleans()) if pairs is None else pairs
    return AllocationProblem.from_columns(
        gpu_types=[f"type{j}" for j in range(types)],
        accelerators=accelerators,
        capacity=capacity,
        throughput=throughput,
        gpus=gpus,
        weight=random.choice(weights, n),
        steps=np.round(10.0 ** random.uniform(1, 6, n)),
        elapsed_s=random.choice([0.0, 100.0, 1e4], n),
        price=random.uniform(0.1, 3.0, types),
        pairs=_pairs(throughput, gpus, random) if shared else None,
    )


def _pairs(throughput: Any, gpus: Any, random: np.random.Generator) -> Pairs:
    first, second = np.triu_indices(len(gpus), 1)
    keep = (gpus[first] == gpus[second]) & (random.random(len(first)) < 0.8)
    first, second = first[keep], second[keep]
    slow = random.uniform(0.2, 1.0, (2, len(first), throughput.shape[1]))
    return Pairs(first, second, throughput[first] * slow[0], throughput[second] * slow[1])


@dataclass(frozen=True)
class Plain:
    """The valid allocations of a problem as a plain linear programme, made here by hand.

    Columns are x by job and type, then y by pair and type; ``throughput`` gives each job's rate.
    """

    limits: Any
    sizes: Any
    throughput: Any

    @classmethod
    def of(cls, problem: AllocationProblem, *, packed: bool, rates: Any = None) -> Plain:
        n, types = problem.throughput.shape
        own = problem.throughput if rates is None else rates
        pairs = problem.pairs if packed else Pairs.none(types)
        rows = [(m,) for m in range(n)] + list(zip(pairs.first, pairs.second, strict=True))
        columns = [(k, j) for k in range(len(rows)) for j in range(types)]
        limits = np.zeros((n + len(problem.capacity), len(columns)))
        throughput = np.zeros((n, len(columns)))
        for c, (k, j) in enumerate(columns):
            for place, m in enumerate(rows[k]):
                limits[m, c] = 1.0
                both = (pairs.throughput_first, pairs.throughput_second)[place]
                throughput[m, c] = own[m, j] if k < n else both[k - n, j]
            limits[n + problem.accelerators[j], c] = problem.gpus[rows[k][0]]
        return cls(limits, np.concatenate((np.ones(n), problem.capacity)), throughput)

    def best(self, value: Any, least: Any = None) -> float:
        """Largest value of an allocation in which jobs have these throughputs; NaN if none is valid."""
        matrix, sizes = self.limits, self.sizes
        if least is not None:
            # Scaled, because tolerances of solvers are absolute.
            size = np.maximum(self.throughput.max(axis=1), 1e-300)
            matrix = np.vstack((matrix, -self.throughput / size[:, None]))
            sizes = np.append(sizes, -least / size)
        found = linprog(-value, matrix, sizes, method="highs")
        return -float(found.fun) if found.status == 0 else float("nan")

    def level(self, need: Any, base: Any = 0.0) -> float:
        """Largest t with throughput >= base + need t."""
        n, columns = self.throughput.shape
        base = np.zeros(n) + base
        # Scaled, because tolerances of solvers are absolute: t is at most 1, and so are rates.
        size = np.maximum(self.throughput.max(axis=1), 1e-300)[:, None]
        unit = float((size[:, 0] / np.maximum(need, 1e-300)).min())
        fair = np.hstack((-self.throughput, unit * need[:, None])) / size
        matrix = np.vstack((np.hstack((self.limits, np.zeros((len(self.limits), 1)))), fair))
        cost = np.append(np.zeros(columns), -1.0)
        found = linprog(cost, matrix, np.append(self.sizes, -base / size[:, 0]), method="highs")
        return -unit * float(found.fun) if found.status == 0 else float("nan")


def normal(problem: AllocationProblem, rates: Any = None) -> Any:
    """Throughput on a random GPU of the cluster, over the gang."""
    own = problem.throughput if rates is None else rates
    share = np.zeros(len(problem))
    for a, gpus in enumerate(problem.capacity):
        mine = [j for j, b in enumerate(problem.accelerators) if b == a]
        share += own[:, mine].max(axis=1) * gpus / problem.capacity.sum()
    return share / problem.gpus


VARIANTS = ("", ":aware=true", ":aware=true,packed=true", ":packed=true")


def seen(problem: AllocationProblem, variant: str) -> AllocationProblem:
    """The problem as an agnostic policy sees it: every type is like the one most jobs prefer."""
    if "aware" in variant:
        return problem
    best = problem.throughput.max(axis=1, keepdims=True)
    share = problem.throughput / best
    j = max(range(share.shape[1]), key=lambda k: ((share[:, k] == 1).sum(), share[:, k].sum(), k))
    column = problem.throughput[:, j : j + 1]
    flat = np.where(column > 0, column, best) + np.zeros_like(problem.throughput)
    pairs = replace(
        problem.pairs,
        throughput_first=problem.pairs.throughput_first[:, [j] * share.shape[1]],
        throughput_second=problem.pairs.throughput_second[:, [j] * share.shape[1]],
    )
    return replace(problem, throughput=flat, pairs=pairs)


def plain(problem: AllocationProblem, variant: str) -> Plain:
    return Plain.of(problem, packed="packed" in variant)


# ---------------------------------------------------------------------------------------- validity


@settings(max_examples=5)
@given(problems(pairs=True, gangs=(1,)))
def test_every_policy_gives_a_valid_allocation(problem: AllocationProblem) -> None:
    workspace = Workspace()
    for name in EVERY_POLICY:
        found = allocation(name).allocate(problem, workspace)
        assert found.policy == name
        assert found.alone.shape == problem.throughput.shape
        assert (found.effective_throughput >= -1e-9).all()
        if name != "proportional":  # A normaliser: it asks for more GPUs than there are.
            found.verify()
        if found.objective is not None and found.bound is not None:
            worse, better = sorted((found.objective, found.bound))
            assert better == pytest.approx(worse, rel=1e-6, abs=1e-9)


# -------------------------------------------------------------------------- equal to plain programmes


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("placement", [False, True])
def test_max_min_is_the_plain_optimum(variant: str, placement: bool) -> None:
    @few
    @given(problems(placement=placement, weights=(1e-3, 0.5, 1.0, 1e3)))
    def law(problem: AllocationProblem) -> None:
        view = seen(problem, variant)
        need = problem.weight * normal(view)
        assume((need > 0).all())
        found = allocated(f"max_min_fairness{variant}", problem)
        best = plain(view, variant).level(need)
        assert found.objective == pytest.approx(best, rel=1e-6)
        assert found.objective <= found.bound * (1 + 1e-6)
        if "aware" in variant:
            assert (found.effective_throughput / need).min() >= best * (1 - 1e-6)

    law()


@some
@given(problems())
def test_prices_prove_the_bound(problem: AllocationProblem) -> None:
    found = allocated("max_min_fairness:aware=true,packed=true", problem)
    need, prices = problem.weight * normal(problem), found.prices
    assert prices is not None
    worth, limits = prices.job, plain(problem, ":packed=true")
    paid = np.concatenate((prices.time, prices.worker[0]))
    assert (paid >= -1e-9).all()
    scale = (worth @ limits.throughput).max()
    assert (worth @ limits.throughput <= paid @ limits.limits + 1e-7 * scale).all()
    assert worth @ need == pytest.approx(1.0, rel=1e-6)
    assert limits.sizes @ paid == pytest.approx(found.objective, rel=1e-6)


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_makespan_is_the_plain_optimum(variant: str) -> None:
    @few
    @given(problems(placement=False))
    def law(problem: AllocationProblem) -> None:
        found = allocated(f"min_total_duration{variant}", problem)
        best = plain(seen(problem, variant), variant).level(problem.steps)
        assert found.objective == pytest.approx(1 / best, rel=1e-6)
        assert found.bound == pytest.approx(1 / best, rel=1e-6)

    law()


@pytest.mark.parametrize("per_price", [False, True])
@pytest.mark.parametrize("variant", VARIANTS[:3])
def test_total_throughput_is_the_plain_optimum(per_price: bool, variant: str) -> None:
    @few
    @given(problems())
    def law(problem: AllocationProblem) -> None:
        name = with_settings(f"max_sum_throughput{variant}", *["per_price=true"] * per_price)
        found = allocated(name, problem)
        limits = plain(seen(problem, variant), variant)
        price = np.tile(problem.price, limits.throughput.shape[1] // len(problem.price))
        value = limits.throughput.sum(axis=0) / (price if per_price else 1.0)
        assert found.objective == pytest.approx(limits.best(value), rel=1e-6)

    law()


@pytest.mark.parametrize("variant", VARIANTS[:3])
def test_steps_per_dollar_are_the_plain_optimum(variant: str) -> None:
    @few
    @given(problems())
    def law(problem: AllocationProblem) -> None:
        found = allocated(f"min_cost{variant}", problem)
        limits = plain(seen(problem, variant), variant)
        value = limits.throughput.sum(axis=0)
        price = np.tile(problem.price, len(value) // len(problem.price)) / 3600
        cost = limits.limits[len(problem) :].sum(axis=0) * price
        open_ = (problem.type_capacity > 0)[np.arange(len(value)) % len(problem.price)]
        # Without SLOs nothing is better than the best single job, or pair, and type.
        ratio = float((value / cost)[open_].max())
        assert found.objective == pytest.approx(ratio, rel=1e-6)

    law()


# The root is the best column's ratio itself, and rounding leaves a bit of the value there: a search
# that ends at that ratio has no bracket.
ROOT_AT_THE_TOP = AllocationProblem.from_columns(
    gpu_types=["a"], capacity=[1], throughput=[[0.1], [0.1]], price=[0.6]
)


@some
@given(problems(jobs=(2, 6)), st.floats(0.01, 0.9))
@example(ROOT_AT_THE_TOP, 0.5)
def test_steps_per_dollar_with_slos_are_the_plain_optimum(
    problem: AllocationProblem, tight: float
) -> None:
    limits = plain(problem, ":packed=true")
    best = limits.level(problem.throughput.max(axis=1))
    least = tight * best * problem.throughput.max(axis=1)
    problem = replace(problem, slo_s=problem.steps / least)
    found = allocated("min_cost:aware=true,packed=true,slos=true", problem)
    assert not found.notes
    value = limits.throughput.sum(axis=0)
    price = np.tile(problem.price, len(value) // len(problem.price)) / 3600
    cost = limits.limits[len(problem) :].sum(axis=0) * price
    unit = 1e3 / value.max()
    # Dinkelbach: the ratio is r where the best of value - r cost is zero.
    high = float((value / cost).max())
    # No ratio is above the best column's; rounding may leave a bit of it even there.
    ratio = brentq(lambda r: limits.best(unit * (value - r * cost), least), 0, 2 * high, rtol=1e-12)
    assert found.objective == pytest.approx(ratio, rel=1e-6)


ALL_BUT_GIVEN_AWAY = AllocationProblem.from_columns(
    gpu_types=["type0"],
    capacity=[1],
    throughput=[[11.44790137], [12.74119588], [0.1]],
    gpus=[2, 1, 1],
    weight=[5.0, 2.0, 0.5],
    steps=[193652.0, 15.0, 44492.0],
    price=[1.67023754],
)
"""With the SLO of the third job next to nothing is left for the others."""


@some
@given(problems(jobs=(2, 6)), st.lists(st.floats(0.05, 1.5), min_size=6, max_size=6))
@example(ALL_BUT_GIVEN_AWAY, [0.5, 1.0, 1.0, 1.0, 1.0, 1.0])
def test_slos_are_kept_or_named(problem: AllocationProblem, tight: list[float]) -> None:
    fastest = problem.throughput.max(axis=1)
    slo = problem.steps / fastest / np.array(tight)[: len(problem)]
    problem = replace(problem, slo_s=slo)
    found = allocated("max_sum_throughput:aware=true,per_price=true,slos=true", problem)
    least = problem.steps / slo
    limits = plain(problem, ":aware=true")
    given_up = {int(note.split("'")[1]) for note in found.notes}
    kept = np.array([m not in given_up for m in range(len(problem))])
    got = found.effective_throughput
    assert (got[kept] >= least[kept] * (1 - 1e-5)).all()
    value = limits.throughput.sum(axis=0) / np.tile(problem.price, len(problem))
    promised = np.where(kept, least, 0.0)
    # Where SLOs leave next to nothing, what a solver's tolerance leaves in addition counts.
    worst, best = limits.best(value, promised), limits.best(value, promised * (1 - 2e-6))
    assert found.objective <= best * (1 + 1e-4)
    assert found.objective >= (best if np.isnan(worst) else worst) * (1 - 1e-4)
    if given_up:  # As few as possible: no set with one more holds together.
        assert np.isnan(limits.best(value, least))
        for m in given_up:
            one_more = np.where(kept | (np.arange(len(kept)) == m), least, 0.0)
            assert np.isnan(limits.best(value, one_more * (1 + 1e-6)))


EXTREME = (1e-3, 1.0, 1e3)


def least_rho(problem: AllocationProblem, variant: str, *, weighted: bool) -> float:
    """The definition: least max_m (t_m + u_m steps_m / throughput) / due_m, by bisection over R."""
    view = seen(problem, variant)
    limits = plain(view, variant)
    due = problem.steps / (view.throughput * isolated_shares(problem)).sum(axis=1)
    work = problem.steps * (problem.weight if weighted else 1.0)

    def excess(ratio: float) -> float:
        return limits.level(work / (ratio * due - problem.elapsed_s)) - 1.0

    low = float((problem.elapsed_s / due).max()) * (1 + 1e-9) + 1e-9
    slow = due * len(problem) * work / problem.steps
    high = 10 * float(((problem.elapsed_s + slow) / due).max())
    return float(brentq(excess, low, high, xtol=1e-12, rtol=1e-12))


@pytest.mark.parametrize("counts", [False, True])
@pytest.mark.parametrize("variant", VARIANTS)
def test_finish_time_fairness_is_the_plain_optimum(variant: str, counts: bool) -> None:
    """With weights and without."""
    weighted = f"weighted={str(counts).lower()}"
    policy = allocation(with_settings(f"finish_time_fairness{variant}", weighted))

    @few
    @given(problems(zeros=False, weights=EXTREME), st.booleans())
    def law(problem: AllocationProblem, structured: bool) -> None:
        workspace = Workspace(SolverOptions(structured_jobs=0 if structured else 10**9))
        found = policy.allocate(problem, workspace)
        found.verify()
        best = least_rho(problem, variant, weighted=counts)
        assert found.objective == pytest.approx(best, rel=2e-6)
        assert found.bound <= best * (1 + 1e-6)
        assert bool(found.notes) == (not counts and (problem.weight != 1).any())
        if not problem.elapsed_s.any() and variant == ":aware=true" and not counts:
            assert found.objective <= 1 + 1e-6  # Sharing incentive.

    law()


def test_weights_of_packed_finish_time_fairness_by_hand() -> None:
    """One GPU, steps 1 each, at the rate 1, weights 1 and 3: a quarter and three of the time.

    Alone on their halves they would take 2 s: rho = 1 / (1 / 4) / 2 = 3 / (3 / 4) / 2 = 2.
    """
    problem = AllocationProblem.from_columns(
        gpu_types=["a"], capacity=[1], throughput=[[1.0], [1.0]], weight=[1.0, 3.0]
    )
    found = allocated("finish_time_fairness:aware=true,packed=true,weighted=true", problem)
    assert found.objective == pytest.approx(2.0)
    assert found.alone[:, 0].tolist() == pytest.approx([0.25, 0.75])
    ignoring = allocated("finish_time_fairness:aware=true", problem)
    assert ignoring.alone[:, 0].tolist() == pytest.approx([0.5, 0.5])


def can_rise(limits: Plain, levels: Any, norm: Any, job: int) -> bool:
    """Whether the job can have more while nobody has less."""
    held = levels * norm * (1 - 1e-9)
    best = limits.best(limits.throughput[job] / norm[job], held)
    return best > levels[job] * (1 + 1e-5) + 1e-7


def lexicographic(limits: Plain, norm: Any, weight: Any) -> Any:
    """Water filling as naively as possible: raise, then ask of every job whether it can rise on."""
    levels, active = np.zeros(len(norm)), np.ones(len(norm), dtype=bool)
    while active.any():
        base = np.where(active, 0.0, levels * norm * (1 - 1e-9))
        t = limits.level(np.where(active, norm * weight, 0.0), base)
        levels = np.where(active, weight * t, levels)
        held = [m for m in np.flatnonzero(active) if not can_rise(limits, levels, norm, m)]
        assert held
        active[held] = False
    return levels


@pytest.mark.parametrize("variant", VARIANTS[:3])
def test_water_filling_is_the_naive_lexicographic_optimum(variant: str) -> None:
    @few
    @given(problems(jobs=(1, 5)))
    def law(problem: AllocationProblem) -> None:
        view = seen(problem, variant)
        found = allocated(f"water_filling{variant}", problem)
        norm = normal(view)
        expected = lexicographic(plain(view, variant), norm, problem.weight)
        assert found.prices is not None
        np.testing.assert_allclose(found.prices.level, expected, rtol=1e-5)
        if variant:
            got = found.effective_throughput / norm
            np.testing.assert_allclose(got, expected, rtol=1e-5)

    law()


def hierarchical(
    limits: Plain, norm: Any, groups: list[tuple[list[int], float, str]], weight: Any
) -> Any:
    """Gavel's progressive filling step by step: raise, settle who cannot rise, pass weights on."""
    levels, active = np.zeros(len(norm)), np.ones(len(norm), dtype=bool)
    while active.any():
        rate = np.zeros(len(norm))
        for jobs, entity_weight, inside in groups:
            rising = [m for m in jobs if active[m]]
            if inside == "fifo":
                rising = rising[:1]
            for m in rising:
                part = 1.0 if inside == "fifo" else weight[m] / weight[rising].sum()
                rate[m] = entity_weight * part
        delta = limits.level(norm * rate, levels * norm * (1 - 1e-9))
        levels = levels + max(delta, 0.0) * rate
        moving = np.flatnonzero(rate > 0)
        held = [m for m in moving if not can_rise(limits, levels, norm, m)]
        assert held
        active[held] = False
    return levels


def test_the_next_of_an_entity_rises_where_the_first_was_held_back() -> None:
    """The stage before ends a rounding above what GPUs allow; the next one begins all the same."""
    rate = 0.21026806
    problem = replace(
        AllocationProblem.from_columns(
            gpu_types=["a", "b"],
            capacity=[1, 1],
            throughput=[[rate, 0.0], [2.3415472, 8.35042598], [rate, 0.0], [rate, 0.0]],
            weight=[5.0, 1.0, 5.0, 5.0],
        ),
        entity=np.array(["B", "B", "B", "A"], dtype=object),
    )
    policy = WaterFilling(
        "hierarchy", entity_weights={"A": 1.0, "B": 1.0}, inside={"A": "fairness", "B": "fifo"}
    )
    found = policy.allocate(problem, Workspace())
    assert found.effective_throughput == pytest.approx([rate / 2, 8.35042598, 0.0, rate / 2])


@few
@given(
    problems(jobs=(2, 5), pairs=False), st.lists(st.booleans(), min_size=5, max_size=5), st.data()
)
def test_hierarchies_fill_step_by_step(
    problem: AllocationProblem, member: list[bool], data: st.DataObject
) -> None:
    entity = ["A" if is_a else "B" for is_a in member[: len(problem)]]
    weights = {"A": data.draw(st.sampled_from([1.0, 2.0, 5.0])), "B": 1.0}
    inside = {name: data.draw(st.sampled_from(["fairness", "fifo"])) for name in "AB"}
    problem = replace(problem, entity=np.array(entity, dtype=object))
    policy = WaterFilling("hierarchy", entity_weights=weights, inside=inside)
    found = policy.allocate(problem, Workspace())
    found.verify()
    norm = normal(problem)
    groups = [
        ([m for m, e in enumerate(entity) if e == name], weights[name], inside[name])
        for name in "AB"
    ]
    expected = hierarchical(plain(problem, ":aware=true"), norm, groups, problem.weight)
    got = found.effective_throughput / norm
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5 * expected.max())


@settings(max_examples=25)
@given(
    n=st.integers(1, 40),
    types=st.integers(1, 4),
    seed=st.integers(0, 10**6),
    spread=st.sampled_from([0.0, 1.0, 3.0]),
    gpus=st.sampled_from([0.5, 1.0, 30.0, 1e5]),
    zeros=st.booleans(),
)
def test_block_arrow_is_the_plain_optimum(
    n: int, types: int, seed: int, spread: float, gpus: float, zeros: bool
) -> None:
    random = np.random.default_rng(seed)
    a = random.uniform(0.1, 1, (n, types)) * 10.0 ** random.uniform(-spread, spread, (n, 1))
    a[random.random(a.shape) < 0.3 * zeros] = 0.0
    a[:, 0] = np.maximum(a[:, 0], 1e-4)
    load = random.choice([1.0, 2.0, 8.0, 100.0], n)
    workers = gpus * random.choice([1.0, 2.0, 36.0], types)
    point = block_arrow.solve(a, load, workers)
    problem = AllocationProblem.from_columns(
        gpu_types=[f"{j}" for j in range(types)],
        capacity=workers,
        throughput=a,
        gpus=load.astype(int),
    )
    best = Plain.of(problem, packed=False).level(np.ones(n))
    # Both sides are certificates, whatever the data; together they are tight.
    assert (point.x >= 0).all()
    assert (point.x.sum(axis=1) <= 1 + 1e-12).all()
    assert (load @ point.x <= workers * (1 + 1e-12)).all()
    assert point.value == pytest.approx((a * point.x).sum(axis=1).min(), rel=1e-12)
    assert point.value <= best * (1 + 1e-6)
    assert point.bound >= best * (1 - 1e-6)
    # With few jobs, or GPUs in abundance, the best allocation is a corner that interior points only approach.
    assert point.bound - point.value <= (1e-6 if gpus < 1e5 and n > 9 else 1e-3) * best


@pytest.mark.parametrize("n", [100, 300])
def test_large_problems_take_the_structured_method_and_agree(n: int) -> None:
    random = np.random.default_rng(n)
    kinds = random.uniform(0.1, 50, (n, 3))
    problem = AllocationProblem.from_columns(
        gpu_types=["a", "b", "c"],
        capacity=[n // 5, n // 4, 0],
        throughput=kinds,
        gpus=random.choice([1, 2, 4, 8], n),
        weight=random.choice([1e-3, 1.0, 1e3], n),
    )
    quick = allocated("max_min_fairness:aware=true", problem)
    policy = allocation("max_min_fairness:aware=true")
    slow = policy.allocate(problem, Workspace(SolverOptions(method="highs-simplex")))
    assert quick.objective == pytest.approx(slow.objective, rel=1e-6)
    rates = Rates.of(problem)
    programme = Programme.of(gavel.max_min, problem, rates, Workspace())
    solved = level.highest_level(programme, problem.weight * rates.proportional / rates.gang).solved
    assert solved.solution.method == "block-arrow"
    assert not solved.solution.fallbacks


@pytest.mark.parametrize(
    "name",
    [
        "max_min_fairness:aware=true",
        "max_min_fairness:aware=true,packed=true",
        "min_total_duration:aware=true",
        "finish_time_fairness:aware=true",
        "max_sum_throughput:aware=true",
        "water_filling:aware=true",
        "water_filling:aware=true,packed=true",
    ],
)
def test_folding_equal_jobs_changes_nothing(name: str) -> None:
    @few
    @given(st.integers(0, 10**6), st.integers(2, 12), st.integers(1, 3))
    def law(seed: int, n: int, kinds: int) -> None:
        random = np.random.default_rng(seed)
        of = random.integers(0, kinds, n)
        rates = random.uniform(0.1, 10, (kinds, 2))
        together = random.uniform(0.3, 0.9, (kinds, kinds, 2))
        symmetric = random.random() < 0.7
        first, second = np.triu_indices(n, 1)
        factors = [together[of[a], of[b]] for a, b in ((first, second), (second, first))]
        factors[1] = factors[0] if symmetric else factors[1]
        problem = AllocationProblem.from_columns(
            gpu_types=["a", "b"],
            capacity=[2, 3],
            throughput=rates[of],
            steps=random.choice([10.0, 50.0], kinds)[of],
            weight=np.array([1.0, 2.0, 3.0])[of],
            pairs=Pairs(
                first, second, rates[of][first] * factors[0], rates[of][second] * factors[1]
            ),
        )
        folded = allocated(name, problem)
        forced = Workspace(SolverOptions(method="highs-simplex"))
        apart = allocation(name).allocate(problem, forced)
        assert folded.objective == pytest.approx(apart.objective, rel=1e-6)
        if "water" in name:
            np.testing.assert_allclose(folded.prices.level, apart.prices.level, rtol=1e-5)

    law()


# ------------------------------------------------------------------------------------ claims of Gavel

FAIR = ("max_min_fairness", "finish_time_fairness", "min_total_duration")


@pytest.mark.parametrize("family", FAIR)
@some
@given(problem=problems(pairs=False, zeros=False))
def test_on_equal_types_awareness_changes_nothing(family: str, problem: AllocationProblem) -> None:
    flat = np.repeat(problem.throughput[:, :1], len(problem.gpu_types), axis=1)
    problem = replace(problem, throughput=flat)
    aware, agnostic = allocated(f"{family}:aware=true", problem), allocated(family, problem)
    assert aware.objective == pytest.approx(agnostic.objective, rel=1e-6)


@some
@given(problems(pairs=False))
def test_sharing_is_an_incentive(problem: AllocationProblem) -> None:
    alone = (problem.throughput * isolated_shares(problem)).sum(axis=1)
    need = problem.weight * normal(problem)
    found = allocated("max_min_fairness:aware=true", problem)
    assert found.objective >= (alone / need).min() * (1 - 1e-6)


@some
@given(problems(), st.integers(0, 2))
def test_another_gpu_never_hurts(problem: AllocationProblem, where: int) -> None:
    more = problem.capacity.copy()
    more[where % len(more)] += 1
    bigger = replace(problem, capacity=more)
    need = problem.weight * problem.throughput.max(axis=1)
    for packed in (False, True):
        before, after = (
            level.highest_level(
                Programme.of(gavel.max_min, p, Rates.of(p, packed=packed), Workspace()), need
            ).value
            for p in (problem, bigger)
        )
        assert after >= before * (1 - 1e-6)
    makespans = [
        allocated("min_total_duration:aware=true,packed=true", p).objective
        for p in (bigger, problem)
    ]
    assert makespans[0] <= makespans[1] * (1 + 1e-6)


@pytest.mark.parametrize("family", [*FAIR, "max_sum_throughput", "min_cost"])
@few
@given(problem=problems(pairs=True, zeros=False))
def test_colocation_never_hurts(family: str, problem: AllocationProblem) -> None:
    apart = allocated(f"{family}:aware=true", problem)
    packed = allocated(f"{family}:aware=true,packed=true", problem)
    sign = -1 if family in FAIR[1:] else 1
    assert sign * packed.objective >= sign * apart.objective - 1e-6 * abs(apart.objective)


# Rates fifty times apart on a type: 1e-8 of what the fast jobs have is worth more than 1e-5 of what the
# first has.
WORTH_MORE_TO_ANOTHER = AllocationProblem.from_columns(
    gpu_types=["a", "b"],
    capacity=[1, 2],
    throughput=[[0.19, 0.207], [0.1, 5.214], [1.41, 4.684], [0.1, 5.214]],
    weight=[5.0, 5.0, 1.0, 1.0],
)


@pytest.mark.parametrize("variant", VARIANTS[1:3])
@few
@given(problem=problems(jobs=(1, 6)))
@example(problem=WORTH_MORE_TO_ANOTHER)
def test_water_filling_is_efficient(variant: str, problem: AllocationProblem) -> None:
    found = allocated(f"water_filling{variant}", problem)
    got, limits = found.effective_throughput, plain(problem, variant)
    for m in range(len(problem)):
        held = got * (1 - 1e-10)
        assert limits.best(limits.throughput[m] / got[m], held) <= 1 + 1e-5


@pytest.mark.parametrize("family", [*FAIR, "water_filling"])
@pytest.mark.parametrize("variant", VARIANTS[1:3])
@few
@given(problem=problems(), factor=st.sampled_from([1e-3, 0.3, 7.0, 1e3]), job=st.integers(0, 5))
def test_the_unit_of_a_jobs_steps_does_not_matter(
    family: str, variant: str, problem: AllocationProblem, factor: float, job: int
) -> None:
    scale = np.ones(len(problem))
    scale[job % len(problem)] = factor
    pairs = replace(
        problem.pairs,
        throughput_first=problem.pairs.throughput_first * scale[problem.pairs.first, None],
        throughput_second=problem.pairs.throughput_second * scale[problem.pairs.second, None],
    )
    scaled = replace(
        problem,
        throughput=problem.throughput * scale[:, None],
        steps=problem.steps * scale,
        pairs=pairs,
    )
    one, two = (allocated(family + variant, p) for p in (problem, scaled))
    assert one.objective == pytest.approx(two.objective, rel=1e-6)


OBJECTIVES = [name for name in EVERY_POLICY if name != "pop" and "slos" not in name]


@few
@given(problems(gangs=(1,)), st.randoms(use_true_random=False))
def test_names_and_orders_do_not_matter(problem: AllocationProblem, random: Any) -> None:
    n, types = problem.throughput.shape
    jobs, columns = list(range(n)), list(range(types))
    random.shuffle(jobs)
    random.shuffle(columns)
    place = np.argsort(jobs)
    a, b = place[problem.pairs.first], place[problem.pairs.second]
    one, two = problem.pairs.throughput_first, problem.pairs.throughput_second
    turned = (a > b)[:, None]
    pairs = Pairs(
        np.minimum(a, b),
        np.maximum(a, b),
        np.where(turned, two, one)[:, columns],
        np.where(turned, one, two)[:, columns],
    )
    other = AllocationProblem.from_columns(
        gpu_types=[f"zz{j}" for j in range(types)],
        capacity=problem.capacity[columns],
        price=problem.price[columns],
        throughput=problem.throughput[np.ix_(jobs, columns)],
        gpus=problem.gpus[jobs],
        weight=problem.weight[jobs],
        steps=problem.steps[jobs],
        elapsed_s=problem.elapsed_s[jobs],
        pairs=pairs,
    )
    view = problem.throughput / problem.throughput.max(axis=1, keepdims=True)
    votes = sorted(zip((view == 1).sum(axis=0), view.sum(axis=0), strict=True))
    assume(types == 1 or votes[-1] != votes[-2])  # No tie for the reference type.
    for name in OBJECTIVES:
        if name.startswith(("fifo", "queue_order")):
            continue
        first, second = allocated(name, problem), allocated(name, other)
        if first.objective is not None:
            assert first.objective == pytest.approx(second.objective, rel=1e-6), name


# ----------------------------------------------------------------------------------------- edge cases


def small(**columns: Any) -> AllocationProblem:
    given_ = {
        "gpu_types": ["a", "b"],
        "capacity": [2, 2],
        "throughput": [[4.0, 1.0], [3.0, 2.0]],
        "steps": 100.0,
    }
    return AllocationProblem.from_columns(**(given_ | columns))


@pytest.mark.parametrize("name", EVERY_POLICY)
def test_no_jobs_is_an_empty_allocation(name: str) -> None:
    found = allocated(name, small(throughput=np.zeros((0, 2)), steps=[]))
    assert found.alone.shape == (0, 2)
    assert found.objective is None


PROGRAMMES = [
    name
    for name in EVERY_POLICY
    if name
    not in (
        "isolated",
        "proportional",
        "gandiva",
        "fifo",
        "fifo:aware=true",
        "fifo:aware=true,packed=true",
        "allox",
    )
]


@pytest.mark.parametrize("name", PROGRAMMES)
def test_a_job_without_any_throughput_is_named(name: str) -> None:
    problem = small(throughput=[[4.0, 1.0], [0.0, 0.0]], id=["fine", "stuck"])
    with pytest.raises(InputError, match="'stuck' has no throughput on any of a, b"):
        allocation(name).allocate(problem, Workspace())


@pytest.mark.parametrize(
    "change",
    [
        {"throughput": [[4.0, 0.0], [0.0, 2.0]]},
        {"capacity": [2, 0]},
        {"capacity": [0, 2], "throughput": [[4.0, 1.0], [4.0, 1.0]]},
        {"capacity": [1000, 1]},
        {"weight": [1e-3, 1e3]},
        {"throughput": [[1e-4, 1e-4], [1e4, 1e3]]},
        {"throughput": [[4.0, 1.0]]},
        {"throughput": [[4.0, 1.0]] * 12},
        {"gpu_types": ["only"], "capacity": [1], "throughput": [[4.0], [3.0]]},
        {"steps": [1.0, 1e9]},
        {"elapsed_s": [0.0, 1e8]},
    ],
    ids=str,
)
def test_odd_but_valid_problems_are_allocated(change: dict[str, Any]) -> None:
    for name in EVERY_POLICY:
        objective = allocated(name, small(**change)).objective
        assert objective is None or np.isfinite(objective), name


@pytest.mark.parametrize("name", sorted(set(EVERY_POLICY) - {"allox"}))
def test_gangs_above_the_capacity_get_fractions(name: str) -> None:
    # A fluid programme: the gang runs 2 / 8 of the time. Whether it can be placed is another matter.
    problem = small(gpus=[8, 1])
    found = allocated(name, problem)
    assert not problem.placeable[0].any()
    if name == "max_min_fairness:aware=true":
        assert found.objective is not None
        assert found.objective > 0


def test_allox_refuses_gangs() -> None:
    with pytest.raises(InputError, match="needs 8 GPUs"):
        allocated("allox", small(gpus=[8, 1]))


UNRUNNABLE = [
    {"capacity": [0, 0]},
    {"capacity": [0, 2], "throughput": [[4.0, 0.0], [3.0, 2.0]]},
    {"capacity": [0, 2], "throughput": [[4.0, 0.0], [3.0, 0.0]]},
]


@pytest.mark.parametrize("name", EVERY_POLICY)
@pytest.mark.parametrize("change", UNRUNNABLE, ids=str)
def test_a_job_without_a_gpu_to_run_on_is_refused_or_gets_nothing(
    name: str, change: dict[str, Any]
) -> None:
    problem = small(**change)
    try:
        found = allocation(name).allocate(problem, Workspace())
    except InputError:
        return
    found.verify()
    assert found.objective is None or np.isfinite(found.objective)
    # Nothing that is fair to every job can be fair to one that never runs.
    assert (
        not name.startswith((*FAIR, "water_filling"))
        or found.effective_throughput.all()
        or not aware(name)
    )


def aware(name: str) -> bool:
    """Whether a policy sees the throughputs of each type."""
    return "aware=true" in name


@pytest.mark.parametrize("seed", [7, 9, 51, 52])
def test_makespans_of_widely_different_steps_are_exact(seed: int) -> None:
    # Levels here are 1e-6 and less, below the absolute tolerances of a solver.
    random, n = np.random.default_rng(seed), 4
    rates = np.tile(random.uniform(0.1, 2, (1, 1)), (n, 1)) * random.choice([1, 0.3, 5], (n, 1))
    steps = np.round(10 ** random.uniform(1, 6, n))
    first, second = np.triu_indices(n, 1)
    slow = (random.uniform(0.2, 1, (len(first), 1)) for _ in range(2))
    both = (rates[side] * factor for side, factor in zip((first, second), slow, strict=True))
    problem = AllocationProblem.from_columns(
        gpu_types=["a"],
        capacity=[1],
        throughput=rates,
        steps=steps,
        pairs=Pairs(first, second, *both),
    )
    apart = allocated("min_total_duration:aware=true", problem)
    packed = allocated("min_total_duration:aware=true,packed=true", problem)
    assert packed.objective <= apart.objective * (1 + 1e-6)
    best = plain(problem, ":packed=true").level(problem.steps)
    assert packed.objective == pytest.approx(1 / best, rel=1e-6)


def test_the_next_in_a_queue_rises_when_the_one_before_is_held_back() -> None:
    # Jobs 0 and 3 run on type a only; job 2 has a GPU of type b to itself and must not stay at 0.
    problem = AllocationProblem.from_columns(
        gpu_types=["a", "b"],
        capacity=[1, 2],
        entity=["only"] * 4,
        throughput=[[0.1, 0.0], [0.32511694, 0.29433283], [0.47459626, 0.27168265], [0.1, 0.0]],
    )
    policy = WaterFilling("queue", entity_weights={"only": 1.0}, inside={"only": "fifo"})
    got = policy.allocate(problem, Workspace()).effective_throughput
    np.testing.assert_allclose(got, [0.1, 0.29433283, 0.27168265, 0.0], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("factor", [1e-6, 1e6])
@pytest.mark.parametrize(
    "name",
    [
        "max_sum_throughput:aware=true,packed=true",
        "min_cost:aware=true,packed=true",
        "max_min_fairness:aware=true,packed=true",
    ],
)
def test_the_unit_of_all_steps_does_not_matter(name: str, factor: float) -> None:
    @few
    @given(problems(pairs=True))
    def law(problem: AllocationProblem) -> None:
        pairs = replace(
            problem.pairs,
            throughput_first=problem.pairs.throughput_first * factor,
            throughput_second=problem.pairs.throughput_second * factor,
        )
        other = replace(problem, throughput=problem.throughput * factor, pairs=pairs)
        one, two = allocated(name, problem), allocated(name, other)
        scale = 1.0 if "fairness" in name else factor
        assert two.objective == pytest.approx(one.objective * scale, rel=1e-6)

    law()


def test_equal_jobs_get_equal_levels() -> None:
    for name in ("max_min_fairness:aware=true", "water_filling:aware=true"):
        found = allocated(name, small(throughput=[[4.0, 1.0]] * 9))
        rates = found.effective_throughput
        np.testing.assert_allclose(rates, rates[0], rtol=1e-6)


def test_pop_is_never_better_than_the_whole() -> None:
    @few
    @given(problems(jobs=(2, 6), pairs=False))
    def law(problem: AllocationProblem) -> None:
        for parts in (1, 2, 3):
            found = allocation(f"pop:parts={parts},inner=min_total_duration").allocate(
                problem, Workspace()
            )
            found.verify()
            whole = allocated("min_total_duration:aware=true", problem).objective
            assert found.objective >= whole * (1 - 1e-6)
            if parts == 1:
                assert found.objective == pytest.approx(whole, rel=1e-6)

    law()


def test_a_workspace_used_before_changes_nothing() -> None:
    @few
    @given(st.lists(problems(jobs=(1, 4)), min_size=2, max_size=4))
    def law(several: list[AllocationProblem]) -> None:
        used = Workspace()
        for problem in several:
            for name in (
                "max_min_fairness:aware=true,packed=true",
                "max_sum_throughput:aware=true",
                "min_cost:aware=true,packed=true",
            ):
                policy = allocation(name)
                mine, fresh = policy.allocate(problem, used), policy.allocate(problem, Workspace())
                mine.verify()
                assert mine.objective == pytest.approx(fresh.objective, rel=1e-7), name

    law()
