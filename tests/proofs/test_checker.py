"""Certificates: what is written proves its claim, and nothing that was changed does."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import shadowprice as sp
from shadowprice.analysis import certify as certify_module
from shadowprice.analysis.bounds import bounds_of
from shadowprice.analysis.certificates import cascade
from shadowprice.analysis.certificates.effort import BoundEffort
from shadowprice.analysis.certify import certify
from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.wording import at_most
from shadowprice.cli.app import app
from shadowprice.errors import InputError, VerificationError
from shadowprice.execution.engine import run
from shadowprice.instances.grid import TICKS_PER_S, to_ticks
from shadowprice.instances.objective import Objective
from shadowprice.instances.schedule import Schedule
from shadowprice.instances.speeds.throughputs import Throughputs
from shadowprice.instances.strategies import instances
from shadowprice.proofs import checker
from shadowprice.proofs.checker import Rejected, canonical, check, command
from shadowprice.solvers.offline.bounds import Relaxation, wide_gang_ticks
from shadowprice.solvers.offline.plan_prices import GangPrices, PlanPrices, exact_plan_bound
from shadowprice.solvers.registry import policy
from support.certificate_text import signed
from support.paths import ROOT

CHECKER = Path(checker.__file__).parent
CLASS = "preemptive schedules in which no two jobs share a GPU"


def outcome(instance, name="srtf"):
    return Outcome.verified(instance, run(instance, policy(name)).schedule, policy=name)


@cache
def small(charges=None, name="las"):
    """Text of a certificate: the same for the same arguments."""
    jobs = sp.Workload.from_columns(
        arrival_s=[0, 0, 5, 7], gpus=[2, 1, 3, 4], work=[30, 20, 10, 4], weight=[1, 2, 1, 0.5]
    )
    instance = sp.Instance(sp.Cluster.parse("2x2"), jobs, charges or sp.Overheads())
    return without_windows(outcome(instance, name), "completion", 8.0).text


def without_windows(made, objective, budget_s):
    """A certificate by other bounds than windows of completions, which are best of few jobs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cascade, "window_bounds", lambda instance, jobs, effort_s: iter(()))
        return certify(made, objective, budget_s=budget_s)


def records(text):
    return [json.loads(line) for line in text.splitlines()]


def of_kind(found, kind):
    return [record for record in found if record["kind"] == kind]


@settings(max_examples=10, deadline=None)
@given(
    instances(),
    st.sampled_from(["fifo", "srtf", "las2d"]),
    st.sampled_from(list(Objective)),
    st.sampled_from([certify, *[without_windows] * 5]),
)
def test_what_is_written_proves_its_claim(instance, name, objective, make):
    if not len(instance.workload):
        return
    made = outcome(instance, name)
    found = make(made, objective, budget_s=0.3)
    claim = check(found.text)
    cost = Fraction(claim["cost"]) / TICKS_PER_S
    assert float(cost) == pytest.approx(objective.cost_s(instance.workload, made.end_s))
    # The package's own bounds, rounded down to floats, are the checker's.
    bound = Fraction(claim["bound"]) / TICKS_PER_S
    others = {each.kind: each.value_s for each in bounds_of(instance, objective, BoundEffort(0.0))}
    for kind in ("job", "fluid", "mean-busy-time", "area"):
        if kind in others:
            assert others[kind] <= bound
            if kind == found.bound_kind:
                assert others[kind] == pytest.approx(float(bound), abs=1e-4)


def test_the_example_checks():
    text = small()
    assert check(text)["policy"] == "las"
    assert signed(records(text)) == text


def mutants(value):
    """Values that differ a little."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from (value + 1, value - 1, value + TICKS_PER_S, str(value), float(value), None)
    elif isinstance(value, str):
        yield from (value + "x", value[:-1], value.replace("1", "2", 1), 7)
    elif isinstance(value, list):
        for k, item in enumerate(value):
            for other in mutants(item):
                yield [*value[:k], other, *value[k + 1 :]]
        yield value[:-1]
        yield [*value, *(value[-1:] or [1])]
    elif isinstance(value, dict):
        for key, item in value.items():
            for other in mutants(item):
                yield {**value, key: other}
        yield {**value, "more": 1}


def test_a_change_of_any_field_is_found():
    text = small(sp.Overheads(1.0, 2.0, 3.0, restart_by_gpus=((1, 1.0), (4, 2.0))))
    check(text)
    lines = text.splitlines()
    changed = 0
    for k, line in enumerate(lines):
        record = json.loads(line)
        for field, value in record.items():
            for other in mutants(value):
                if other == value and type(other) is type(value):
                    continue
                mutant = canonical({**record, field: other})
                with pytest.raises(Rejected):
                    check("\n".join([*lines[:k], mutant, *lines[k + 1 :], ""]))
                changed += 1
    assert changed > 500


@pytest.mark.parametrize("number", range(20))
def test_a_changed_character_is_found(number):
    text = small()
    draw = np.random.default_rng(number)
    for place in draw.integers(0, len(text), size=100).tolist():
        other = chr(int(draw.integers(32, 127)))
        if text[place] != other:
            with pytest.raises(Rejected):
                check(text[:place] + other + text[place + 1 :])


SECOND = TICKS_PER_S


def lose(found):
    return [record for record in found if not (record["kind"] == "run" and record["job"] == 3)]


def change(kind, number, **fields):
    def changed(found):
        of_kind(found, kind)[number].update(fields)
        return found

    return changed


def shift(job, field, ticks):
    """Move one time of a job's first run."""

    def changed(found):
        next(r for r in of_kind(found, "run") if r["job"] == job)[field] += ticks
        return found

    return changed


def dearer(found):
    """Prices of which the capacity costs more than they bring in."""
    bound = of_kind(found, "bound")[0]
    bound.update(bound="priced-plans", prices=[2**21] * (len(bound["grid"]) - 1))
    return found


def overlap(found):
    """A job's second run begins a second before its first ends."""
    first, second, *_ = (run for run in of_kind(found, "run") if run["job"] == 0)
    second["start"], second["end"] = first["end"] - SECOND, second["end"] - SECOND
    return in_order(found)


def in_order(found):
    """Runs in order of their starts."""
    runs = [k for k, record in enumerate(found) if record["kind"] == "run"]
    found[runs[0] : runs[-1] + 1] = sorted(of_kind(found, "run"), key=lambda run: run["start"])
    return found


@pytest.mark.parametrize(
    ("mutate", "says"),
    [
        (lose, "is lost"),
        (overlap, "runs twice|of its work|GPUs held"),
        (lambda found: [*found[:-4], found[-3], found[-4], *found[-2:]], "out of order"),
        (shift(0, "end", 1), "of its work|GPUs held|runs twice"),
        (change("job", 2, arrival=90 * SECOND), "before the job arrives"),
        (shift(1, "overhead", SECOND), "overhead"),
        (dearer, "the bound is"),
        (change("bound", 0, bound="fluid", grid=[], prices=[]), "weights differ"),
        (change("bound", 0, bound="area", grid=[], prices=[]), "no bound of that"),
        (change("bound", 0, bound="mean-busy-time"), "takes no prices"),
        (change("bound", 0, bound="optimum", grid=[], prices=[]), "'optimum', which is unknown"),
        (change("header", 0, objective="flow"), "the schedule costs"),
        (change("header", 0, objective="makespan"), "the schedule costs"),
        (change("header", 0, objective="sum"), "objective is 'sum'"),
        (change("header", 0, start=SECOND), "overhead"),
        (change("claim", 0, cost=1), "the schedule costs"),
        (change("claim", 0, bound=1), r"the cost \d+ is not .* x 1$"),
        (change("claim", 0, bound=10**12), "the bound is .*, not 1000000000000"),
        (change("claim", 0, ratio=1), "is not 1 x"),
        (change("claim", 0, ratio="1/2"), "the ratio is 1/2, no schedule costs less"),
        (change("node", 0, gpus=1), "GPUs held"),
        (change("job", 0, gpus=1), "gang"),
        (change("job", 0, run={"gpu": 31 * SECOND}), "of its work"),
        (change("job", 0, run={"other": 30 * SECOND}), "a type that no node is of"),
        (change("job", 1, weight="4/2"), "lowest terms"),
    ],
)
def test_a_forged_certificate_is_rejected(mutate, says):
    """Digests made anew do not help."""
    with pytest.raises(Rejected, match=says):
        check(signed(mutate(records(small()))))


def test_gpus_of_differing_speed_and_charges():
    jobs = sp.Workload.from_columns(
        arrival_s=[0, 1, 2],
        gpus=[2, 1, 2],
        work=[100, 50, 70],
        throughput=[[1.0, 0.3], [2.0, 1.0], [0.7, 0.7]],
        gpu_types=("a", "b"),
    )
    instance = sp.Instance(sp.Cluster.parse("1x2:a,1x2:b"), jobs, sp.Overheads(1.0, 2.0, 4.0))
    for name in ("srtf", "hadar", "fifo"):
        found = certify(outcome(instance, name), "flow", budget_s=0.5)
        assert check(found.text)["objective"] == "flow"
        changed = records(found.text)
        of_kind(changed, "run")[0]["end"] += 40
        with pytest.raises(Rejected):
            check(signed(changed))


def test_where_jobs_may_share_the_grid_still_covers_all_work():
    """The interval LP counts the least work, which sharing makes less than what runs alone have."""
    kinds = ("a", "b")
    rates = {(k, (m, 1), (o, 1)): (0.9, 0.9) for k in kinds for m in "mn" for o in "mn"}
    jobs = sp.Workload.from_columns(
        arrival_s=[0, 1, 2, 3],
        gpus=[1, 1, 1, 1],
        work=[100, 50, 70, 40],
        throughput=[[1.0, 0.3], [2.0, 1.0], [0.7, 0.7], [1.5, 0.5]],
        gpu_types=kinds,
        model=["m", "n", "m", "n"],
    )
    table = Throughputs(kinds, {}, rates)
    instance = sp.Instance(sp.Cluster.parse("1x1:a,1x1:b"), jobs, sharing_rates=table)
    assert sum(Relaxation.of(instance).work) < sum(to_ticks(instance.shortest_s))
    found = certify(outcome(instance, "srtf"), "completion", budget_s=0.5)
    assert Fraction(check(found.text)["ratio"]) >= 1


def test_what_certificates_are_not_for():
    jobs = sp.Workload.from_columns(arrival_s=[], gpus=[], work=[])
    with pytest.raises(InputError, match="no jobs"):
        certify(outcome(sp.Instance(sp.Cluster.parse("1x1"), jobs)))
    jobs = sp.Workload.from_columns(arrival_s=[0], gpus=[1], work=[1])
    with pytest.raises(InputError, match="completion, flow, makespan"):
        certify(outcome(sp.Instance(sp.Cluster.parse("1x1"), jobs)), "speed")


@pytest.mark.parametrize(
    ("limit", "says"),
    [
        ("MOST_GPUS", "9 GPUs, expected at most 8"),
        ("MOST_TYPES", "9 GPU types, expected at most 8"),
        ("MOST_JOBS", "9 jobs, expected at most 8"),
    ],
)
def test_what_certificates_are_too_small_for(limit, says, monkeypatch):
    jobs = sp.Workload.from_columns(arrival_s=[0] * 9, gpus=[1] * 9, work=[1] * 9)
    cluster = sp.Cluster.parse(",".join(f"1x1:{kind}" for kind in "abcdefghi"))
    made = outcome(sp.Instance(cluster, jobs))
    certify(made, budget_s=0)
    monkeypatch.setattr(checker.limits, limit, 8)
    with pytest.raises(InputError, match=says):
        certify(made, budget_s=0)


@settings(max_examples=60)
@given(
    st.text() | st.deferred(lambda: st.lists(st.sampled_from(small().splitlines()))).map("\n".join)
)
def test_other_text_is_rejected(text):
    with pytest.raises(Rejected):
        check(text)


def copied(folder):
    """The checker's folder alone, under another name."""
    return shutil.copytree(CHECKER, folder, ignore=shutil.ignore_patterns("__pycache__"))


def started(folder, *arguments):
    # -I and -S: nothing but the standard library can be imported.
    command = [sys.executable, "-I", "-S", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)


def test_the_checker_runs_alone(tmp_path):
    alone = str(copied(tmp_path / "some folder"))
    (tmp_path / "cert.jsonl").write_text(small())
    (tmp_path / "bad.jsonl").write_text(small().replace('"las"', '"srtf"'))
    fine = started(tmp_path, alone, "cert.jsonl")
    assert (fine.returncode, fine.stderr) == (0, "")
    assert fine.stdout.startswith("proven: las costs at most 1.")
    assert started(tmp_path, alone, "bad.jsonl").returncode == 1
    assert started(tmp_path, alone, "none.jsonl").stderr.startswith("rejected: ")
    assert "usage: python checker FILE [DIGEST]" in started(tmp_path, alone).stderr
    as_part = [sys.executable, "-m", "shadowprice.proofs.checker", str(tmp_path / "cert.jsonl")]
    part = subprocess.run(as_part, capture_output=True, text=True, cwd=ROOT, check=False)
    assert (part.returncode, part.stdout) == (0, fine.stdout)


def test_files_beside_the_checker_are_not_imported(tmp_path):
    """Neither in its folder, nor in the one that it lies in."""
    alone = copied(tmp_path / "checker")
    (tmp_path / "cert.jsonl").write_text(small())
    for place in (alone, tmp_path):
        for name in ("json", "hashlib", "fractions"):
            (place / f"{name}.py").write_text("raise SystemExit(9)")
    assert started(tmp_path, str(alone), "cert.jsonl").returncode == 0


def test_the_checker_imports_itself_and_the_standard_library():
    inside = {path.stem for path in CHECKER.glob("*.py")}
    for path in CHECKER.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.level:
                assert node.level == 1
                assert node.module in inside
            elif isinstance(node, ast.ImportFrom):
                assert node.module.split(".")[0] in sys.stdlib_module_names
            elif isinstance(node, ast.Import):
                assert {each.name for each in node.names} <= set(sys.stdlib_module_names)


# What the first version accepted.


def first(kind, **fields):
    return change(kind, 0, **fields)


def without(kind, field):
    def changed(found):
        del of_kind(found, kind)[0][field]
        return found

    return changed


def added(kind):
    return change(kind, 0, more=1)


@pytest.mark.parametrize(
    ("mutate", "says"),
    [
        (first("header", format=True), "format is True, this program checks format 3"),
        (first("header", format=3.0), r"format is 3\.0, this"),
        (first("header", format=2), "format is 2, this program checks format 3"),
        (
            first("header", policy="fifo\nproven: srtf"),
            r"policy is 'fifo\\nproven: srtf', not a print",
        ),
        (first("header", policy="x\u202e"), "not a printable name"),
        (first("header", policy=""), "not a printable name"),
        (first("header", policy=["las"]), "not a printable name"),
        (first("header", start=True), "start is True, not an integer"),
        (first("header", migration=-1), "migration is -1, not an integer"),
        (first("header", restart=[[1, -1]]), "restart is -1, not an integer"),
        (first("header", restart=[]), "not increasing"),
        (first("header", objective=["flow"]), "objective is"),
        (change("node", 1, node=True), "node 1 is True, not an integer"),
        (first("node", node=False), "node 0 is False, not an integer"),
        (first("node", gpus=2.0), r"GPUs of node 0 is 2\.0"),
        (first("node", type=None), "type of node 0 is None"),
        (first("job", job=0.0), r"job 0 is 0\.0, not an integer"),
        (first("job", id=None), "id of job 0 is None"),
        (first("job", id=["0"]), "id of job 0 is "),
        (first("job", id="1"), "job 1 has the id of another"),
        (first("job", id="a\tb"), "not a printable name"),
        (first("job", weight="1"), "weight of job 0 is '1', not an integer or"),
        (first("job", weight="1e30000000"), "weight of job 0 is '1e30000000', not an integer or"),
        (first("job", weight="1/" + "3" * 2000), "weight of job 0 is '1/333"),
        (first("job", weight=1.0), r"weight of job 0 is 1\.0"),
        (first("job", weight=True), "weight of job 0 is True"),
        (first("job", weight="1/1"), "lowest terms"),
        (first("job", weight="\u0661/3"), "weight of job 0 is "),
        (first("job", run={}), "job 0 can run nowhere"),
        (first("job", run=[30]), r"run of a job is \[30\], not an object"),
        (first("job", arrival=2**101), r"not an integer from 0 to 2\^100"),
        (first("bound", grid={}), r"grid of a bound is \{\}, not a list"),
        (first("bound", bound="interval-lp", prices=["1/3"]), "price is '1/3', not an integer"),
        (first("claim", **{"class": "all schedules"}), "the class is 'all schedules'"),
        (without("claim", "class"), "claim has fields bound, cost, file"),
        (without("job", "weight"), "job has fields arrival"),
        (added("job"), "job has fields .*more"),
        (added("header"), "header has fields .*more"),
    ],
)
def test_other_types_and_names_are_rejected(mutate, says):
    with pytest.raises(Rejected, match=says) as caught:
        check(signed(mutate(records(small()))))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ([1], "line 1 is not an object"),
        ([{"kind": ["job"]}], r"kind is \['job'\]"),
        ([{"kind": "joke"}], "kind is 'joke', not one of header, copies"),
        ([{"job": 1}], "kind is None"),
    ],
)
def test_other_records_are_rejected(lines, says):
    with pytest.raises(Rejected, match=says):
        check("\n".join([*map(canonical, lines), ""]))


def test_a_record_given_twice_or_not_at_all_is_rejected():
    found = records(small())
    kinds = [record["kind"] for record in found]
    for kind in ("header", "bound"):
        k = kinds.index(kind)
        for changed, count in (
            ([*found[:k], *found[k + 1 :]], 0),
            ([*found[: k + 1], *found[k:]], 2),
        ):
            with pytest.raises(Rejected, match=f"{count} lines are of kind {kind}"):
                check(signed(changed))


def two_types(ticks, whole=3000, other=3001):
    """The audit's file: a job of 3,000 ticks in so many runs of a tick each."""
    claim = {"class": CLASS, "cost": ticks, "bound": whole, "instance": "", "file": ""}
    ratio = Fraction(ticks, whole)
    claim["ratio"] = ratio.numerator if ratio.denominator == 1 else str(ratio)
    header = {"format": 3, "policy": "magic", "objective": "completion", "start": 0}
    job = {"job": 0, "id": "x", "arrival": 0, "gpus": 1, "weight": 1}
    run = {"job": 0, "overhead": 0, "pieces": [[0, 1]]}
    return [
        {"kind": "header", **header, "migration": 0, "restart": [[1, 0]]},
        {"kind": "node", "node": 0, "gpus": 1, "type": "a"},
        {"kind": "node", "node": 1, "gpus": 1, "type": "b"},
        {"kind": "job", **job, "run": {"a": whole, "b": other}},
        *({"kind": "run", **run, "start": k, "end": k + 1} for k in range(ticks)),
        {"kind": "bound", "bound": "interval-lp", "grid": [0, whole], "prices": [0]},
        {"kind": "claim", **claim},
    ]


def test_runs_of_a_tick_do_not_add_up_to_a_tolerance():
    assert check(signed(two_types(3000)))["ratio"] == 1
    for ticks, says in ((1000, "is 2000 ticks short of its work"), (2999, "is 1 ticks short")):
        with pytest.raises(Rejected, match=says):
            check(signed(two_types(ticks)))
    with pytest.raises(Rejected, match="holds GPUs after the end of its work"):
        check(signed(two_types(3001)))


def test_a_mixed_job_ends_with_the_tick_that_completes_it():
    """1,500 of 3,000 ticks on one type, and half of 3,001 on the other: 1500.5, so 1,501."""
    for ticks, says in ((1500, "1 ticks short"), (1501, None), (1502, "after the end of its work")):
        found = two_types(1500)
        run = {"kind": "run", "job": 0, "overhead": 0, "pieces": [[1, 1]]}
        found.insert(-2, {**run, "start": 1500, "end": 1500 + ticks})
        found[-1].update(cost=1500 + ticks, ratio=str(Fraction(1500 + ticks, 3000)))
        if says is None:
            assert check(signed(found))["ratio"] == "3001/3000"
        else:
            with pytest.raises(Rejected, match=says):
                check(signed(found))


def test_no_run_pays_in_advance():
    """Starts cost 5 ticks each; the first run pays for the second too, and both together what they owe."""
    for paid, says in (((5, 5), None), ((10, 0), "owes -5 ticks of overhead")):
        found = two_types(3000)
        del found[5:-2]
        found[0].update(start=5)
        found[-2].update(grid=[0, 3005])
        found[-1]["class"] += ", a start takes 4.76837158203125e-06 s"
        found[4].update(start=0, end=paid[0], overhead=paid[0])
        found.insert(5, {**found[4], "start": 10, "end": 3010 + paid[1], "overhead": paid[1]})
        found[-1].update(cost=found[5]["end"], ratio=str(Fraction(found[5]["end"], 3000)))
        if says is None:
            assert check(signed(found))["cost"] == 3015
        else:
            with pytest.raises(Rejected, match=says):
                check(signed(found))


def test_a_ratio_below_one_is_refused():
    found = two_types(3000)
    found[-1].update(bound=3000, ratio="999/1000")
    with pytest.raises(Rejected, match="the ratio is 999/1000, no schedule costs less"):
        check(signed(found))


def test_a_smaller_bound_may_be_claimed_and_a_larger_one_not():
    found = two_types(3000)
    for bound, ratio, fine in (
        (2000, "3/2", True),
        (2000, 2, True),
        (2000, "4/3", False),
        (3001, 1, False),
    ):
        found[-1].update(bound=bound, ratio=ratio)
        if fine:
            assert check(signed(found))["bound"] == bound
        else:
            with pytest.raises(Rejected, match=r"the bound is 3000, not 3001|is not 4/3 x 2000"):
                check(signed(found))


@settings(max_examples=13, deadline=None)
@given(st.data())
def test_two_programs_price_plans_alike(data):
    draw, ticks = data.draw, st.integers(0, 30)
    columns = st.tuples(ticks, st.integers(1, 12), st.integers(1, 3), st.sampled_from([0, 1, 2.5]))
    rows = draw(st.lists(columns, min_size=1, max_size=4))
    grid = sorted(draw(st.sets(ticks, min_size=2, max_size=6)))
    prices = draw(st.lists(st.integers(0, 2**22), min_size=len(grid) - 1, max_size=len(grid) - 1))
    release, work, gpus, weight = (list(column) for column in zip(*rows, strict=True))
    weight = [Fraction(w) for w in weight]
    area = [p * g for p, g in zip(work, gpus, strict=True)]
    jobs = checker.costs.LeastWork(release, weight, work, area, gpus, 3, 3, 1, True)
    found = checker.prices.bound_priced_plans(jobs, {"grid": grid, "prices": prices})
    relaxed = Relaxation(release, work, gpus, weight, 3, Fraction(1))
    exact = exact_plan_bound(relaxed, PlanPrices(tuple(grid), tuple(prices)))
    assert found <= exact < found + Fraction(1, 2**1000)
    widths = sorted(set(gpus))
    row = st.lists(st.integers(0, 2**22), min_size=len(prices), max_size=len(prices))
    rows = [draw(row) for _ in widths]
    found = checker.prices.bound_configurations(jobs, {"grid": grid, "prices": rows})
    gangs = GangPrices(tuple(grid), tuple(widths), tuple(map(tuple, rows)))
    exact = exact_plan_bound(relaxed, gangs)
    assert found <= exact < found + Fraction(1, 2**1000)
    heavy = [each + 1 for each in weight]
    found = checker.one_machine.bound_wide_gangs(jobs._replace(weight=heavy), {})
    ticks = wide_gang_ticks(replace(relaxed, weight=heavy))
    assert ticks <= found + Fraction(sum(heavy), 2**63)
    assert found < ticks + sum(heavy) + len(heavy)


@pytest.mark.parametrize(
    ("grid", "prices", "says"),
    [
        ([0, 0], [1], "does not increase"),
        ([0, 1], [], "does not increase"),
        ([0, 1], [1, 1], "does not increase"),
        ([0, 2, 1], [1, 1], "does not increase"),
        ([0, 1], [-1], "price"),
    ],
)
def test_prices_of_plans_have_a_grid(grid, prices, says):
    found = records(small())
    found[-2].update(bound="priced-plans", grid=grid, prices=prices)
    with pytest.raises(Rejected, match=says):
        check(signed(found))


@pytest.mark.parametrize(
    ("grid", "says"),
    [
        ([0, 2999], "ends too early"),
        ([1, 3000], "begins too late"),
        ([0, 0], "does not increase"),
        ([0, 5, 3000], "does not increase"),
        ([0, True], "grid is True"),
    ],
)
def test_the_grid_covers_the_instance(grid, says):
    found = two_types(3000)
    found[-2]["grid"] = grid
    with pytest.raises(Rejected, match=says):
        check(signed(found))


def test_work_has_no_tolerance_of_any_kind():
    """One tick less or more in any run of a certificate of jobs with unequal speeds."""
    jobs = sp.Workload.from_columns(
        arrival_s=[0, 1, 2],
        gpus=[2, 1, 2],
        work=[100, 50, 70],
        throughput=[[1.0, 0.3], [2.0, 1.1], [0.7, 0.9]],
        gpu_types=("a", "b"),
    )
    text = certify(
        outcome(sp.Instance(sp.Cluster.parse("1x2:a,1x2:b"), jobs), "hadar"), budget_s=0
    ).text
    count = len(of_kind(records(text), "run"))
    for number in range(count):
        for ticks in (-1, 1):
            found = records(text)
            of_kind(found, "run")[number]["end"] += ticks
            with pytest.raises(Rejected, match=r"its work|GPUs held|runs twice"):
                check(signed(found))


def test_ratios_beyond_floats_are_printed(tmp_path, capsys, monkeypatch):
    heavy, light = 10**18, Fraction(1, 2**1074)
    jobs = sp.Workload.from_columns(
        arrival_s=[0, 0], gpus=[1, 1], work=[1, 1], weight=[5e-324, 5e-324]
    )
    found = records(certify(outcome(sp.Instance(sp.Cluster.parse("1x1"), jobs)), budget_s=0).text)
    assert Fraction(of_kind(found, "job")[0]["weight"]) == light
    found[-1].update(ratio=heavy**20)
    text = signed(found)
    assert check(text)["ratio"] == heavy**20
    path = tmp_path / "huge.jsonl"
    path.write_text(text, encoding="ascii")
    monkeypatch.setattr(sys, "argv", ["checker", str(path)])
    assert command.main() == 0
    assert "costs at most 1.000E+360x the offline optimum" in capsys.readouterr().out


@pytest.mark.parametrize(
    "ratio",
    [
        1,
        2,
        Fraction(20781, 10000),
        999999,
        Fraction(7, 3),
        Fraction(12345, 7),
        Fraction(2**70, 3),
        Fraction(10**400, 7),
        Fraction(1000001, 1000000),
        1000,
        Fraction(1999, 2),
        Fraction(1999999, 2),
        1000000,
        1000001,
    ],
)
def test_both_round_up_alike(ratio):
    assert checker.at_most(Fraction(ratio)) == at_most(ratio)


def test_what_was_checked_is_said(tmp_path, capsys, monkeypatch):
    text = small()
    path = tmp_path / "cert.jsonl"
    path.write_text(text, encoding="ascii")
    digest_of = check(text)["instance"]
    monkeypatch.setattr(sys, "argv", ["checker", str(path), digest_of])
    assert command.main() == 0
    proven, about = capsys.readouterr().out.splitlines()
    assert re.fullmatch(
        r"proven: las costs at most 1\.\d+x the offline optimum of preemptive schedules in which no two jobs "
        r"share a GPU \(completion, by [a-z-]+\)",
        proven,
    )
    assert about == f"instance: 4 jobs, 4 GPUs on 2 nodes, SHA-256 {digest_of}"
    monkeypatch.setattr(sys, "argv", ["checker", str(path), "0" * 64])
    assert command.main() == 1
    assert f"the instance is {digest_of}, not {'0' * 64}" in capsys.readouterr().err
    spaced = records(text)
    spaced[0]["policy"] = "las is best: fifo"
    assert checker.sentences(check(signed(spaced)))[0].startswith(
        "proven: 'las is best: fifo' costs"
    )


def test_what_jobs_have_to_do_is_said_by_the_checker_alone():
    """One file takes its work and its bounds from the checker; the others its limits, and its judgement at the end."""
    folder, used, taken = Path(certify_module.__file__).parent, set(), set()
    for path in (*folder.glob("certify*.py"), *(folder / "certificates").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                used |= {node.attr} if node.value.id == "checker" else set()
            if isinstance(node, ast.ImportFrom) and node.module:
                taken |= (
                    {path.stem} if node.module.startswith("shadowprice.proofs.checker") else set()
                )
    assert used == {"check_lines", "Rejected", "limits"}
    assert taken == {"checked_class"}


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"id": ["a\nb"]}, r"job 'a\\nb': certificates have printable names"),
        ({"arrival_s": np.array([0.3])}, r"job '0': arrival_s is 0\.3, expected a multiple of"),
        ({"weight": np.array([np.nan])}, r"job '0': weight is nan, expected a number"),
    ],
)
def test_what_cannot_be_written_is_an_input_error(columns, says):
    jobs = sp.Workload.from_columns(arrival_s=[0], gpus=[1], work=[1])
    jobs = replace(
        jobs,
        **{
            name: np.array(column, dtype=getattr(jobs, name).dtype)
            for name, column in columns.items()
        },
    )
    instance = sp.Instance(sp.Cluster.parse("1x1"), jobs)
    late = Schedule(*(np.array([k]) for k in (0, 0, 1)), *(np.array([x]) for x in (1.0, 2.0, 0.0)))
    with pytest.raises(InputError, match=says):
        certify(Outcome.verified(instance, late, policy="late"))
    fine = sp.Instance(
        instance.cluster, sp.Workload.from_columns(arrival_s=[0], gpus=[1], work=[1])
    )
    with pytest.raises(InputError, match="policy"):
        certify(Outcome.verified(fine, late, policy="late\n"))


def test_a_certificate_is_bound_to_its_trace(tmp_path):
    trace = tmp_path / "jobs.csv"
    trace.write_text("job_id,arrival_s,gpus,duration_s\na,0,1,5\nb,0,2,3\nc,1,1,2\n")
    call = CliRunner().invoke
    assert (
        call(
            app,
            [
                "simulate",
                str(trace),
                "--cluster",
                "1x2",
                "--policy",
                "fifo",
                "-o",
                str(tmp_path / "run"),
            ],
        ).exit_code
        == 0
    )
    cert = str(tmp_path / "cert.jsonl")
    made = call(app, ["certify", str(tmp_path / "run"), "-o", cert, "--budget", "0"])
    assert made.exit_code == 0, made.output
    shown = re.search(r"instance: SHA-256 ([0-9a-f]{64})", made.output)
    assert shown
    bound_to = ["verify", cert, str(trace), "--cluster"]
    fine = call(app, [*bound_to, "1x2"])
    assert fine.exit_code == 0, fine.output
    assert f"3 jobs, 2 GPUs on 1 nodes, SHA-256 {shown[1]}" in fine.output
    other = call(app, [*bound_to, "2x2"])
    assert isinstance(other.exception, VerificationError)
    assert "is about another instance" in str(other.exception)
    trace.write_text("job_id,arrival_s,gpus,duration_s\na,0,1,5\nb,0,2,3\nc,1,1,2.5\n")
    assert isinstance(call(app, [*bound_to, "1x2"]).exception, VerificationError)
    assert isinstance(call(app, ["verify", cert, "--cluster", "1x2"]).exception, InputError)
    found = json.loads(call(app, ["verify", cert, "--json"]).stdout)
    assert found["at_most"].endswith("x")
    assert (found["jobs"], found["gpus"], found["nodes"]) == (3, 2, 1)
