"""Work is one-sided and exact: no honest run is a tick short, and nothing that is passes."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.run_directory.directory import load, save
from shadowprice.errors import InputError
from shadowprice.execution.engine import run
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.grid import TICK_S, TICKS_PER_S
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule
from shadowprice.instances.terms.charges import Overheads
from shadowprice.instances.workload import Workload
from shadowprice.proofs.certificate import Violation, verify
from shadowprice.proofs.testing.cases import conditioned, shared, typed
from shadowprice.solvers.registry import policies, policy
from support.conditioned_jobs import Restless
from support.job_graph_runs import Chance, graph_instances
from support.shares_done import shares_done
from support.uneven_work import Fickle, uneven

PREEMPTIVE = (
    "srtf",
    "las:quantum_s=0.01",
    "las2d:thresholds_gpu_s=0.3/1",
    "hadar:round_s=0.25",
    "gavel:max_min_fairness:aware=true,round_s=0.5",
    "gandiva:quantum_s=0.125",
)


def paces(instance, schedule):
    """Of every job its runs in order: ticks of progress, and of the whole job there (typed runs)."""
    found = [[] for _ in range(len(instance.workload))]
    rows = pd.DataFrame(schedule.to_frame()).groupby(["job", "start_s"])
    for (job, _), pieces in rows:
        types = {instance.cluster.nodes[node].gpu_type for node in pieces["node"]}
        jobs = instance.workload
        whole = max(
            -(
                -float(jobs.work[job])
                / jobs.throughput[job][jobs.gpu_types.index(kind)]
                * TICKS_PER_S
                // 1
            )
            for kind in types
        )
        row = pieces.iloc[0]
        found[job].append(
            (Fraction((row.end_s - row.start_s - row.overhead_s) * TICKS_PER_S), Fraction(whole))
        )
    return found


@settings(max_examples=25, deadline=None)
@given(uneven(charged=False), st.sampled_from(PREEMPTIVE))
def test_no_honest_run_is_a_tick_short(instance, name):
    """143 of 2,453 such runs were, when the end of a run was rounded in floats.

    Nothing is charged: with turns of 10 ms and restarts of a second nobody would ever get on.
    """
    schedule = run(instance, policy(name)).schedule
    verify(instance, schedule)
    for runs in paces(instance, schedule):
        share = sum(ran / whole for ran, whole in runs)
        assert 1 <= share < 1 + 1 / runs[-1][1]
    assert min(shares_done(Outcome.verified(instance, schedule, policy=name))) >= 1


@settings(max_examples=25, deadline=None)
@given(uneven(), st.integers(0, 10**6))
def test_the_engine_wakes_on_the_grid(instance, seed):
    schedule = run(instance, Fickle(seed)).schedule
    verify(instance, schedule)
    for column in (schedule.start_s, schedule.end_s):
        assert np.all(column * TICKS_PER_S == np.floor(column * TICKS_PER_S))


@settings(max_examples=25, deadline=None)
@given(st.one_of(typed(), shared()), st.integers(0, 10**6))
def test_types_and_partners(case, seed):
    verify(case.instance, run(case.instance, Fickle(seed)).schedule)


@settings(max_examples=13, deadline=None)
@given(st.one_of(typed(), shared(), conditioned()), st.sampled_from(sorted(policies())))
def test_every_policy(case, name):
    verify(case.instance, run(case.instance, policy(name)).schedule)


def last_run(schedule, job):
    """Rows of a job's last run."""
    mine = schedule.job == job
    return mine & (schedule.start_s == schedule.start_s[mine].max())


def schedules():
    """Honest schedules of all kinds of instances, with none of their jobs beside another."""

    def made(pair):
        instance, seed = pair
        if instance.graphs is not None:
            chosen = Chance(seed)
        elif any(each.varies for each in instance.present):
            chosen = Restless(seed)
        else:
            chosen = Fickle(seed)
        return instance, run(instance, chosen).schedule

    given_ = st.one_of(
        uneven(),
        graph_instances(),
        *(case().map(lambda c: c.instance) for case in (typed, conditioned)),
    )
    return st.tuples(given_, st.integers(0, 10**6)).map(made)


@settings(max_examples=35, deadline=None)
@given(schedules(), st.data())
def test_a_tick_less_is_too_little_and_a_tick_more_too_much(made, data):
    instance, schedule = made
    verify(instance, schedule)
    job = data.draw(st.integers(0, len(instance.workload) - 1))
    rows = last_run(schedule, job)
    for ticks in (-1, 1):
        end = schedule.end_s.copy()
        end[rows] += ticks * TICK_S
        with pytest.raises(Violation) as caught:
            verify(instance, replace(schedule, end_s=end))
        expected = {"work", "row"} if ticks < 0 else {"work", "capacity", "overlap", "resources"}
        assert caught.value.rule in expected


def micro_runs(ticks, each=1.0, *, work=3000, rates=((1.0, 0.5),)):
    """One job in so many runs of a tick each on the first type, or of a part of one."""
    workload = Workload.from_columns(
        arrival_s=[0],
        gpus=[1],
        work=[work * TICK_S],
        throughput=rates,
        gpu_types=("a", "b") if rates is not None else (),
    )
    k = np.arange(ticks)
    start_s = k * each * TICK_S
    schedule = Schedule(0 * k, 0 * k, 0 * k + 1, start_s, (k + 1) * each * TICK_S, np.zeros(ticks))
    return Instance(Cluster.parse("1x1:a,1x1:b"), workload), schedule


def test_many_runs_do_not_add_up_to_a_tolerance():
    verify(*micro_runs(3000))
    for ticks, say in (
        (1000, "2000 ticks are missing"),
        (2999, "1 ticks are missing"),
        (3001, "1 ticks too"),
    ):
        with pytest.raises(Violation, match=say) as caught:
            verify(*micro_runs(ticks))
        assert caught.value.rule == "work"
        assert caught.value.job == 0


@pytest.mark.parametrize("rates", [None, ((1.0, 0.5),)])
def test_times_off_the_grid_are_refused(rates, tmp_path):
    """Runs of half a tick counted as whole ones."""
    instance, schedule = micro_runs(1000, 0.5078125, work=1000, rates=rates)
    with pytest.raises(Violation, match=r"^grid: row 1 .*start_s is 0.5078125 ticks") as caught:
        verify(instance, schedule)
    assert (caught.value.rule, caught.value.row) == ("grid", 1)
    with pytest.raises(InputError, match=r"row 1, column 'start_s': got 4.8\d*e-07, expected"):
        Schedule.from_frame(schedule.to_frame())


@pytest.mark.parametrize("column", ["start_s", "end_s", "overhead_s"])
def test_every_time_is_on_the_grid(column):
    instance, schedule = micro_runs(3000)
    values = getattr(schedule, column).copy()
    values[7] += TICK_S / 4
    changed = {"end_s": np.maximum(schedule.end_s, values), column: values}
    with pytest.raises(Violation, match=f"row 7 .*{column} is") as caught:
        verify(instance, replace(schedule, **changed))
    assert caught.value.rule == "grid"


def test_what_is_saved_off_the_grid_does_not_load(tmp_path):
    instance, schedule = micro_runs(3000)
    save(Outcome.verified(instance, schedule, policy="magic"), tmp_path / "run")
    path = tmp_path / "run" / "schedule.parquet"
    frame = pd.read_parquet(path)
    frame.loc[2999, "end_s"] += TICK_S / 8
    frame.to_parquet(path)
    with pytest.raises(InputError, match=r"schedule\.parquet: row 2999, column 'end_s'"):
        load(tmp_path / "run")


@pytest.mark.parametrize(
    ("column", "value", "says"),
    [
        ("gpus", 1.5, r"row 1, column 'gpus': got 1\.5, expected an integer"),
        ("job", 0.25, "row 1, column 'job'"),
        ("node", float("nan"), "row 1, column 'node': got nan"),
        ("partner", 1e300, r"row 1, column 'partner': got 1e\+300"),
        ("gpus", "many", "row 1, column 'gpus': got 'many'"),
    ],
)
def test_counts_are_whole(column, value, says):
    frame = micro_runs(3)[1].to_frame().astype(object)
    frame.loc[1, column] = value
    with pytest.raises(InputError, match=says):
        Schedule.from_frame(frame)
    assert len(Schedule.from_frame(micro_runs(3)[1].to_frame().astype(float))) == 3


def test_who_goes_on_after_his_work_is_refused():
    """A run that only pays overhead, after the end."""
    workload = Workload.from_columns(arrival_s=[0], gpus=[1], work=[2.0])
    instance = Instance(Cluster.parse("1x1"), workload, Overheads(start_s=1.0))
    ends = np.array([3.0, 5.0])
    zero = np.zeros(2, dtype=np.int64)
    schedule = Schedule(zero, zero, zero + 1, np.array([0.0, 4.0]), ends, np.array([1.0, 1.0]))
    with pytest.raises(Violation, match="makes no progress"):
        verify(instance, schedule)
