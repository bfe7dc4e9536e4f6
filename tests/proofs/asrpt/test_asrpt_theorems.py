"""The theorems on A-SRPT: searched for counter-examples, and their families of bad cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, target
from hypothesis import strategies as st

from shadowprice.analysis.metrics import end_s
from shadowprice.errors import InputError
from shadowprice.execution.engine import run
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.instances.strategies import instances
from shadowprice.proofs.asrpt import conversion as asrpt_conversion
from shadowprice.proofs.asrpt import early as asrpt_early
from shadowprice.proofs.asrpt import prediction as asrpt_prediction
from shadowprice.proofs.asrpt import ratio as asrpt_ratio
from shadowprice.proofs.asrpt import sharper as asrpt_sharper
from shadowprice.proofs.asrpt.conversion import Gangs
from shadowprice.solvers.asrpt.asrpt import Asrpt
from shadowprice.solvers.classic.srtf import Srtf
from shadowprice.solvers.predictors.predictor import Features, predictor

RHO = 100
ERROR = 100
FEW, MANY = 100, 3000


@st.composite
def runs(draw: st.DrawFn, *, exact: bool = False, max_gpus: int = 16) -> tuple[Gangs, list[int]]:
    """Jobs, the run times they get, and what the virtual machine assumes."""
    n, m = draw(st.integers(1, 8)), draw(st.integers(1, max_gpus))

    def column(of: st.SearchStrategy[int]) -> tuple[int, ...]:
        return tuple(draw(st.lists(of, min_size=n, max_size=n)))

    release = column(st.integers(0, 40) | st.just(0))
    gang = column(st.integers(1, m) | st.sampled_from([1, m]))
    shortest = column(st.integers(1, 40))
    longest = tuple(p * k for p, k in zip(shortest, column(st.integers(1, RHO)), strict=True))
    virtual = shortest
    if not exact:
        shares = column(st.integers(-ERROR, ERROR).filter(lambda k: abs(k) > 1) | st.just(1))
        virtual = tuple(
            max(1, p * k if k > 0 else p // -k) for p, k in zip(shortest, shares, strict=True)
        )
    place = column(st.integers(0, 4) | st.just(4))
    times = [p + (q - p) * k // 4 for p, q, k in zip(shortest, longest, place, strict=True)]
    return Gangs(m, release, gang, shortest, longest, virtual), times


def random_runs(seed: int, count: int) -> list[tuple[Gangs, list[int]]]:
    """The same without Hypothesis, which is much faster; sizes over several magnitudes."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        n, m = int(rng.integers(1, 13)), int(rng.choice([1, 2, 3, 4, 8, 16, 64]))
        release = rng.integers(0, int(rng.choice([1, 20, 400])), n)
        gang = np.where(rng.random(n) < 0.3, m, rng.integers(1, m + 1, n))
        shortest = np.ceil(10 ** rng.uniform(0, 3, n)).astype(int)
        longest = shortest * rng.integers(1, RHO + 1, n) ** rng.integers(0, 2)
        error = float(ERROR) ** (
            rng.uniform(-1, 1, n) if rng.random() < 0.5 else rng.integers(-1, 2, n)
        )
        virtual = np.maximum(np.ceil(shortest * error), 1).astype(int)
        times = np.where(rng.random(n) < 0.5, longest, shortest)
        columns = [tuple(column.tolist()) for column in (release, gang, shortest, longest, virtual)]
        found.append((Gangs(m, *columns), times.tolist()))
    return found


def share_of_conversion(gangs: Gangs, times: Sequence[int]) -> Fraction:
    """Measured total over the first bound's, after checking both bounds job by job."""
    ends = asrpt_conversion.completions(gangs, times)
    bounds = asrpt_conversion.job_bounds(gangs)
    factor = 1 + gangs.kappa * gangs.crowding
    for job, at in gangs.virtual_order():
        assert ends[job] <= bounds[job]
        assert ends[job] <= Fraction(at, gangs.capacity) * factor + gangs.longest[job]
        assert ends[job] >= Fraction(at, gangs.capacity) + times[job]
    return sum(ends, Fraction(0)) / sum(bounds, Fraction(0))


def share_of_ratio(gangs: Gangs, ends: Sequence[Fraction], factor: Fraction) -> Fraction:
    total = sum(ends, Fraction(0))
    assert asrpt_prediction.holds(gangs, total, factor)
    # Abstract runs know no grid: the bound holds without the tick a job.
    reference = factor * asrpt_prediction.optimum_at_least(gangs)
    assert total <= reference
    return total / reference


def factor_of(gangs: Gangs) -> Fraction:
    return asrpt_prediction.ratio(gangs.rho, gangs.virtual_over, gangs.kappa, gangs.crowding)


@settings(max_examples=FEW)
@given(runs())
def test_the_conversion_holds_for_every_job(given_runs: tuple[Gangs, list[int]]) -> None:
    target(float(share_of_conversion(*given_runs)))


@settings(max_examples=FEW)
@given(runs(exact=True))
def test_the_ratio_with_exact_predictions(given_runs: tuple[Gangs, list[int]]) -> None:
    gangs, times = given_runs
    ends = asrpt_conversion.completions(gangs, times)
    target(float(share_of_ratio(gangs, ends, 1 + gangs.rho + gangs.rho * gangs.crowding)))
    as_longest = Gangs(
        gangs.capacity, gangs.release, gangs.gang, gangs.shortest, gangs.longest, gangs.longest
    )
    ends = asrpt_conversion.completions(as_longest, times)
    share_of_ratio(as_longest, ends, gangs.rho * (2 + gangs.crowding))


@settings(max_examples=FEW)
@given(runs())
def test_the_ratio_with_wrong_predictions(given_runs: tuple[Gangs, list[int]]) -> None:
    gangs, times = given_runs
    ends = asrpt_conversion.completions(gangs, times)
    target(float(share_of_ratio(gangs, ends, factor_of(gangs))))


@settings(max_examples=FEW)
@given(runs(), st.data())
def test_delays_add_the_largest(given_runs: tuple[Gangs, list[int]], data: st.DataObject) -> None:
    gangs, times = given_runs
    n = len(times)
    delay = data.draw(st.lists(st.integers(0, 500), min_size=n, max_size=n))
    ends = asrpt_conversion.completions(gangs, times, delay)
    bounds = asrpt_conversion.job_bounds(gangs, delay)
    assert all(end <= at_most for end, at_most in zip(ends, bounds, strict=True))
    target(float(sum(ends) / sum(bounds)))


@settings(max_examples=FEW)
@given(runs(), st.fractions(0, 5, max_denominator=8), st.integers(1, 20))
def test_the_guard_keeps_a_bound(
    given_runs: tuple[Gangs, list[int]], guard: Fraction, judged_at: int
) -> None:
    gangs, times = given_runs
    judged = [max(1, p * judged_at // 10) for p in gangs.longest]
    ends = asrpt_early.completions(gangs, times, guard, judged)
    target(float(share_of_ratio(gangs, ends, asrpt_early.ratio(gangs, guard, judged))))


def test_thousands_of_instances_quickly() -> None:
    for gangs, times in random_runs(1, 400):
        check_all(gangs, times)


@pytest.mark.slow
def test_many_thousands_of_instances() -> None:
    worst = np.max([check_all(*each) for each in random_runs(2, 6_000)], axis=0)
    assert np.all(worst <= 1.0)


def check_all(gangs: Gangs, times: list[int]) -> tuple[float, float, float]:
    ends = asrpt_conversion.completions(gangs, times)
    early = asrpt_early.completions(gangs, times, Fraction(1), gangs.longest)
    factor = asrpt_early.ratio(gangs, Fraction(1), gangs.longest)
    return (
        float(share_of_conversion(gangs, times)),
        float(share_of_ratio(gangs, ends, factor_of(gangs))),
        float(share_of_ratio(gangs, early, factor)),
    )


@pytest.mark.slow
@settings(max_examples=MANY)
@given(runs(max_gpus=64))
def test_a_long_search_for_counter_examples(given_runs: tuple[Gangs, list[int]]) -> None:
    gangs, times = given_runs
    share_of_conversion(gangs, times)
    ends = asrpt_conversion.completions(gangs, times)
    target(float(share_of_ratio(gangs, ends, factor_of(gangs))))


def test_a_single_job_attains_the_conversion() -> None:
    gangs = Gangs(4, (3,), (2,), (8,), (80,), (8,))
    assert share_of_conversion(gangs, [80]) == 1


FOUND = [
    # Everything over-estimated by 100: the queue costs as much as the machine, and no more.
    (Gangs(2, (0,) * 3, (1,) * 3, (1,) * 3, (1,) * 3, (100,) * 3), [1] * 3, 0.990),
    # Exact predictions: a long narrow job goes last, wide ones exclude each other.
    (
        Gangs(
            16,
            (0, 0, 1, 0, 0, 0, 0, 0),
            (1, 8, 9, 8, 9, 9, 8, 9),
            (4500, 438, 319, 471, 469, 323, 359, 399),
            (450000, 43800, 31900, 47100, 46900, 32300, 35900, 39900),
            (4500, 438, 319, 471, 469, 323, 359, 399),
        ),
        [450000, 43800, 31900, 47100, 46900, 32300, 35900, 39900],
        0.785,
    ),
]


@pytest.mark.parametrize(("gangs", "times", "share"), FOUND)
def test_the_worst_found_are_what_the_docstring_says(
    gangs: Gangs, times: list[int], share: float
) -> None:
    ends = asrpt_conversion.completions(gangs, times)
    assert float(share_of_ratio(gangs, ends, factor_of(gangs))) == pytest.approx(share, abs=1e-3)
    assert f"{share:.3f}" in (asrpt_prediction.__doc__ or "")


factors = st.fractions(1, 100, max_denominator=50)


@given(rho=factors, crowding=factors, over=factors, under=factors)
def test_the_formulas_agree(
    rho: Fraction, crowding: Fraction, over: Fraction, under: Fraction
) -> None:
    of_errors = asrpt_prediction.ratio_of_errors
    one = Fraction(1)
    assert of_errors(rho, one, one, crowding) == 1 + rho + rho * crowding
    assert of_errors(rho, one, one, crowding, basis="alpha_max") == rho * (2 + crowding)
    assert of_errors(rho, over, under, crowding) == over + rho + rho * over * under * crowding
    published_form = rho * (1 + over * (1 + under * crowding))
    assert of_errors(rho, over, under, crowding, basis="alpha_max") == published_form
    assert of_errors(rho, over, under, crowding) <= published_form


def test_gangs_of_at_most_half_the_cluster() -> None:
    for m in range(2, 65):
        gangs = Gangs(m, (0,), (m // 2,), (1,), (7,), (1,))
        assert factor_of(gangs) < 1 + 3 * gangs.rho


def cost_s(instance: Instance, policy: Asrpt, objective: Objective) -> float:
    return objective.cost_s(instance.workload, end_s(instance, run(instance, policy).schedule))


@given(instance=instances(max_jobs=10, max_nodes=4))
def test_the_engine_respects_the_bounds(instance: Instance) -> None:
    total = cost_s(instance, Asrpt(), Objective.COMPLETION)
    assert asrpt_conversion.check(instance, total)
    assert asrpt_ratio.check(instance, total)
    by_longest = cost_s(instance, Asrpt(basis="alpha_max"), Objective.COMPLETION)
    assert asrpt_ratio.check(instance, by_longest, basis="alpha_max")
    for guard in (0.25, 1.0, 3.0):
        early = Asrpt(work_conserving=True, guard=guard)
        assert asrpt_early.check(instance, cost_s(instance, early, Objective.COMPLETION), guard)


@given(
    instance=instances(max_jobs=10, max_nodes=4),
    errors=st.sampled_from(["noisy:3", "noisy:1/20", "adversarial:10/10", "adversarial:100/100"]),
)
def test_the_engine_with_wrong_predictions(instance: Instance, errors: str) -> None:
    work = instance.workload.work
    predicted_s = predictor(errors).predict(Features.of(instance.workload), work)
    virtual_s = np.ceil(predicted_s * TICKS_PER_S) / TICKS_PER_S
    for stretch in (1.0, 4.0):
        chosen = Asrpt(predictor=errors, stretch=stretch)
        total = cost_s(instance, chosen, Objective.COMPLETION)
        assert asrpt_conversion.check(instance, total, virtual_s * stretch)
        assert asrpt_prediction.check(instance, total, virtual_s * stretch)
        guarded = replace(chosen, work_conserving=True, guard=1.0)
        total = cost_s(instance, guarded, Objective.COMPLETION)
        assert asrpt_early.check(instance, total, 1, virtual_s * stretch, virtual_s)


@pytest.mark.parametrize("n", [3, 10, 40])
def test_flow_time_has_no_constant(n: int) -> None:
    """The long job at once and every unit job when it comes: flow time 2n."""
    instance = asrpt_ratio.flow_family(n)
    assert cost_s(instance, Asrpt(), Objective.FLOW) == n * (n + 3)
    optimum = cost_s(instance, Asrpt(work_conserving=True), Objective.FLOW)
    assert optimum == 2 * n
    total = cost_s(instance, Asrpt(), Objective.COMPLETION)
    assert asrpt_ratio.check(instance, total)


@pytest.mark.parametrize("n", [4, 10, 30])
def test_starting_early_without_a_guard_has_no_constant(n: int) -> None:
    instance = asrpt_early.unguarded_family(n)
    optimum_at_most = Fraction(3 * n * n + 5 * n + 2, 2)
    early = Fraction(cost_s(instance, Asrpt(work_conserving=True), Objective.COMPLETION))
    assert early > Fraction(n, 2) * optimum_at_most
    assert not asrpt_early.check(instance, float(early)) or n < 10
    if n >= 10:
        assert early > asrpt_ratio.bound(instance) * optimum_at_most
    guarded = Asrpt(work_conserving=True, guard=1.0)
    total = cost_s(instance, guarded, Objective.COMPLETION)
    assert asrpt_early.check(instance, total)
    assert total <= 2 * optimum_at_most


@pytest.mark.parametrize(
    ("gpus", "blocking", "widest"), [(2, (1,), 2), (4, (1,), 4), (8, (3,), 6), (6, (2, 1), 4)]
)
def test_the_sharper_factor_is_approached_on_more_gpus_than_one(
    gpus: int, blocking: tuple[int, ...], widest: int
) -> None:
    """The policy itself on the family of step 7, beside SRTF and the factor; closer with every tenfold of jobs."""
    tends_to = Fraction(gpus + blocking[0], sum(blocking))
    gaps = []
    for count, parts in ((6, 2**8), (60, 2**12)):
        instance = asrpt_sharper.tight_family(gpus, blocking, widest, count, parts)
        asrpt, srtf = (
            sum(map(Fraction, end_s(instance, run(instance, each).schedule).tolist()))
            for each in (Asrpt(), Srtf())
        )
        ratio = Fraction(asrpt) / Fraction(srtf)
        floor = asrpt_sharper.family_floor(gpus, blocking, count, parts)
        assert floor <= ratio <= asrpt_sharper.bound(instance)
        gaps.append(tends_to - floor)
    assert gaps[1] < gaps[0] / 5
    far = asrpt_sharper.family_floor(gpus, blocking, 10**6, 2**40)
    assert tends_to * Fraction(9999, 10**4) < far < tends_to
    if len(blocking) == 1:
        assert asrpt_sharper.bound(instance) == 1 + Fraction(gpus, blocking[0])


@pytest.mark.parametrize(
    ("gpus", "blocking", "widest"), [(4, (1,), 3), (6, (1, 2), 4), (8, (2, 2, 1), 5)]
)
def test_gangs_that_do_not_keep_others_waiting_are_refused(
    gpus: int, blocking: tuple[int, ...], widest: int
) -> None:
    with pytest.raises(InputError, match="keep the last waiting with the fewest GPUs"):
        asrpt_sharper.tight_family(gpus, blocking, widest, 3, 8)
