"""A-SRPT's whole problem: the command's claims against enumeration."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from shadowprice.cli.panels import shown
from shadowprice.cli.placement.joint import joint_command, sentence
from shadowprice.errors import InputError, SolverError
from shadowprice.instances.graphs.iteration_time import Network, iteration_s
from shadowprice.instances.graphs.job_graph import JobGraph, Link, Stage
from shadowprice.models.asrpt_joint import Jobs, build
from shadowprice.solvers.asrpt.joint import best_joint_plan, check, enough_slots

GRAPH = """
name: {name}
stages:
  - {{name: all, replicas: {replicas}, forward_s: 0.5, backward_s: 0.5, parameter_bytes: 0}}
"""


def least_total(jobs: Jobs) -> int:
    """Least total completion over placements and starts, by enumeration; jobs have one or two stages."""
    options = []
    for j, graph in enumerate(jobs.graphs):
        own = set()
        kept = [stage.replicas for stage in graph.stages]
        splits = [
            [x for x in itertools.product(range(k + 1), repeat=len(jobs.nodes)) if sum(x) == k]
            for k in kept
        ]
        for chosen in itertools.product(*splits):
            by_node = list(zip(*chosen, strict=True))
            if any(sum(row) > room for row, room in zip(by_node, jobs.nodes, strict=True)):
                continue
            mapping = tuple((n, tuple(row)) for n, row in enumerate(by_node) if sum(row))
            run_s = jobs.iterations[j] * iteration_s(graph, mapping, jobs.network)
            slots = math.ceil(run_s / jobs.slot_s - 1e-6)
            own.add((slots, tuple(sum(row) for row in by_node)))
        options.append(own)
    best = math.inf
    for chosen in itertools.product(*options):
        latest = jobs.horizon - min(slots for slots, _ in chosen)
        for starts in itertools.product(*(range(r, latest + 1) for r in jobs.release)):
            used = np.zeros((jobs.horizon + 99, len(jobs.nodes)), dtype=np.int64)
            for start, (slots, gpus) in zip(starts, chosen, strict=True):
                used[start : start + slots] += np.array(gpus)
            if (used <= np.array(jobs.nodes)).all():
                ends = (s + slots for s, (slots, _) in zip(starts, chosen, strict=True))
                best = min(best, sum(ends))
    return int(best)


@settings(max_examples=4, deadline=None)
@given(data=st.data())
def test_the_plan_has_the_least_total_of_all(data: st.DataObject) -> None:
    network = Network(100e9, 10e9, 2)
    sizes = st.sampled_from([0.0, 1e9, 4e9])
    graphs = []
    for k in range(2):
        stages = [Stage("a", data.draw(st.integers(1, 2)), 0.5, 0.5, data.draw(sizes))]
        if data.draw(st.booleans()):
            stages.append(Stage("b", 1, 0.5, 0.25, 0.0))
        links = (Link(0, 1, data.draw(sizes)),) if len(stages) > 1 else ()
        graphs.append(JobGraph(f"job{k}", tuple(stages), links))
    counts = tuple(data.draw(st.integers(1, 2)) for _ in graphs)
    release = tuple(data.draw(st.integers(0, 1)) for _ in graphs)
    jobs = Jobs(tuple(graphs), counts, release, (2, 1), network, 1.0, 1)
    jobs = replace(jobs, horizon=enough_slots(jobs))
    plan = best_joint_plan(jobs)
    assert plan.proven
    assert plan.total_slots == least_total(jobs) == plan.bound_slots
    wrong = replace(plan, completion=(plan.completion[0] - 1, *plan.completion[1:]))
    with pytest.raises(SolverError, match="which it cannot"):
        check(jobs, wrong)
    nowhere = replace(plan, start=(-1, *plan.start[1:]))
    with pytest.raises(SolverError, match="which it cannot"):
        check(jobs, nowhere)


def test_gpus_are_counted() -> None:
    graph = JobGraph("job", (Stage("all", 2, 0.5, 0.5),))
    jobs = Jobs((graph, graph), (3, 1), (0, 1), (2,), Network(100e9, 10e9, 2), 1.0, 8)
    plan = best_joint_plan(jobs)
    assert plan.completion in ((3, 4), (5, 2))
    with pytest.raises(SolverError, match="node 0 has 4 GPUs in use in slot 1, expected at most 2"):
        check(jobs, replace(plan, start=(0, 1), completion=(3, 2)))


def run(folder: Path, *arguments: str, replicas: tuple[int, ...] = (2, 2)) -> Result:
    paths = []
    for k, count in enumerate(replicas):
        path = folder / f"job{k}.yaml"
        path.write_text(GRAPH.format(name=f"job{k}", replicas=count), encoding="utf-8")
        paths.append(str(path))
    app = typer.Typer()
    app.command(**shown("place joint"))(joint_command)
    bandwidths = ("--with", "graphs:intra_gb_per_s=100,nic_gb_per_s=10", "--slot", "1")
    return CliRunner().invoke(app, [*paths, *bandwidths, *arguments])


def test_the_command_says_what_was_proven(tmp_path: Path) -> None:
    options = ("--cluster", "1x2", "--iterations", "3,1", "--release", "0,1")
    told = run(tmp_path, *options)
    assert told.exit_code == 0, told.output
    claim = "no placement and order without preemption that starts jobs with slots has less"
    assert f"total completion 7 slots of 1 s: {claim}" in " ".join(told.output.split())
    found = json.loads(run(tmp_path, *options, "--json").output)
    assert (found["total"], found["bound"], found["proven"]) == (7, 7.0, True)
    assert [job["graph"] for job in found["jobs"]] == ["job0", "job1"]


def test_what_is_not_proven_is_not_called_so() -> None:
    graph = JobGraph("job", (Stage("all", 2, 0.5, 0.5),))
    jobs = Jobs((graph, graph), (3, 1), (0, 1), (2,), Network(100e9, 10e9, 2), 1.0, 8)
    plan = replace(best_joint_plan(jobs), proven=False, bound_slots=6.0)
    assert "has less than 6; not proven optimal" in sentence(jobs, plan)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--iterations", "x"), "expected whole numbers"),
        (("--iterations", "0"), "expected 2 numbers of at least 1"),
        (("--release", "0,1,2"), "expected 2 numbers of at least 0"),
        (("--iterations", "4000"), "cells, expected at most 5000"),
    ],
)
def test_bad_options_are_named(tmp_path: Path, options: tuple[str, str], message: str) -> None:
    found = run(tmp_path, "--cluster", "1x2", *options)
    assert isinstance(found.exception, InputError)
    assert message in str(found.exception)


def test_an_edit_of_the_programme_takes_effect_or_is_refused() -> None:
    graph = JobGraph("job", (Stage("all", 2, 0.5, 0.5),))
    jobs = Jobs((graph, graph), (3, 1), (0, 1), (2,), Network(100e9, 10e9, 2), 1.0, 9)

    def late(jobs: Jobs) -> Any:
        m: Any = build(jobs)
        m.late = pyo.Constraint(expr=sum(m.f["job-0", t] for t in range(3)) == 0)
        return m

    plan = best_joint_plan(jobs, model=late)
    assert plan.edited
    assert plan.start == (3, 1)
    assert "of the model as it was edited" in sentence(jobs, plan)

    def weighted(jobs: Jobs) -> Any:
        m: Any = build(jobs)
        m.total.deactivate()
        m.weighted = pyo.Objective(expr=5 * m.C["job-0"] + m.C["job-1"])
        return m

    with pytest.raises(SolverError, match="where completions add up to"):
        best_joint_plan(jobs, model=weighted)
