"""Commit-once Hadar: costs that are kept, rounds that are passed over, bursts of arrivals."""

from __future__ import annotations

import math
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import shadowprice as sp
from shadowprice.analysis.decision_time import first_decisions_s
from shadowprice.solvers.hadar.commit_schedule import (
    CommittableJob,
    RoundCosts,
    best_schedule,
    search_by_labels,
    search_by_speed,
)
from shadowprice.solvers.hadar.committed import HadarCommitted
from shadowprice.solvers.hadar.committed_load import CommittedLoad
from shadowprice.solvers.hadar.node_classes import GangRequest
from shadowprice.solvers.hadar.prices import ExponentialPrices, UtilityBounds

TYPES = 3


class Falling:
    """Utility that falls with the round."""

    def __init__(self, scale: float, first: int) -> None:
        self.scale, self.first = scale, first

    def __call__(self, number: int) -> float:
        return self.scale / (number + 1 - self.first)


def random_job(rng: np.random.Generator, first: int, *, types: int = TYPES) -> CommittableJob:
    base = float(rng.lognormal(7.5, 1.0))
    times = base * rng.choice([1.0, 1.7, 2.0, 5.0, math.inf], types)
    times[int(rng.integers(types))] = base
    value = Falling(float(rng.lognormal(4, 2)), first)
    gang = int(rng.choice([1, 2, 4]))
    return CommittableJob.of(gang, first, times.tolist(), 360.0, value, first + 10_000)


def random_prices(rng: np.random.Generator, committed: CommittedLoad) -> ExponentialPrices:
    """Whole multiples of 1/16 where a node is empty, so that many costs are equal."""
    lowest = rng.integers(1, 4, TYPES) / 16
    bounds = UtilityBounds(lowest, lowest * rng.choice([1.0, 16.0, 256.0], TYPES), known=True)
    return ExponentialPrices.of(bounds, committed.type_of_node, committed.capacity)


def random_load(rng: np.random.Generator) -> CommittedLoad:
    nodes = int(rng.integers(1, 7))
    return CommittedLoad(rng.choice([1, 2, 4, 8], nodes), rng.integers(0, TYPES, nodes))


def commit(
    jobs: list[CommittableJob], committed: CommittedLoad, prices: ExponentialPrices, labels: int
) -> None:
    for job in jobs:
        made = best_schedule([job], committed, prices, labels=labels)
        if made is not None:
            committed.add(made)


def cheapest(
    load: NDArray[np.int64],
    committed: CommittedLoad,
    prices: ExponentialPrices,
    request: GangRequest,
) -> float:
    """Cost of the cheapest gang in a round, GPU by GPU."""
    price = prices.at(load)
    gpus = sorted(
        price[node]
        for node, taken in enumerate(load.tolist())
        if request.types[committed.type_of_node[node]]
        for _ in range(committed.capacity[node] - (taken if request.fits else 0))
    )
    return sum(gpus[: request.gpus]) if len(gpus) >= request.gpus else math.inf


@given(seed=st.integers(0, 2**32 - 1))
def test_costs_that_are_kept_are_those_of_the_present_load_and_prices(seed: int) -> None:
    """After sales, and after new prices."""
    rng = np.random.default_rng(seed)
    committed = random_load(rng)
    prices = random_prices(rng, committed)
    requests = [
        GangRequest(
            int(rng.choice([1, 2, 4])), tuple(rng.random(TYPES) < 0.7), bool(rng.random() < 0.8)
        )
        for _ in range(3)
    ]
    for step in range(8):
        commit([random_job(rng, step)], committed, prices, labels=64)
        if rng.random() < 0.4:
            prices = random_prices(rng, committed)
        request = requests[int(rng.integers(3))]
        found = committed.costs(request, prices)
        load = committed.load(0, committed.rounds + 1)
        for number in {0, step, *rng.integers(0, len(load), 10).tolist()} & set(range(len(found))):
            expected = cheapest(load[number], committed, prices, request)
            assert found[number] == pytest.approx(expected, rel=1e-12)
        assert found[-1] == pytest.approx(
            cheapest(0 * load[0], committed, prices, request), rel=1e-12
        )


def loaded_costs(rng: np.random.Generator) -> tuple[CommittableJob, RoundCosts]:
    """A job after some others were served, or before rounds of costs in no order."""
    committed = random_load(rng)
    prices = random_prices(rng, committed)
    commit([random_job(rng, 0) for _ in range(6)], committed, prices, labels=0)
    job = random_job(rng, int(rng.integers(0, 3)))
    round_costs = RoundCosts(job, committed, prices, fits=True)
    if rng.random() < 0.5:
        least = job.gpus * prices.lowest.min()
        round_costs.table = least * rng.choice(
            [1, 2, 3, 5, 8, math.inf], (60, len(round_costs.speeds))
        )
        round_costs.end = job.first_round + 60
    return job, round_costs


@given(seed=st.integers(0, 2**32 - 1))
def test_schedules_of_one_speed_are_the_best_of_all_ends(seed: int) -> None:
    job, round_costs = loaded_costs(np.random.default_rng(seed))
    best = 0.0
    for speed, needed in enumerate(round_costs.needed):
        for end in range(1, len(round_costs.table) + 1):
            cost = sum(sorted(round_costs.table[:end, speed].tolist())[:needed])
            if end >= needed and cost < math.inf:
                best = max(best, job.value(job.first_round + end - 1) - cost)
    assert search_by_speed(round_costs)[0] == pytest.approx(best, rel=1e-9, abs=1e-9)


@given(seed=st.integers(0, 2**32 - 1))
def test_rounds_that_are_passed_over_would_not_have_paid(seed: int) -> None:
    """The exact search against one that works through every round."""
    job, round_costs = loaded_costs(np.random.default_rng(seed))
    found = search_by_labels(round_costs, 300)
    if found is None:
        return
    best, labels = 0.0, {0: 0.0}
    for place, row in enumerate(round_costs.table.tolist()):
        worth, grown = job.value(job.first_round + place), dict(labels)
        for speed, cost in zip(round_costs.speeds, row, strict=True):
            for work, paid in labels.items():
                done = work + job.units[speed]
                if done >= job.work:
                    best = max(best, worth - paid - cost)
                elif paid + cost < min(worth, grown.get(done, math.inf)):
                    grown[done] = paid + cost
        ordered = sorted(grown.items(), reverse=True)
        least = accumulate((paid for _, paid in ordered), min, initial=math.inf)
        labels = {
            work: paid for (work, paid), low in zip(ordered, least, strict=False) if paid < low
        }
    assert found[0] == pytest.approx(best, rel=1e-9, abs=1e-9)


def test_rounds_far_ahead_are_not_looked_at() -> None:
    """What is free of load and no better than the first of its kind is not in the table."""
    committed = CommittedLoad(np.array([4]), np.array([0]))
    prices = ExponentialPrices(np.array([1.0]), np.array([10.0]), committed.capacity)
    job = CommittableJob.of(4, 3, (720.0,), 360.0, lambda _: 100.0, 100_000)
    assert len(RoundCosts(job, committed, prices, fits=True).table) == 2
    made = best_schedule([job], committed, prices)
    assert made is not None
    assert [number for number, _ in made.rounds] == [3, 4]


@pytest.mark.slow
@pytest.mark.parametrize("cluster", ["5x4:v100,5x4:p100,5x4:k80", "86x4:v100,85x4:p100,85x4:k80"])
def test_a_burst_costs_less_than_its_square(cluster: str) -> None:
    rates = {
        (model, gang): (rate * gang, 0.6 * rate * gang, 0.2 * rate * gang)
        for model, rate in (
            ("ResNet-18", 18.0),
            ("CycleGAN", 4.0),
            ("LM", 60.0),
            ("Transformer", 9.0),
            ("ResNet-50", 2.5),
        )
        for gang in (1, 2, 4, 8)
    }
    table = sp.Throughputs(("v100", "p100", "k80"), rates, {}, "made-up rates")

    def burst_s(jobs: int) -> float:
        drawn = sp.generate("hadar", jobs=jobs, throughputs=table)
        instance = sp.Instance(sp.Cluster.parse(cluster), drawn)
        return first_decisions_s(instance, HadarCommitted(), 1)[0]

    small, large = burst_s(500), burst_s(2000)
    assert large < 20.0
    assert large < 10 * small  # four times the jobs, 16 times if quadratic
