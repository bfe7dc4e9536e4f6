"""Certificates: what is written proves its claim, and nothing that was changed does."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shadowprice as sp
from shadowprice.analysis.certify import certify
from shadowprice.analysis.outcome import Outcome
from shadowprice.errors import InputError
from shadowprice.execution.engine import run
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.objective import Objective
from shadowprice.instances.strategies import instances
from shadowprice.proofs import checker
from shadowprice.proofs.checker import Rejected, canonical, check, digest
from shadowprice.solvers.registry import policy
from shadowprice.solvers.strongest import lower_bounds

CHECKER = Path(checker.__file__)


def outcome(instance, name="srtf"):
    return Outcome.verified(instance, run(instance, policy(name)).schedule, policy=name)


def small(charges=None, name="las"):
    jobs = sp.Workload.from_columns(
        arrival_s=[0, 0, 5, 7], gpus=[2, 1, 3, 4], work=[30, 20, 10, 4], weight=[1, 2, 1, 0.5]
    )
    instance = sp.Instance(sp.Cluster.parse("2x2"), jobs, charges or sp.Overheads())
    return certify(outcome(instance, name), "completion", budget_s=1.0).text


def records(text):
    return [json.loads(line) for line in text.splitlines()]


def signed(found):
    """The file of these records with its digests made anew."""
    lines = [canonical(record) for record in found[:-1]]
    parts = [canonical(record) for record in found if record["kind"] in ("node", "job")]
    claim = {**found[-1], "instance": digest(parts)}
    claim.pop("file", None)
    claim["file"] = digest([*lines, canonical(claim)])
    return "\n".join([*lines, canonical(claim), ""])


def of_kind(found, kind):
    return [record for record in found if record["kind"] == kind]


@settings(max_examples=60, deadline=None)
@given(instances(), st.sampled_from(["fifo", "srtf", "las2d"]), st.sampled_from(list(Objective)))
def test_what_is_written_proves_its_claim(instance, name, objective):
    if not len(instance.workload):
        return
    made = outcome(instance, name)
    found = certify(made, objective, budget_s=0.3)
    claim = check(found.text)
    cost = Fraction(claim["cost"]) / TICKS_PER_S
    assert float(cost) == pytest.approx(objective.cost_s(instance.workload, made.end_s))
    # The package's own bounds, rounded down to floats, are the checker's.
    bound = Fraction(claim["bound"]) / TICKS_PER_S
    others = {
        each.kind: each.value_s
        for each in lower_bounds(instance, objective, preemptive=True, budget_s=0.0)
    }
    for kind in ("job", "fluid", "mean-busy-time", "area"):
        if kind in others:
            assert others[kind] <= bound
            if kind == found.bound:
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
    """A price rounded up: as good a dual solution, but of another value."""
    bound = of_kind(found, "bound")[0]
    assert bound["bound"] == "interval-lp"
    bound["prices"][0] = str(Fraction(bound["prices"][0]) + Fraction(1, 2**20))
    return found


def overlap(found):
    """A job's second run begins a second before its first ends."""
    runs = of_kind(found, "run")
    first, second = next((a, b) for a, b in zip(runs, runs[1:]) if a["job"] == b["job"])  # noqa: B905, RUF007
    second["start"] = first["end"] - SECOND
    second["end"] -= second["start"] - (first["end"] - SECOND)
    return found


@pytest.mark.parametrize(
    ("mutate", "says"),
    [
        (lose, "is lost"),
        (overlap, "runs twice|of its work|GPUs held"),
        (shift(0, "end", 1), "of its work|GPUs held|runs twice"),
        (change("job", 2, arrival=90 * SECOND), "before the job arrives"),
        (shift(1, "overhead", SECOND), "overhead"),
        (dearer, "the bound is"),
        (change("bound", 0, bound="fluid", grid=[], prices=[]), "weights differ"),
        (change("bound", 0, bound="area", grid=[], prices=[]), "no bound of that"),
        (change("bound", 0, bound="mean-busy-time"), "takes no prices"),
        (change("bound", 0, bound="optimum", grid=[], prices=[]), "malformed"),
        (change("header", 0, objective="flow"), "the schedule costs"),
        (change("header", 0, objective="makespan"), "the schedule costs"),
        (change("header", 0, objective="sum"), "objective is 'sum'"),
        (change("header", 0, start=SECOND), "overhead"),
        (change("claim", 0, cost=1), "the schedule costs"),
        (change("claim", 0, bound=1), "the bound is"),
        (change("claim", 0, ratio=1), "is not 1 x"),
        (change("node", 0, gpus=1), "GPUs held"),
        (change("job", 0, gpus=1), "gang"),
        (change("job", 0, run={"gpu": 31 * SECOND}), "of its work"),
        (change("job", 0, run={"other": 30 * SECOND}), "cannot run on"),
        (change("job", 1, weight="4/2"), "reduced"),
    ],
)
def test_a_forged_certificate_is_rejected(mutate, says):
    """Digests made anew do not help."""
    with pytest.raises(Rejected, match=says):
        check(signed(mutate(records(small()))))


def test_gpus_of_differing_speed_and_charges():
    jobs = sp.Workload.from_columns(
        arrival_s=[0, 1, 2], gpus=[2, 1, 2], work=[100, 50, 70],
        throughput=[[1.0, 0.3], [2.0, 1.0], [0.7, 0.7]], gpu_types=("a", "b"),
    )  # fmt: skip
    instance = sp.Instance(sp.Cluster.parse("1x2:a,1x2:b"), jobs, sp.Overheads(1.0, 2.0, 4.0))
    for name in ("srtf", "hadar", "fifo"):
        found = certify(outcome(instance, name), "flow", budget_s=0.5)
        assert check(found.text)["objective"] == "flow"
        changed = records(found.text)
        of_kind(changed, "run")[0]["end"] += 40
        with pytest.raises(Rejected):
            check(signed(changed))


def test_what_certificates_are_not_for():
    jobs = sp.Workload.from_columns(arrival_s=[], gpus=[], work=[])
    with pytest.raises(InputError, match="no jobs"):
        certify(outcome(sp.Instance(sp.Cluster.parse("1x1"), jobs)))
    jobs = sp.Workload.from_columns(arrival_s=[0], gpus=[1], work=[1])
    with pytest.raises(InputError, match="completion, flow, makespan"):
        certify(outcome(sp.Instance(sp.Cluster.parse("1x1"), jobs)), "speed")


@settings(max_examples=200)
@given(st.text() | st.lists(st.sampled_from(small().splitlines())).map("\n".join))
def test_other_text_is_rejected(text):
    with pytest.raises(Rejected):
        check(text)


def test_the_checker_is_a_single_file(tmp_path):
    alone = tmp_path / "checker.py"
    shutil.copy(CHECKER, alone)
    (tmp_path / "cert.jsonl").write_text(small())
    (tmp_path / "bad.jsonl").write_text(small().replace('"las"', '"srtf"'))

    def run_it(*arguments):
        # -I and -S: nothing but the standard library can be imported.
        command = [sys.executable, "-I", "-S", str(alone), *arguments]
        return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)

    fine = run_it("cert.jsonl")
    assert (fine.returncode, fine.stderr) == (0, "")
    assert fine.stdout.startswith("proven: las costs at most 1.")
    assert run_it("bad.jsonl").returncode == 1
    assert run_it("none.jsonl").stderr.startswith("rejected: ")
    assert "usage" in run_it().stderr
    imports = [
        node
        for node in ast.walk(ast.parse(CHECKER.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    names = {
        node.module if isinstance(node, ast.ImportFrom) else node.names[0].name for node in imports
    }
    assert {name.split(".")[0] for name in names} <= set(sys.stdlib_module_names)
