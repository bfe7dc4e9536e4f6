"""Runs that are stopped: what they did until then is what the whole run did, and is verified."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shadowprice as sp
from shadowprice.errors import InputError
from shadowprice.execution import engine
from shadowprice.execution.job_window import cut_schedule
from shadowprice.execution.kernel import run as kernel
from shadowprice.instances.strategies import instances
from shadowprice.proofs.certificate import verify
from shadowprice.solvers.registry import policy
from support.watches import StopAt

POLICIES = ("fifo", "srtf", "las2d", "easy", "gavel:max_min_fairness")
CHARGES = (sp.Overheads(), sp.Overheads(start_s=1.0, restart_s=3.0, migration_s=2.0))


def sorted_rows(schedule: sp.Schedule) -> list[tuple[float, ...]]:
    names = ("end_s", "start_s", "job", "node", "gpus", "overhead_s")
    return sorted(zip(*(getattr(schedule, name).tolist() for name in names), strict=True))


@settings(max_examples=35, deadline=None)
@given(
    instance=instances(),
    name=st.sampled_from(POLICIES),
    charges=st.sampled_from(CHARGES),
    calls=st.integers(0, 12),
)
def test_the_engine_stops_between_decisions(instance, name, charges, calls):
    instance = replace(instance, overheads=charges)
    whole = engine.run(instance, policy(name)).schedule
    watch = StopAt(calls)
    done = engine.run(instance, policy(name), watch=watch)
    if done.instance.stopped_s is None:
        assert sorted_rows(done.schedule) == sorted_rows(whole)
        return
    stopped_s = done.instance.stopped_s
    assert sorted_rows(done.schedule) == sorted_rows(cut_schedule(whole, stopped_s))
    complete = verify(done.instance, done.schedule)
    assert int(complete.sum()) == watch.told[-1][0]
    assert watch.told[-1][1] == len(complete)


@pytest.mark.parametrize("name", ["fifo", "srtf", "las2d", "easy"])
@pytest.mark.parametrize("charges", CHARGES)
def test_the_compiled_loop_stops_when_rows_are_full(name, charges, monkeypatch):
    monkeypatch.setattr(kernel, "_ROWS_AT_A_TIME", 64)
    jobs = sp.generate("lognormal", jobs=300, seed=3, load=1.1, gpus_total=16)
    instance = sp.Instance(sp.Cluster.parse("4x4"), jobs, charges)
    whole = engine.run(instance, policy(name)).schedule
    watch = StopAt(2)
    done = kernel.run_fastest(instance, policy(name), least_jobs=0, watch=watch)
    stopped_s = done.instance.stopped_s
    assert stopped_s is not None
    assert sorted_rows(done.schedule) == sorted_rows(cut_schedule(whole, stopped_s))
    assert int(verify(done.instance, done.schedule).sum()) == watch.told[-1][0]
    assert (np.diff(done.schedule.end_s) >= 0).all()


def test_who_stops_nothing_changes_nothing(monkeypatch):
    monkeypatch.setattr(kernel, "_ROWS_AT_A_TIME", 64)
    jobs = sp.generate("lognormal", jobs=200, seed=3, load=1.1, gpus_total=16)
    instance = sp.Instance(sp.Cluster.parse("4x4"), jobs)
    watch = StopAt(10**9)
    done = kernel.run_fastest(instance, policy("srtf"), least_jobs=0, watch=watch)
    whole = engine.run(instance, policy("srtf")).schedule
    assert done.instance is instance
    names = [each.name for each in fields(sp.Schedule)]
    for name in names:
        assert np.array_equal(getattr(done.schedule, name), getattr(whole, name)), name
    shares = [complete for complete, _ in watch.told]
    assert shares == sorted(shares)
    assert len(shares) > 5


def test_a_run_with_a_window_of_jobs_is_not_stopped():
    jobs = sp.generate("lognormal", jobs=60, seed=3, load=0.8, gpus_total=16)
    instance = sp.Instance(sp.Cluster.parse("4x4"), jobs, until_complete=sp.JobWindow(2, 5))
    done = engine.run(instance, policy("srtf"), watch=StopAt(0))
    assert done.instance.stopped_s is None


def test_times_that_no_run_stops_at():
    jobs = sp.Workload.from_columns(arrival_s=[0], gpus=[1], work=[1])
    with pytest.raises(InputError, match="stopped"):
        sp.Instance(sp.Cluster.parse("1x1"), jobs, stopped_s=-1.0)
