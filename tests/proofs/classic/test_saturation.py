"""Most servers first and quick swaps, and what first come first served carries, with gangs of 1 and of all GPUs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shadowprice as sp
from shadowprice.errors import InputError
from shadowprice.proofs.classic.saturation import (
    carried_load,
    check,
    check_in_order,
    jobs_a_second,
)
from shadowprice.solvers.classic.most_servers_first import MostServersFirst

JOBS = st.lists(st.tuples(st.booleans(), st.integers(1, 20)), min_size=1, max_size=14)


def all_there(jobs: list[tuple[bool, int]], gpus: int) -> sp.Workload:
    gangs = [gpus if wide else 1 for wide, _ in jobs]
    work = [each for _, each in jobs]
    return sp.Workload.from_columns(arrival_s=[0] * len(jobs), gpus=gangs, work=work)


@given(JOBS, st.sampled_from([1, 2, 5]))
def test_saturated_clusters_keep_what_is_proven(jobs: list[tuple[bool, int]], gpus: int) -> None:
    loads = all_there(jobs, gpus)
    in_order = sp.simulate(loads, f"1x{gpus}", "fifo")
    assert check_in_order(in_order.instance, in_order.schedule)
    for name in ("msf", "quickswap:below=3"):
        outcome = sp.simulate(loads, f"1x{gpus}", name)
        assert check(outcome.instance, outcome.schedule), name


def drawn(count: int, load: float | None, seed: int) -> sp.Workload:
    """Exponential run times of 100 s, a tenth of the jobs on all 8 GPUs; Poisson arrivals, or all at 0."""
    draw = np.random.default_rng(seed)
    wide = draw.random(count) < 0.1
    work = draw.exponential(100.0, count)
    gap_s = 0.0 if load is None else (0.1 * 100.0 + 0.9 * 100.0 / 8) / load
    arrival = np.cumsum(draw.exponential(1.0, count) * gap_s)
    return sp.Workload.from_columns(arrival_s=arrival, gpus=np.where(wide, 8, 1), work=work)


def test_the_rate_of_a_saturated_queue_is_that_of_the_formula() -> None:
    outcome = sp.simulate(drawn(20_000, None, 1), "1x8", "fifo")
    measured = 20_000 / float(outcome.end_s.max())
    assert jobs_a_second(8, 0.1, 100.0, 100.0) == pytest.approx(measured, rel=0.03)


def test_the_worked_rate() -> None:
    """One GPU has no wide and narrow; on two, each second job wide, runs of k last 1/2, 3/4 and so on."""
    assert carried_load(1, 0.3, 7.0, 7.0) == pytest.approx(1.0)
    # 1 + (1/8 / (1/2 * 2) + 1/2 + 1/8) seconds for two jobs, of 1.5 GPU-seconds of two GPUs.
    assert jobs_a_second(2, 0.5, 1.0, 1.0) == pytest.approx(2 / 1.75)
    assert carried_load(2, 0.5, 1.0, 1.0) == pytest.approx(2 / 1.75 * 0.75)


def test_beyond_its_load_fifo_falls_behind_and_the_widest_first_do_not() -> None:
    """fifo carries 0.603; at 0.55 all keep up, at 0.8 its queue grows with time."""
    assert carried_load(8, 0.1, 100.0, 100.0) == pytest.approx(0.6028, abs=1e-4)

    def mean_s(load: float, name: str) -> tuple[float, float]:
        outcome = sp.simulate(drawn(8_000, load, 2), "1x8", name)
        half = len(outcome.jct_s) // 2
        return float(outcome.jct_s[:half].mean()), float(outcome.jct_s[half:].mean())

    early, late = mean_s(0.8, "fifo")
    assert late > 2 * early > 10_000
    for load, name in ((0.55, "fifo"), (0.8, "msf"), (0.8, "quickswap")):
        assert max(mean_s(load, name)) < 3_000, (load, name)


def test_quick_swaps_are_less_variable() -> None:
    jobs = drawn(8_000, 0.8, 2)
    spread = {
        name: sp.simulate(jobs, "1x8", name).jct_s.std() for name in ("msf", "quickswap:below=4")
    }
    assert spread["quickswap:below=4"] < 0.75 * spread["msf"]


def test_a_swap_holds_narrow_jobs_back() -> None:
    """At 1 two narrow jobs run, and a wide one waits: at 2 another may start beside them, or not before it."""
    jobs = sp.Workload.from_columns(arrival_s=[0, 0, 1, 2], gpus=[1, 1, 3, 1], work=[4, 6, 5, 20])
    ends = {
        below: sp.simulate(jobs, "1x3", MostServersFirst("swap", below)).end_s.tolist()
        for below in (1, 3)
    }
    assert ends == {1: [4, 6, 27, 22], 3: [4, 6, 11, 31]}


def test_hypotheses_are_named() -> None:
    two = sp.Workload.from_columns(arrival_s=[0, 0], gpus=[2, 1], work=[1, 1])
    outcome = sp.simulate(two, "1x3", "msf")
    with pytest.raises(InputError, match="has gangs of neither 1 nor all GPUs"):
        check(outcome.instance, outcome.schedule)
    late = sp.Workload.from_columns(arrival_s=[0, 1], gpus=[1, 1], work=[1, 1])
    outcome = sp.simulate(late, "1x3", "msf")
    with pytest.raises(InputError, match="has jobs that arrive after 0"):
        check(outcome.instance, outcome.schedule)
    with pytest.raises(InputError, match="below is 0, expected at least 1"):
        MostServersFirst("swap", 0)
