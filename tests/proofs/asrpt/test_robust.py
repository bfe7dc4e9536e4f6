"""A-SRPT that shares its time with a rule without predictions: both bounds of every job, and what they are good for."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import shadowprice as sp
from shadowprice.analysis.guarantees.lookup import describe, guarantee, known_bound
from shadowprice.analysis.preparation import prepare_run
from shadowprice.errors import InputError
from shadowprice.instances.objective import Objective
from shadowprice.proofs.asrpt.conversion import Gangs
from shadowprice.proofs.asrpt.prediction import optimum_at_least
from shadowprice.proofs.asrpt.robust import Factors, bound, check, job_bounds
from shadowprice.solvers.asrpt.cycles import Cycles
from shadowprice.solvers.asrpt.robust import RobustAsrpt
from shadowprice.solvers.predictors.oracle import specification

JOB = st.tuples(
    st.integers(0, 20), st.integers(1, 4), st.integers(1, 400), st.sampled_from([0, -6, -1, 1, 6])
)
CYCLES = st.tuples(st.sampled_from([0.1, 0.5, 0.9]), st.sampled_from([0.5, 4.0, 64.0]))


def predicted(jobs: sp.Workload, errors: list[float]) -> str:
    return specification(dict(zip(jobs.id.tolist(), errors, strict=True)))


@given(st.lists(JOB, min_size=1, max_size=7), st.integers(1, 4), CYCLES)
def test_every_job_is_within_both_bounds(
    rows: list[tuple[int, int, int, int]], gpus: int, cycles: tuple[float, float]
) -> None:
    arrival, gang, quarters, log2 = (list(column) for column in zip(*sorted(rows), strict=True))
    jobs = sp.Workload.from_columns(
        arrival_s=arrival, gpus=[min(g, gpus) for g in gang], work=[x / 4 for x in quarters]
    )
    errors = [2.0**power for power in log2]
    policy = RobustAsrpt("r", predicted(jobs, errors), *cycles)
    outcome = sp.simulate(jobs, f"1x{gpus}", policy)
    told_s = [work * error for work, error in zip(jobs.work.tolist(), errors, strict=True)]
    ends = outcome.end_s.tolist()
    assert check(outcome.instance, ends, policy.cycles, told_s)
    gangs = Gangs.of(outcome.instance, told_s)
    factors, least = Factors.of(gangs, policy.cycles), optimum_at_least(gangs) / 2**20
    total, tick = sum(map(Fraction, ends)), Fraction(len(ends), 2**20)
    assert total <= factors.consistency * (least + tick)
    assert total <= factors.robustness * least + factors.more_s
    # (b) knows no predictions.
    exact = job_bounds(Gangs.of(outcome.instance), policy.cycles)
    assert [each.blind for each in exact] == [
        each.blind for each in job_bounds(gangs, policy.cycles)
    ]
    assert total <= bound(outcome.instance, policy.cycles, told_s)


@given(st.integers(1, 40), st.integers(1, 39), st.integers(0, 500))
def test_predicted_and_blind_time_add_up(length: int, blind: int, now: int) -> None:
    """By counting ticks one by one."""
    cycles = Cycles(length + blind, blind)
    assert cycles.predicted(now) == sum(not cycles.is_blind(t) for t in range(now))
    assert cycles.is_blind(cycles.ends(now)) != cycles.is_blind(now)
    assert all(cycles.is_blind(t) == cycles.is_blind(now) for t in range(now, cycles.ends(now)))


def test_a_wrong_prediction_costs_no_more_than_the_robust_factor() -> None:
    """A long job that is told to be the shortest holds up all others under A-SRPT, and not here."""
    work = [100_000.0] + [10.0] * 50
    jobs = sp.Workload.from_columns(arrival_s=[0] * 51, gpus=[1] * 51, work=work)
    given_ = predicted(jobs, [1e-5] + [1.0] * 50)
    least = sp.simulate(jobs, "1x1", "srtf").end_s.sum()
    plain = sp.simulate(jobs, "1x1", f"asrpt:predictor={given_}").end_s.sum()
    shared = sp.simulate(jobs, "1x1", f"asrpt-robust:cycle_s=2,predictor={given_}").end_s.sum()
    assert plain > 40 * least
    assert shared < 3 * least


def test_comparisons_say_both_factors_or_why_there_is_none() -> None:
    jobs = sp.Workload.from_columns(arrival_s=[0, 5], gpus=[1, 1], work=[100, 30])
    charged = sp.RunOptions(overheads=sp.Overheads(restart_s=1.0))
    for switches, goal, words in (
        (sp.RunOptions(), Objective.COMPLETION, "with these predictions 6x, with any 6x and 300 s"),
        (sp.RunOptions(), Objective.FLOW, "the objective is flow"),
        (charged, Objective.COMPLETION, "charges"),
    ):
        run = prepare_run(jobs, "1x1", "asrpt-robust", switches)
        told = describe(run, goal)
        assert told is not None
        outcome = sp.simulate(jobs, "1x1", "asrpt-robust", switches)
        stated = guarantee(outcome, told)
        assert stated is not None
        assert words in stated.sentence("asrpt-robust")
        assert (known_bound(outcome, told) is None) == (stated.factor is None)


def test_parameters_that_make_no_sense() -> None:
    for more, words in (
        ({"share": 0.0}, "share"),
        ({"share": 1.0}, "share"),
        ({"cycle_s": 0.0}, "cycle_s"),
        ({"cycle_s": 2.0**-20}, "shorter than"),
    ):
        with pytest.raises(InputError, match=words):
            RobustAsrpt(**more)
