"""ServerFilling-SRPT: relevant work, jobs and flow time beside SRPT on one fast machine."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shadowprice as sp
from shadowprice.analysis.guarantees.lookup import (
    FactorGuarantee,
    UnmetHypotheses,
    describe,
    guarantee,
    known_bound,
)
from shadowprice.analysis.preparation import prepare_run
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.objective import Objective
from shadowprice.proofs.classic.relevant_work import bound, check, least_flow, more_jobs

JOB = st.tuples(st.integers(0, 12), st.sampled_from([1, 2, 4, 8]), st.integers(1, 40))


def workload(jobs: list[tuple[int, int, int]]) -> sp.Workload:
    arrival, gpus, work = zip(*jobs, strict=True)
    return sp.Workload.from_columns(arrival_s=list(arrival), gpus=list(gpus), work=list(work))


@given(st.lists(JOB, min_size=1, max_size=14))
def test_it_keeps_what_is_proven(jobs: list[tuple[int, int, int]]) -> None:
    outcome = sp.simulate(workload(jobs), "2x4", "server-filling-srpt")
    assert check(outcome.instance, outcome.schedule)
    assert Fraction(outcome.jct_s.sum()) <= bound(outcome.instance)


@given(st.lists(JOB, min_size=1, max_size=14))
def test_no_schedule_flows_faster_than_the_machine(jobs: list[tuple[int, int, int]]) -> None:
    outcome = sp.simulate(workload(jobs), "2x4", "srtf")
    assert Fraction(outcome.jct_s.sum()) >= least_flow(outcome.instance)


def test_the_worked_bound() -> None:
    """Services 4 and 8 on 4 GPUs: the machine ends at 1 and 3; three seconds full, gangs of 2 at least."""
    outcome = sp.simulate(workload([(0, 2, 2), (0, 4, 2)]), "1x4", "server-filling-srpt")
    assert least_flow(outcome.instance) == 4
    two = 2 * (2 + np.log(2.0))
    assert float(more_jobs(outcome.instance)) == pytest.approx(two)
    tick = Fraction(1, TICKS_PER_S)
    assert bound(outcome.instance) == 4 + 3 * more_jobs(outcome.instance) + 4 + tick


def test_greedy_srpt_breaks_it() -> None:
    """While single jobs keep coming none of the gangs of both GPUs starts: there are ever more."""
    singles = [(3 * k, 1, 4) for k in range(200)]
    jobs = workload([(15 * k, 2, 5) for k in range(40)] + singles)
    greedy = sp.simulate(jobs, "1x2", "srtf")
    assert not check(greedy.instance, greedy.schedule)
    filled = sp.simulate(jobs, "1x2", "server-filling-srpt")
    assert check(filled.instance, filled.schedule)


def test_what_it_says_of_a_run() -> None:
    jobs = workload([(0, 2, 2), (0, 4, 2)])
    run = prepare_run(jobs, "1x4", "server-filling-srpt")
    outcome = sp.simulate(jobs, "1x4", "server-filling-srpt")
    flow = describe(run, Objective.FLOW)
    assert flow is not None
    stated = guarantee(outcome, flow)
    assert isinstance(stated, FactorGuarantee)
    assert stated.factor == bound(outcome.instance) / 4
    assert "total flow time at most" in stated.sentence("p")
    known = known_bound(outcome, flow)
    assert known is not None
    assert known.factor == stated.factor
    completion = describe(run, Objective.COMPLETION)
    assert completion is not None
    assert known_bound(outcome, completion) is None


def test_hypotheses_are_named() -> None:
    jobs = workload([(0, 3, 2), (0, 4, 2)])
    run = prepare_run(jobs, "1x4", "server-filling-srpt", sp.RunOptions(round_s=60.0))
    outcome = sp.simulate(jobs, "1x4", "server-filling-srpt", sp.RunOptions(round_s=60.0))
    flow = describe(run, Objective.FLOW)
    assert flow is not None
    stated = guarantee(outcome, flow)
    assert isinstance(stated, UnmetHypotheses)
    assert len(stated.missing) == 2
    assert "no powers of two" in stated.sentence("p")
