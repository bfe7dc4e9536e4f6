"""Certificates of runs that ended with a window of jobs or were stopped, and of quotas: bounds hold, forgeries fail."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import shadowprice as sp
from shadowprice.analysis.certificates import records
from shadowprice.analysis.certificates.checked_class import CheckedClass
from shadowprice.analysis.certify import certify, certify_into
from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.run_directory.directory import save
from shadowprice.analysis.streamed_outcome import StreamedOutcome
from shadowprice.cli.app import app
from shadowprice.errors import InputError, VerificationError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.clusters.quotas import Quotas
from shadowprice.instances.instance import Instance
from shadowprice.instances.terms.window import JobWindow
from shadowprice.instances.traces import load_trace
from shadowprice.proofs import checker
from shadowprice.proofs.checker import Rejected, check
from shadowprice.solvers.offline.bounds import fluid_ticks
from shadowprice.solvers.offline.plan_prices import PlanPrices, exact_plan_bound
from support.certificate_text import signed
from support.schedule_segments import Cut, by_end, rows_of

JOBS = st.lists(
    st.tuples(st.integers(0, 9), st.integers(1, 9), st.integers(1, 4), st.integers(1, 3)),
    min_size=1,
    max_size=6,
)
SECOND = 2**20


def workload(rows):
    arrival, work, gpus, weight = zip(*sorted(rows), strict=True)
    return sp.Workload.from_columns(arrival_s=arrival, work=work, gpus=gpus, weight=weight)


def stopped_at(outcome, at_s):
    """The outcome of a run that was stopped earlier."""
    rows = rows_of(outcome.schedule, np.flatnonzero(outcome.schedule.start_s < at_s))
    cut = replace(rows, end_s=np.minimum(rows.end_s, at_s))
    instance = replace(outcome.instance, stopped_s=at_s)
    return Outcome.verified(instance, cut, policy=outcome.policy)


def until_window(outcome, first, last):
    """The outcome of a run that ended with a window of jobs."""
    mine = (outcome.schedule.job >= first) & (outcome.schedule.job < last)
    over_s = outcome.schedule.end_s[mine].max()
    rows = rows_of(outcome.schedule, np.flatnonzero(outcome.schedule.start_s < over_s))
    cut = replace(rows, end_s=np.minimum(rows.end_s, over_s))
    instance = replace(outcome.instance, until_complete=JobWindow(first, last))
    return Outcome.verified(instance, cut, policy=outcome.policy)


def every(text):
    return [json.loads(line) for line in text.splitlines()]


def changed(text, kind, number=0, **fields):
    """The file with some fields of a record changed."""
    found = every(text)
    [record for record in found if record["kind"] == kind][number].update(fields)
    return signed(found)


# Bounds hold.


@settings(max_examples=6, deadline=None)
@given(JOBS, st.integers(1, 30), st.data())
def test_bounds_of_what_was_stopped_hold_and_both_programs_have_them(rows, at_s, data):
    jobs = workload(rows)
    at_s += float(jobs.arrival_s.min())
    instance = Instance(Cluster.parse("2x2"), jobs, stopped_s=at_s)
    schedules = CheckedClass.of(instance, pairs=False)
    size = data.draw(st.integers(1, 6))
    grid = [min(schedules.work.arrival) + k * SECOND for k in range(size + 1)]
    prices = data.draw(st.lists(st.integers(0, 2**19), min_size=size, max_size=size))
    until = int(at_s * SECOND)
    plan = exact_plan_bound(schedules.searched()[0], PlanPrices(tuple(grid), tuple(prices)), until)
    given_records = [records.header(instance, "some", "flow")]
    given_records += records.instance_records(instance, pairs=False)
    checked = checker.instance.CertificateInstance()
    for record in given_records:
        checker.instance.TAKE[record.pop("kind")](checked, record)
    work = checked.counted().relaxed()
    assert work.until == until
    bound = {"grid": grid, "prices": prices}
    mine = checker.prices.bound_priced_plans(work, bound)
    assert 0 <= plan - mine < Fraction(1, 2**1000)
    lp = {"grid": [grid[0], until + 2**40], "prices": [data.draw(st.integers(0, 2**10))]}
    values = [plan, checker.prices.bound_interval_lp(work, lp)]
    same = work._replace(weight=[Fraction(1)] * len(work.weight))
    fluid = checker.one_machine.bound_fluid(same, {})
    assert fluid_ticks(work.arrival, work.area, [1] * len(work.area), 4, until) == int(fluid)
    for name in ("fifo", "srtf", "las"):
        outcome = stopped_at(sp.simulate(jobs, "2x2", name), at_s)
        end_s = np.minimum(outcome.end_s, at_s)[jobs.arrival_s < at_s]
        weight = jobs.weight[jobs.arrival_s < at_s]
        assert max(values) <= Fraction(float(end_s @ weight)) * SECOND
        assert fluid <= Fraction(float(end_s.sum())) * SECOND
        claim = check(certify(outcome, "flow", budget_s=0.0).text)
        assert Fraction(claim["ratio"]) >= 1


def test_the_jobs_of_a_window_have_the_bound_of_these_jobs_alone():
    jobs = workload([(k // 2, 3 + k % 5, 1 + k % 4, 1) for k in range(12)])
    whole = sp.simulate(jobs, "2x2", "srtf")
    found = certify(until_window(whole, 4, 8), "flow", budget_s=0.5)
    alone = sp.simulate(jobs.select(np.arange(4, 8)), "2x2", "srtf")
    expected = certify(alone, "flow", budget_s=0.5)
    assert check(found.text)["bound"] == check(expected.text)["bound"]
    assert Fraction(check(found.text)["cost"]) > Fraction(check(expected.text)["cost"])
    said = (
        "of preemptive schedules in which no two jobs share a GPU, counting jobs 4 to 7 alone (flow"
    )
    assert said in found.sentence()


def test_prices_say_more_of_what_was_stopped_than_each_job_alone():
    jobs = workload([(0, 6, 4, 1 + k % 3) for k in range(12)])
    outcome = stopped_at(sp.simulate(jobs, "1x4", "srtf"), 40.0)
    without, found = (certify(outcome, "flow", budget_s=budget) for budget in (0.0, 0.5))
    assert found.bound_kind == "priced-plans"
    assert 1 <= found.ratio < without.ratio
    assert "counting time until 40.0 s alone" in found.sentence()
    check(found.text)


# Forgeries fail.


@pytest.fixture(scope="module")
def of_window():
    jobs = workload([(k, 5, 1 + k % 4, 1) for k in range(8)])
    return certify(until_window(sp.simulate(jobs, "2x2", "las"), 2, 5), "flow", budget_s=0.0).text


@pytest.fixture(scope="module")
def of_stopped():
    jobs = workload([(k, 5, 1 + k % 4, 1) for k in range(8)])
    return certify(stopped_at(sp.simulate(jobs, "2x2", "las"), 9.0), "flow", budget_s=0.0).text


@pytest.fixture(scope="module")
def of_quotas():
    quotas = Quotas(("a", "b"), (0.0, 10.0), ((2, 1), (1, 2)))
    cluster = replace(Cluster.parse("2x2"), quotas=quotas)
    jobs = sp.Workload.from_columns(
        arrival_s=[0, 0, 0, 1], gpus=[1, 1, 1, 2], work=[20, 30, 5, 5], tenant=["a", "a", "b", "b"]
    )
    return certify(sp.simulate(jobs, cluster, "fifo"), "flow", budget_s=0.0).text


WRONG_WINDOWS = [
    ({"window": [2, 9]}, "the window has jobs that there are not"),
    ({"window": [3, 3]}, "the window has no jobs"),
    ({"window": [2, 5], "stopped": 2**40}, "no bound of what was stopped|the class is"),
    ({"window": [2, 5], "stopped": 2}, "goes on after it was stopped"),
    ({"window": [2]}, "malformed"),
    ({"window": [2, 8]}, "ticks short of its work|never runs"),
    ({"window": [2, 4]}, "goes on after tick|the schedule costs"),
    ({"stopped": -1}, "it was stopped is -1"),
]


@pytest.mark.parametrize(("fields", "says"), WRONG_WINDOWS)
def test_another_window_is_found(of_window, fields, says):
    check(of_window)
    with pytest.raises(Rejected, match=says):
        check(changed(of_window, "header", **fields))


def test_a_window_that_is_kept_quiet_is_found(of_window, of_stopped):
    for text in (of_window, of_stopped):
        found = every(text)
        found[0].pop("window", None)
        found[0].pop("stopped", None)
        with pytest.raises(Rejected, match=r"short of its work|never runs"):
            check(signed(found))


def test_nothing_goes_on_after_a_window(of_window):
    found = every(of_window)
    runs = [record for record in found if record["kind"] == "run"]
    outside = max((r for r in runs if not 2 <= r["job"] < 5), key=lambda r: r["end"])
    outside["end"] += 1
    with pytest.raises(Rejected, match=r"goes on after tick|GPUs held|end of its work"):
        check(signed(found))


def test_nothing_goes_on_after_a_run_was_stopped(of_stopped):
    check(of_stopped)
    runs = [record for record in every(of_stopped) if record["kind"] == "run"]
    last = max(range(len(runs)), key=lambda k: runs[k]["end"])
    for forged, says in (
        (changed(of_stopped, "run", last, end=9 * SECOND + 1), "goes on after it was stopped"),
        (changed(of_stopped, "header", stopped=8 * SECOND), "goes on after it was stopped"),
        (changed(of_stopped, "header", stopped=10 * SECOND), "the schedule costs"),
        (changed(of_stopped, "header", stopped=0), "goes on after it was stopped"),
        (changed(of_stopped, "bound", bound="mean-busy-time", grid=[], prices=[]), "what was stop"),
        (changed(of_stopped, "bound", bound="wide-gangs", grid=[], prices=[]), "what was stopped"),
    ):
        with pytest.raises(Rejected, match=says):
            check(forged)
    last_end = changed(of_stopped, "header", objective="makespan")
    last_end = changed(last_end, "claim", cost=9 * SECOND, bound=1, ratio=9 * SECOND)
    with pytest.raises(Rejected, match="'area' is no bound of what was stopped"):
        check(changed(last_end, "bound", bound="area", grid=[], prices=[]))


def test_the_class_says_what_counts(of_window, of_stopped, of_quotas):
    for text in (of_window, of_stopped, of_quotas):
        claimed = "preemptive schedules in which no two jobs share a GPU"
        with pytest.raises(Rejected, match="the class is"):
            check(changed(text, "claim", **{"class": claimed}))


def test_no_run_begins_beyond_a_quota(of_quotas):
    check(of_quotas)
    starts = [run["start"] for run in every(of_quotas) if run["kind"] == "run"]
    assert max(starts) == 10 * SECOND  # Job 3 waited for the quota of b to grow.
    found = every(of_quotas)
    late = next(record for record in found if record["kind"] == "run" and record["job"] == 3)
    late.update(start=5 * SECOND, end=10 * SECOND)
    runs = [k for k, record in enumerate(found) if record["kind"] == "run"]
    in_order = sorted((found[k] for k in runs), key=lambda run: run["start"])
    found[runs[0] : runs[-1] + 1] = in_order
    with pytest.raises(Rejected, match=r"quota 1: 2000 thousandths held at tick .*, it has 1000"):
        check(signed(found))
    less = [[0, 1], [10 * SECOND, 1]]
    for forged, says in (
        (changed(of_quotas, "quota", 0, periods=less), "quota 0: 2000 thousandths held"),
        (changed(of_quotas, "quota", 0, periods=[[1, 2]]), "the first does not begin at 0"),
        (changed(of_quotas, "quota", 0, periods=[[0, 2], [0, 2]]), "out of order"),
        (changed(of_quotas, "quota", 0, quota=1), "a quota is out of order"),
        (changed(of_quotas, "job", 0, quota=2), "job 0 has a quota that is not there"),
        (changed(of_quotas, "job", 3, quota=0), "quota 0: "),
    ):
        with pytest.raises(Rejected, match=says):
            check(forged)
    free = [record for record in every(of_quotas) if record["kind"] != "quota"]
    with pytest.raises(Rejected, match="job 0 has a quota that is not there"):
        check(signed(free))


# What is asked of them.


def test_a_budget_does_not_ask_for_more_of_a_run():
    """Searches know the jobs that count, on whole GPUs or parts, with and without quotas."""
    jobs = sp.Workload.from_columns(
        arrival_s=[0, 1, 2], gpus=[1, 1, 2], gpu_milli=[400, 1000, 1000], work=[8, 9, 5], tenant="a"
    )
    quotas = Quotas(("a",), (0.0,), ((4,),))
    for cluster in (Cluster.parse("2x2"), replace(Cluster.parse("2x2"), quotas=quotas)):
        for some in (jobs, jobs.select(np.arange(1, 3))):
            outcome = sp.simulate(some, cluster, "srtf")
            for found in (outcome, until_window(outcome, 0, 1), stopped_at(outcome, 6.0)):
                assert certify(found, "flow", budget_s=0.05).ratio >= 1


def test_what_was_stopped_has_no_makespan_and_needs_a_job():
    jobs = workload([(5, 5, 1, 1), (5, 7, 2, 1)])
    whole = sp.simulate(jobs, "2x2", "fifo")
    with pytest.raises(
        InputError, match=r"was stopped at 9.0 s and has no makespan, expected flow"
    ):
        certify(stopped_at(whole, 9.0), "makespan")
    with pytest.raises(InputError, match=r"stopped at 5.0 s, before a job arrived"):
        certify(stopped_at(whole, 5.0), "flow")


def test_a_streamed_run_that_was_stopped_has_the_certificate_of_the_run_in_memory(tmp_path):
    jobs = workload([(k // 3, 1 + k % 7, 1 + k % 4, 1) for k in range(40)])
    found = stopped_at(sp.simulate(jobs, "2x4", "srtf"), 12.0)
    cut = Cut(by_end(found.schedule), range(7, len(found.schedule), 7))
    streamed = StreamedOutcome(found.instance, cut, "srtf", {})
    certify_into(streamed, tmp_path / "cert.jsonl", "flow", budget_s=0.0)
    assert (tmp_path / "cert.jsonl").read_text() == certify(found, "flow", budget_s=0.0).text


def test_the_commands_know_them(tmp_path):
    trace = tmp_path / "trace.csv"
    rows = [f"{k},{k},{1 + k % 4},5" for k in range(8)]
    trace.write_text("\n".join(["job_id,arrival_s,gpus,duration_s", *rows]))
    whole = sp.simulate(load_trace(trace).workload, "2x2", "las")
    cut = until_window(whole, 2, 5)
    for name, outcome in (("window", cut), ("stopped", stopped_at(whole, 9.0))):
        save(outcome, tmp_path / name)
        cert = str(tmp_path / f"{name}.jsonl")
        made = CliRunner().invoke(
            app, ["certify", str(tmp_path / name), "-o", cert, "--budget", "0"]
        )
        assert made.exit_code == 0, made.output
        asked = ["verify", cert, str(trace), "--cluster", "2x2"]
        told = CliRunner().invoke(app, asked)
        assert told.exit_code == 0, told.output
        assert ", counting " in told.output


def test_a_certificate_of_quotas_is_bound_to_its_files(tmp_path):
    """The trace, the cluster and the table of quotas, from the date of time 0 on."""
    trace, table, cert = (tmp_path / name for name in ("trace.csv", "quotas.csv", "cert.jsonl"))
    rows = [f"{k},{k},1,90000,{'ab'[k % 2]}" for k in range(4)]
    trace.write_text("\n".join(["job_id,arrival_s,gpus,duration_s,tenant", *rows]))
    table.write_text("date,a,b,total\n2020-04-01,1,2,3\n2020-04-02,2,2,4\n")
    quotas, call = f"quotas:file={table}", CliRunner().invoke
    dated = f"{quotas},date=2020-04-01T12:00:00"
    given = [str(trace), "--cluster", "1x4"]
    done = call(
        app, ["simulate", *given, "--policy", "las", "--with", dated, "-o", str(tmp_path / "run")]
    )
    assert done.exit_code == 0, done.output
    asked = ["certify", str(tmp_path / "run"), "-o", str(cert), "--budget", "0", "--force"]
    bound_to = ["verify", str(cert), *given]
    for more in ([], ["--objective", "utility", "--utility", "completion_time"]):
        made = call(app, [*asked, *more])
        assert made.exit_code == 0, made.output
        told = call(app, [*bound_to, "--with", dated])
        assert told.exit_code == 0, told.output
        assert "within quotas of tenants" in told.output
        early = call(app, [*bound_to, "--with", f"{quotas},date=2020-04-01T00:00:00"])
        assert isinstance(early.exception, VerificationError)
        assert "is about another instance" in str(early.exception)
    without = call(app, bound_to)
    assert isinstance(without.exception, InputError)
    assert "expected --with quotas" in str(without.exception)
    undated = call(app, [*bound_to, "--with", quotas])
    assert "does not say the date of its time 0" in str(undated.exception)
    alone = call(app, ["verify", str(cert), "--with", dated])
    assert "goes with TRACE and --cluster" in str(alone.exception)
    table.write_text("date,a,b,total\n2020-04-01,1,3,4\n2020-04-02,2,2,4\n")
    other = call(app, [*bound_to, "--with", dated])
    assert isinstance(other.exception, VerificationError)
