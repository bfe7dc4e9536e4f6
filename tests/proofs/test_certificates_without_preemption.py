"""Certificates of schedules in which each job begins once: what they prove of few jobs, and no forgery proves more."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import shadowprice as sp
from shadowprice.analysis.certificates import non_preemptive, start_order
from shadowprice.analysis.certificates.checked_class import CheckedClass
from shadowprice.analysis.certificates.non_preemptive import non_preemptive_bounds
from shadowprice.analysis.certify import certify, certify_into
from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.streamed_outcome import StreamedOutcome
from shadowprice.errors import InputError
from shadowprice.execution.engine import run
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.proofs.checker import Rejected, check, sentences
from shadowprice.solvers.registry import policy
from support.certificate_text import records_of, signed
from support.command_line import CommandLine
from support.failing_nodes import instance_of as failing_instance
from support.schedule_segments import Cut, by_end
from support.small_certificates import certificate, job, least, node
from support.small_certificates import run as ran

CLASS = "non-preemptive schedules in which no two jobs share a GPU"


def ten(seed, cluster="1x8", name="fifo", **columns):
    draw = np.random.default_rng(seed)
    jobs = sp.Workload.from_columns(
        arrival_s=np.sort(draw.integers(0, 20, 10)),
        gpus=draw.integers(1, 9, 10),
        work=draw.integers(1, 13, 10),
        **columns,
    )
    return sp.simulate(jobs, cluster, name)


def simulated(instance, name="fifo"):
    return Outcome(instance, run(instance, policy(name)).schedule, name, {})


GOALS = ("flow", "completion", "makespan")


@pytest.mark.parametrize("goal", GOALS)
def test_the_optimum_of_ten_jobs_is_certified_at_once(goal):
    outcome = ten(3)
    found = certify(outcome, goal, budget_s=0.0, preemptive=False)
    assert (found.bound_kind, found.of_class) == ("list-schedules", CLASS)
    claim = check(found.text)
    assert CLASS in sentences(claim)[0]
    best = sp.optimum(outcome.instance, objective=goal, method="cp-sat", budget_s=30.0)
    assert best.proven
    assert Fraction(claim["bound"]) == Fraction(best.upper_s) * 2**20


def test_the_schedule_that_is_best_is_within_a_factor_of_one():
    outcome = ten(4, weight=np.random.default_rng(4).integers(1, 9, 10))
    best = sp.optimum(outcome.instance, objective="flow", method="cp-sat", budget_s=30.0)
    shown = Outcome(outcome.instance, best.schedule, "cp-sat", {})
    found = certify(shown, "flow", preemptive=False)
    assert found.ratio == 1
    assert certify(shown, "flow", budget_s=0.2).ratio > 1


def test_a_start_charge_is_a_part_of_each_job():
    charges = sp.Overheads(2.0, 3.0)
    jobs = sp.Workload.from_columns(arrival_s=[0, 0], gpus=[1, 1], work=[4, 9])
    instance = Instance(Cluster.parse("1x1"), jobs, charges)
    claim = check(certify(simulated(instance), "completion", preemptive=False).text)
    assert Fraction(claim["bound"]) == (6 + 6 + 11) * 2**20
    assert Fraction(claim["ratio"]) == 1


def test_of_gpus_of_several_types_the_fastest_counts():
    rates = {"throughput": [[1.0, 0.5], [1.0, 0.5]], "gpu_types": ("a", "b")}
    jobs = sp.Workload.from_columns(arrival_s=[0, 0], gpus=[1, 1], work=[4, 4], **rates)
    outcome = sp.simulate(jobs, "1x1:a,1x1:b", "fifo")
    claim = check(certify(outcome, "completion", preemptive=False).text)
    assert Fraction(claim["bound"]) == 8 * 2**20


def test_where_lists_are_many_they_have_prices(monkeypatch):
    outcome = ten(7)
    monkeypatch.setattr(non_preemptive, "_FEW", 20)
    monkeypatch.setattr(non_preemptive, "_AT_ONCE", 20)
    found = certify(outcome, "flow", budget_s=60.0, preemptive=False)
    record = records_of(found.text)[-2]
    assert record["bound"] == "list-schedules"
    assert record["grid"]
    few = certify(outcome, "flow", budget_s=0.0, preemptive=False)
    assert few.ratio > found.ratio
    work = CheckedClass.of(outcome.instance, pairs=False, preemptive=False)
    first, last = non_preemptive_bounds(outcome.instance, work, Objective.FLOW, 60.0)
    assert (first.optimal, last.optimal) == (False, True)
    assert first.ticks < last.ticks
    assert first.record["grid"] == []


def crowd(count, before_s, longest_s):
    draw = np.random.default_rng(30)
    jobs = sp.Workload.from_columns(
        arrival_s=np.sort(draw.integers(0, before_s, count)),
        gpus=2 ** draw.integers(0, 4, count),
        work=draw.integers(1, longest_s + 1, count),
        weight=draw.integers(1, 4, count),
    )
    return sp.simulate(jobs, "1x8", "fifo")


def test_of_more_jobs_lists_cost_what_prices_of_slots_say():
    """More than any schedule that may preempt has to."""
    outcome = crowd(20, 60, 10)
    once = certify(outcome, "flow", budget_s=10.0, preemptive=False)
    assert once.bound_kind == "list-schedules"
    assert once.ratio < certify(outcome, "flow", budget_s=2.0).ratio
    assert check(once.text)["class"] == CLASS


def test_what_the_checker_finds_too_long_is_tried_with_fewer_lists(monkeypatch):
    outcome = crowd(30, 90, 40)
    work = CheckedClass.of(outcome.instance, pairs=False, preemptive=False)
    honest, proposed = CheckedClass.evaluated, []

    def at_first_too_long(self, found, goal):
        proposed.append(found.ticks)
        if len(proposed) == 1:
            raise InputError("takes too many steps")
        return honest(self, found, goal)

    monkeypatch.setattr(CheckedClass, "evaluated", at_first_too_long)
    (found,) = non_preemptive_bounds(outcome.instance, work, Objective.FLOW, 6.0)
    assert proposed[1] == found.checked == found.ticks < proposed[0]


def test_there_are_none_of_very_many_jobs():
    jobs = sp.Workload.from_columns(arrival_s=range(201), gpus=[1] * 201, work=[9] * 201)
    outcome = sp.simulate(jobs, "1x8", "fifo")
    work = CheckedClass.of(outcome.instance, pairs=False, preemptive=False)
    assert list(non_preemptive_bounds(outcome.instance, work, Objective.FLOW, 1.0)) == []
    found = certify(outcome, "flow", budget_s=0.0, preemptive=False)
    assert found.of_class == CLASS
    assert found.bound_kind != "list-schedules"
    check(found.text)


def test_jobs_that_lose_their_work_begin_once_as_well():
    jobs = sp.Workload.from_columns(arrival_s=[0, 1, 2], gpus=[1, 1, 1], work=[9, 5, 2])
    instance = Instance(Cluster.parse("1x1"), jobs, preemption=sp.Preemption.RESTART)
    found = certify(simulated(instance, "srtf"), "completion", budget_s=0.0)
    assert found.bound_kind == "list-schedules"
    assert found.of_class.endswith("jobs restart when preempted")
    # A second of nothing, then the second and the third; or the third after the second job's arrival.
    assert Fraction(check(found.text)["bound"]) == min(9 + 11 + 16, 6 + 8 + 17, 4 + 9 + 18) * 2**20


def test_a_run_that_preempts_is_refused(tmp_path):
    jobs = sp.Workload.from_columns(arrival_s=[0, 2, 3], gpus=[1, 1, 1], work=[10, 4, 1])
    outcome = sp.simulate(jobs, "1x1", "srtf")
    with pytest.raises(InputError, match=r"job '1' begins again at 4.0 s, expected a run in"):
        certify(outcome, preemptive=False)
    with pytest.raises(InputError, match="begins again"):
        certify_into(outcome, tmp_path / "cert.jsonl", preemptive=False)


@pytest.mark.parametrize("name", ["fifo", "srtf"])
def test_a_run_on_disk_is_read_block_by_block(tmp_path, monkeypatch, name):
    monkeypatch.setattr(start_order.blocks_by_start, "__defaults__", (3,))
    whole = ten(5, name=name)
    cut = Cut(by_end(whole.schedule), range(3, len(whole.schedule), 3))
    streamed = StreamedOutcome(whole.instance, cut, name, {})
    if name == "srtf":
        with pytest.raises(InputError) as in_memory:
            certify(whole, preemptive=False)
        with pytest.raises(InputError) as on_disk:
            certify_into(streamed, tmp_path / "cert.jsonl", preemptive=False)
        assert str(on_disk.value) == str(in_memory.value)
    else:
        certify_into(streamed, tmp_path / "cert.jsonl", budget_s=0.0, preemptive=False)
        text = certify(whole, budget_s=0.0, preemptive=False).text
        assert (tmp_path / "cert.jsonl").read_text() == text


def test_nodes_that_fail_and_copies_are_refused():
    fails = failing_instance([(0, 1, 4)], [1], [(0, 8, 9)])
    with pytest.raises(InputError, match="nodes fail, after which jobs begin again"):
        certify(simulated(fails), preemptive=False)
    copied = sp.simulate(fails.workload, "2x1", "hadare")
    with pytest.raises(InputError, match="jobs run as copies, which begin again"):
        certify(copied, preemptive=False)


@pytest.fixture(scope="module")
def text():
    return certify(ten(3), "flow", budget_s=0.0, preemptive=False).text


def test_no_more_than_the_least_is_proven(text):
    found = records_of(text)
    bound, claim = found[-2], found[-1]
    for more in (1, 1000):
        claimed = Fraction(claim["bound"]) + more
        ratio = Fraction(claim["cost"]) / claimed
        forged = [
            *found[:-2],
            {**bound, "least": bound["least"] + more},
            {**claim, "bound": int(claimed), "ratio": str(ratio)},
        ]
        with pytest.raises(Rejected, match="a list of jobs costs less"):
            check(signed(forged))
        with pytest.raises(Rejected, match="the bound is"):
            check(signed([*found[:-2], bound, forged[-1]]))


@pytest.mark.parametrize(
    ("place", "change", "says"),
    [
        ("header", {"starts": None}, "starts are None, not once"),
        ("header", {"starts": "twice"}, "starts are 'twice', not once"),
        ("bound", {"least": -1}, "least cost of lists is -1"),
        ("bound", {"least": "2/4"}, "in lowest terms"),
        ("bound", {"grid": [3, 2], "prices": [1]}, "does not increase"),
        ("bound", {"grid": [3]}, None),
        ("bound", {"grid": [2, 3]}, "the grid does not increase"),
        ("bound", {"prices": [1]}, "the grid does not increase"),
        ("bound", {"grid": [2, 3], "prices": [-1]}, "price is -1"),
        ("bound", {"unit": 1}, "has fields"),
        ("bound", {"bound": "fluid"}, "has fields"),
        ("claim", {"class": CLASS.removeprefix("non-")}, "the class is"),
    ],
)
def test_forged_fields_are_refused(text, place, change, says):
    found = records_of(text)
    forged = [{**each, **change} if each["kind"] == place else each for each in found]
    if says is None:
        check(signed(forged))
        return
    with pytest.raises(Rejected, match=says):
        check(signed(forged))


def test_schedules_that_may_preempt_are_not_bounded_by_lists(text):
    found = records_of(text)
    header = {name: value for name, value in found[0].items() if name != "starts"}
    claim = {**found[-1], "class": CLASS.removeprefix("non-")}
    with pytest.raises(Rejected, match="jobs of the class go on where they were stopped"):
        check(signed([header, *found[1:-1], claim]))


ONE = [node(0, 1), job(0, 10), job(1, 4, arrival=2)]
LISTED = {**least("list-schedules"), "least": 22}
ONCE = {"about": CLASS, "starts": "once"}


def test_a_job_that_begins_again_is_no_schedule_of_the_class():
    check(certificate(*ONE, LISTED, ran(0, 0, 10), ran(1, 10, 14), bound=22, **ONCE))
    stops = [ran(0, 0, 2), ran(1, 2, 6), ran(0, 6, 14)]
    with pytest.raises(Rejected, match="job 0 begins again at tick 6, and each begins once"):
        check(certificate(*ONE, {**LISTED, "least": 20}, *stops, bound=20, **ONCE))
    halves = [ran(0, 0, 4), ran(0, 4, 10), ran(1, 10, 14)]
    with pytest.raises(Rejected, match="job 0 begins again at tick 4"):
        check(certificate(*ONE, LISTED, *halves, bound=22, **ONCE))


def test_a_change_of_cpus_begins_nothing():
    cells = {"kind": "profile", "profile": 0, "cells": [[0, 0, 1], [500, 0, 1]]}
    given_ = [node(0, 1, cpus=1000, memory=0), cells, job(0, 10, profile=0)]
    goes_on = [ran(0, 0, 4, [0, 1, 0]), ran(0, 4, 10, [0, 1, 1])]
    listed = {**LISTED, "least": 10}
    check(certificate(*given_, listed, *goes_on, bound=10, **ONCE))
    stopped = [goes_on[0], {**goes_on[1], "goes_on": False}]
    with pytest.raises(Rejected, match="begins again"):
        check(certificate(*given_, listed, *stopped, bound=10, **ONCE))


@pytest.mark.parametrize(
    ("records", "header", "says"),
    [
        (
            [node(0, 1), job(0, 10, part=500), ran(0, 0, 10, [0, 1, 0])],
            {
                "about": CLASS.replace(
                    "no two jobs share a GPU", "no GPU is held by more than all of it"
                )
            },
            "share GPUs, hold parts",
        ),
        (
            [node(0, 1), job(0, 10), ran(0, 0, 10)],
            {"stopped": 20, "about": f"{CLASS}, counting time until 1.9073486328125e-05 s alone"},
            "no bound of what was stopped",
        ),
    ],
)
def test_lists_are_of_whole_gangs_until_all_are_complete(records, header, says):
    with pytest.raises(Rejected, match=says):
        check(certificate(*records, {**LISTED, "least": 10}, bound=10, **{**ONCE, **header}))


def test_there_is_no_such_class_of_nodes_that_fail():
    rules = {"kind": "checkpoints", "interval": 1, "cost": 0, "until": 2**60}
    with pytest.raises(Rejected, match="nodes fail, after which jobs begin again"):
        check(certificate(rules, *ONE, LISTED, ran(0, 0, 10), ran(1, 10, 14), bound=22, **ONCE))
    copies = {"kind": "copies", "round": 10, "restart": 0, "aggregation": 0, "most": 1}
    with pytest.raises(Rejected, match="copies begin again with every round"):
        check(certificate(copies, node(0, 1), cost=1, **ONCE))


def test_the_claim_of_a_window_counts_its_jobs_alone():
    about = f"{CLASS}, counting jobs 1 to 1 alone"
    runs = [ran(0, 0, 10), ran(1, 10, 14)]
    listed = {**LISTED, "least": 6}
    check(certificate(*ONE, listed, *runs, bound=6, window=[1, 2], **{**ONCE, "about": about}))
    more = {**listed, "least": 7}
    forged = certificate(*ONE, more, *runs, bound=7, window=[1, 2], **{**ONCE, "about": about})
    with pytest.raises(Rejected, match="a list of jobs costs less"):
        check(forged)


def test_the_command_asks_for_the_class(tmp_path, capfd):
    run_command = CommandLine(capfd)
    trace = tmp_path / "jobs.csv"
    trace.write_text("arrival_s,gpus,duration_s\n0,1,10\n2,1,4\n3,1,1\n")
    for name in ("fifo", "srtf"):
        words = ("--cluster", "1x1", "--policy", name, "-o", tmp_path / name)
        assert run_command("simulate", trace, *words).returncode == 0
    file = tmp_path / "cert.jsonl"
    made = run_command("certify", tmp_path / "fifo", "-o", file, "--non-preemptive")
    # The first waits for the others: 4, 4 and 17, where fifo has 10, 12 and 12.
    assert f"costs at most 1.36x the offline optimum of {CLASS} (flow, certified by" in made.stdout
    checked = run_command("verify", file, trace, "--cluster", "1x1")
    assert f"proven: fifo costs at most 1.36x the offline optimum of {CLASS}" in checked.stdout
    refused = run_command("certify", tmp_path / "srtf", "-o", tmp_path / "no", "--non-preemptive")
    assert refused.returncode == 2
    assert "job '1' begins again at 4.0 s" in refused.stderr.replace("\n", " ")
    assert not (tmp_path / "no").exists()
    words = ("--non-preemptive", "--objective", "utility")
    refused = run_command("certify", tmp_path / "fifo", "-o", tmp_path / "no", *words)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "--non-preemptive: is of costs, got --objective utility" in refused.stderr
