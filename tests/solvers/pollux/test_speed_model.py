"""Pollux' model of a job: its fit, and the batch of the largest goodput."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shadowprice.solvers.pollux.speed_model import (
    BatchLimits,
    Observed,
    StepTime,
    _error,
    best_batch,
    fitted,
)

THETA = StepTime(0.05, 0.002, 0.1, 0.01, 0.04, 0.005, 1.5)
LIMITS = BatchLimits(128, 2000, 16, 256)


def step_s(theta: StepTime, nodes: int, replicas: int, local: float) -> tuple[float, float]:
    """Time of a step, and of one that only adds up, by the formula of the paper."""
    gradient_s = theta.start_s + theta.example_s * local
    if replicas == 1:
        return gradient_s, gradient_s
    start, each = (
        (theta.across_nodes_s, theta.across_nodes_each_s)
        if nodes > 1
        else (theta.on_node_s, theta.on_node_each_s)
    )
    sync_s = start + each * (replicas - 2)
    power = theta.overlap
    return (gradient_s**power + sync_s**power) ** (1 / power), gradient_s


def observed(nodes: int, replicas: int, local: int) -> Observed:
    whole_s, gradient_s = step_s(THETA, nodes, replicas, local)
    return Observed(nodes, replicas, local, whole_s, whole_s - gradient_s)


def test_a_fit_to_what_the_model_says_foretells_it() -> None:
    seen = [
        observed(*each) for each in ((1, 1, 128), (1, 2, 64), (1, 4, 200), (2, 5, 80), (3, 12, 50))
    ]
    theta = fitted(seen)
    for nodes, replicas, local in ((1, 3, 100), (2, 8, 64)):
        ours, _ = step_s(theta, nodes, replicas, local)
        assert ours == pytest.approx(step_s(THETA, nodes, replicas, local)[0], rel=0.1)


def test_what_was_not_seen_is_hoped_for() -> None:
    alone = fitted([observed(1, 1, 128)])
    # As fast as it can be: replicas wait for nothing that nobody has measured.
    assert max(alone.across_nodes_s, alone.on_node_s) < 1e-6
    both = fitted([observed(1, 1, 128), observed(1, 2, 128)])
    assert both.across_nodes_s == pytest.approx(1.1 * both.on_node_s)


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6))
def test_the_gradient_of_the_error_is_that_of_its_differences(seed: int) -> None:
    draw = np.random.default_rng(seed)
    theta = np.append(draw.uniform(0.01, 0.2, 6), draw.uniform(1.1, 3.0))
    seen = [
        observed(*each) for each in ((1, 1, 128), (1, 2, 64), (1, 4, 200), (2, 5, 80), (3, 12, 50))
    ]
    nodes, replicas, local, step, sync = (np.array(each, float) for each in zip(*seen, strict=True))
    data = nodes > 1, replicas, local, np.log(step - sync), np.log(step)
    _, slope = _error(theta, *data)
    for k in range(7):
        aside = np.zeros(7)
        aside[k] = 1e-6
        difference = (_error(theta + aside, *data)[0] - _error(theta - aside, *data)[0]) / 2e-6
        assert slope[k] == pytest.approx(difference, rel=1e-4, abs=1e-6)


@settings(max_examples=40)
@given(
    replicas=st.integers(1, 20),
    across=st.booleans(),
    noise=st.tuples(st.floats(0.1, 10), st.floats(0, 1000)),
    fixed=st.sampled_from([0, 512]),
)
def test_the_batch_is_the_best_of_all_samples(
    replicas: int, across: bool, noise: tuple[float, float], fixed: int
) -> None:
    limits = BatchLimits(128, 2000, 16, 256, fixed)
    across = across and replicas > 1
    found = best_batch(THETA, noise, limits, np.array([across]), np.array([replicas]))
    least = max(128, 16 * replicas)
    samples = [512.0] if fixed else [least * (2000 / least) ** (k / 49) for k in range(50)]
    best = 0.0
    for batch in samples:
        share = batch / replicas
        added = math.ceil(share / 256 - 1e-8) - 1
        if replicas == 1 and share > 128 + 1e-8:
            added = max(added, 1)
        local = math.ceil(share / (added + 1) - 1e-8)
        if not 16 <= local <= 256:
            continue
        whole_s, gradient_s = step_s(THETA, 2 if across else 1, replicas, local)
        total = replicas * local * (added + 1)
        scale, (sqr, var) = total / 128, noise
        gain = (var + sqr) / (var / scale + sqr)
        best = max(best, total / (whole_s + added * gradient_s) * gain / scale)
    assert found.goodput[0] == pytest.approx(best, rel=1e-5)
    if best:
        assert 16 <= found.local[0] <= 256


def test_goodput_is_zero_where_no_batch_is_possible() -> None:
    narrow = BatchLimits(128, 256, 64, 64)
    found = best_batch(THETA, (1.0, 5.0), narrow, np.array([False]), np.array([1]))
    assert found.goodput[0] > 0
    wide = BatchLimits(128, 256, 64, 64, fixed=128)
    assert best_batch(THETA, (1.0, 5.0), wide, np.array([True]), np.array([8])).goodput[0] == 0
