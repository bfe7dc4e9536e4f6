"""ServerFilling-SRPT and -Gittins: no GPU idle while there is work for all, and nobody starves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shadowprice as sp
from shadowprice.errors import InputError
from shadowprice.proofs.classic.server_filling import bound, check
from shadowprice.solvers.classic.server_filling_gittins import ServerFillingGittins
from shadowprice.solvers.tiresias.gittins_index import ServiceDistribution

JOB = st.tuples(st.integers(0, 12), st.sampled_from([1, 2, 4, 8]), st.integers(1, 9))


def workload(jobs: list[tuple[int, int, int]]) -> sp.Workload:
    arrival, gpus, work = zip(*jobs, strict=True)
    return sp.Workload.from_columns(arrival_s=list(arrival), gpus=list(gpus), work=list(work))


@given(st.lists(JOB, min_size=1, max_size=14))
def test_it_keeps_what_is_proven(jobs: list[tuple[int, int, int]]) -> None:
    outcome = sp.simulate(workload(jobs), "2x4", "server-filling-srpt")
    assert check(outcome.instance, outcome.schedule)
    latest_s = np.array([float(each) for each in bound(outcome.instance)])
    assert (outcome.end_s <= latest_s + 1e-9).all()


def narrow_ones_keep_coming(count: int) -> sp.Workload:
    """A gang of both GPUs, and single ones: each is there when the next comes, and both GPUs rarely work."""
    singles = [(3 * k, 1, 4) for k in range(count)]
    return workload([(0, 2, 5), *singles])


def test_greedy_srpt_starves_and_this_does_not() -> None:
    jobs = narrow_ones_keep_coming(60)
    wide = int(np.flatnonzero(jobs.gpus == 2)[0])
    greedy = sp.simulate(jobs, "1x2", "srtf")
    filled = sp.simulate(jobs, "1x2", "server-filling-srpt")
    assert greedy.end_s[wide] > 3 * 60
    assert filled.end_s[wide] < 20
    assert check(filled.instance, filled.schedule)
    assert not check(greedy.instance, greedy.schedule)


def test_on_one_gpu_it_is_srpt() -> None:
    jobs = workload([(0, 1, 5), (1, 1, 2), (2, 1, 1), (9, 1, 1)])
    one = sp.simulate(jobs, "1x1", "server-filling-srpt")
    assert one.end_s.tolist() == sp.simulate(jobs, "1x1", "srtf").end_s.tolist()


def test_the_widest_of_the_least_prefix_is_served() -> None:
    """Of 1, 2, 4 and 4 on 4 GPUs the first three fill the cluster, later 1, 2 and 4, at last 1 and 2."""
    jobs = workload([(0, 1, 1), (0, 2, 2), (0, 4, 3), (0, 4, 4)])
    outcome = sp.simulate(jobs, "1x4", "server-filling-srpt")
    assert outcome.end_s.tolist() == [8.0, 9.0, 3.0, 7.0]


@pytest.mark.parametrize(
    ("cluster", "jobs", "what"),
    [
        ("1x6", [(0, 1, 1)], "no powers of two"),
        ("1x8", [(0, 3, 1)], "no powers of two"),
        ("1x4:a,1x4:b", [(0, 1, 1)], None),
    ],
)
def test_hypotheses_are_named(
    cluster: str, jobs: list[tuple[int, int, int]], what: str | None
) -> None:
    outcome = sp.simulate(workload(jobs), cluster, "server-filling-srpt")
    if what is None:
        assert check(outcome.instance, outcome.schedule)
        return
    with pytest.raises(InputError, match=what):
        check(outcome.instance, outcome.schedule)


def test_charges_are_refused() -> None:
    options = sp.RunOptions(overheads=sp.Overheads(start_s=1.0))
    outcome = sp.simulate(workload([(0, 1, 1)]), "1x4", "server-filling-srpt", options)
    with pytest.raises(InputError, match="charges for starts"):
        check(outcome.instance, outcome.schedule)


@given(st.lists(JOB, min_size=1, max_size=14), st.sampled_from([1.0, 60.0]))
def test_by_gittins_index_it_keeps_the_same(
    jobs: list[tuple[int, int, int]], least_s: float
) -> None:
    outcome = sp.simulate(workload(jobs), "2x4", f"server-filling-gittins:least_s={least_s}")
    assert check(outcome.instance, outcome.schedule)


def test_the_job_of_highest_index_runs_until_it_may_fall() -> None:
    """Services 1, 1 and 4 on one GPU: each job gets a second, in which two of three end; the one of 4 then waits.

    The index is 2/3 at first, 1/3 after a second.
    """
    jobs = workload([(0, 1, 4), (0, 1, 1), (0, 1, 1)])
    outcome = sp.simulate(jobs, "1x1", "server-filling-gittins:least_s=0.001")
    assert outcome.end_s.tolist() == [6.0, 2.0, 3.0]
    rarely = sp.simulate(jobs, "1x1", "server-filling-gittins:least_s=2")
    assert rarely.end_s.tolist() == [6.0, 3.0, 4.0]


def test_a_sample_replaces_the_distribution_of_the_workload() -> None:
    """Jobs of a sample of 1 and 2 have attained more than any after 2: they come last, in order of arrival."""
    sample = ServiceDistribution(np.array([1.0, 2.0]))
    policy = ServerFillingGittins(least_s=0.001, sample=sample)
    assert not policy.knows
    outcome = sp.simulate(workload([(0, 1, 4), (0, 1, 2)]), "1x1", policy)
    assert outcome.end_s.tolist() == [6.0, 4.0]


def test_wrong_least_time_is_refused() -> None:
    with pytest.raises(InputError, match=r"least_s is 0\.0, expected seconds"):
        ServerFillingGittins(least_s=0.0)


def rare_gangs_of_the_whole_cluster(count: int, seed: int) -> sp.Workload:
    """Gangs of 1 to 32 of 64 GPUs, 0.2 % of 64; run times exponential with mean 1,000 s, load 0.85."""
    draw = np.random.default_rng(seed)
    share = 0.4 ** np.arange(6)
    share = np.append(share / share.sum() * 0.998, 0.002)
    gpus = draw.choice(2 ** np.arange(7), count, p=share)
    work = np.maximum(draw.exponential(1000.0, count), 1.0)
    gap_s = gpus.mean() * 1000.0 / (0.85 * 64)
    arrival = np.cumsum(draw.exponential(gap_s, count))
    return sp.Workload.from_columns(arrival_s=arrival, gpus=gpus, work=work)


def test_rare_wide_gangs_starve_under_greedy_srpt_alone() -> None:
    jobs = rare_gangs_of_the_whole_cluster(1000, seed=1)
    whole = jobs.gpus == 64
    mean_s = {
        name: sp.simulate(jobs, "1x64", name).jct_s[whole].mean()
        for name in ("srtf", "server-filling-srpt")
    }
    assert mean_s["srtf"] > 10 * mean_s["server-filling-srpt"]
