"""Workers and parameter servers: the command's claims against enumeration."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyomo.environ as pyo
import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from shadowprice.cli.panels import shown
from shadowprice.cli.placement.servers import sentence, servers_command
from shadowprice.errors import InputError, SolverError
from shadowprice.models.tiresias import ServerJob, build
from shadowprice.solvers.tiresias.server_placement import best_placement, placement_by_rule


def by_workers(job: ServerJob, workers: tuple[int, ...]) -> float:
    """Least traffic of the busiest node with workers where they are."""
    nodes = range(len(job.free))
    at = itertools.product(nodes, repeat=len(job.shards))
    return min(job.busiest(workers, servers) for servers in at)


def all_workers(job: ServerJob) -> Iterator[tuple[int, ...]]:
    for workers in itertools.product(*(range(room + 1) for room in job.free)):
        if sum(workers) == job.workers:
            yield workers


@st.composite
def server_jobs(draw: st.DrawFn) -> ServerJob:
    free = tuple(draw(st.lists(st.integers(0, 3), min_size=1, max_size=3)))
    free = free if sum(free) else (1, *free[1:])
    size = st.integers(0, 9).map(float)
    return ServerJob(
        draw(st.integers(1, sum(free))),
        tuple(draw(st.lists(size, min_size=1, max_size=3))),
        free,
        tuple(draw(st.lists(size, min_size=len(free), max_size=len(free)))),
    )


@settings(max_examples=12, deadline=None)
@given(server_jobs(), st.booleans())
def test_the_rule_and_the_best_are_what_enumeration_says(job: ServerJob, together: bool) -> None:
    best, rule = best_placement(job), placement_by_rule(job, together=together)
    assert best.proven
    assert best.busiest_mb == pytest.approx(min(by_workers(job, w) for w in all_workers(job)))
    for placed in (best, rule):
        assert sum(placed.workers) == job.workers
        assert all(w <= room for w, room in zip(placed.workers, job.free, strict=True))
        assert placed.busiest_mb == job.busiest(placed.workers, placed.servers)
    assert rule.busiest_mb == pytest.approx(by_workers(job, rule.workers))
    assert rule.busiest_mb >= best.busiest_mb - 1e-6
    if together and max(job.free) >= job.workers:
        assert max(rule.workers) == job.workers


def run(folder: Path, job: str, *arguments: str) -> Result:
    app = typer.Typer()
    app.command(**shown("place servers"))(servers_command)
    (folder / "job.yaml").write_text(job)
    return CliRunner().invoke(app, [str(folder / "job.yaml"), *arguments])


JOB = "workers: 2\nshards_mb: [80, 20]\nfree_gpus: [2, 1, 1]\ntraffic_mb: [{busy}, 0, 0]\n"


def test_the_command_says_how_far_the_rule_is_from_the_best(tmp_path: Path) -> None:
    # Skewed: the rule consolidates on the busy node with room for all. Spreading is better.
    told = run(tmp_path, JOB.format(busy=90), "--json")
    assert told.exit_code == 0, told.output
    found = json.loads(told.output)
    assert found["rule"]["workers"] == [2, 0, 0]
    assert found["rule"]["busiest"] == 90.0
    assert found["best"]["busiest"] == 90.0
    worse = JOB.format(busy=150)
    found = json.loads(run(tmp_path, worse, "--json").output)
    job = ServerJob(2, (80.0, 20.0), (2, 1, 1), (150.0, 0.0, 0.0))
    assert found["best"]["busiest"] == min(by_workers(job, w) for w in all_workers(job))
    assert found["best"]["proven"]
    plain = " ".join(run(tmp_path, worse).output.split())
    assert "150 MB an iteration by placement skew, 150 MB at best (no placement has less)" in plain
    assert "within 1.000x of the best placement of these 2 workers" in plain


def test_the_factor_is_the_rules_over_the_best() -> None:
    job = ServerJob(2, (8.0, 1.0), (1, 1, 1), (20.0, 0.0, 0.0))
    rule, best = placement_by_rule(job, together=True), best_placement(job)
    assert rule.busiest_mb > best.busiest_mb
    assert f"within {rule.busiest_mb / best.busiest_mb:.3f}x" in sentence(job, rule, best)


@pytest.mark.parametrize(
    ("job", "message"),
    [
        (
            "workers: 2\nshards_mb: [8]\nfree_gpus: [1.5, 1]",
            "free_gpus[0] is 1.5, expected an integer",
        ),
        ("workers: 2\nshards_mb: [a]\nfree_gpus: [2, 1]", "shards_mb[0] is 'a', expected a number"),
        ("workers: 2\nshards_mb: [nan]\nfree_gpus: [2, 1]", "shards_mb[0] is 'nan', expected"),
        ("workers: 9\nshards_mb: [8]\nfree_gpus: [2, 1]", "at least one worker and room for all"),
        ("workers: 2\nshards_mb: [8]\nfree_gpus: [2, 1]\ntraffic_mb: [1]", "1 have traffic"),
        ("workers: 2\nshards: [8]\nfree_gpus: [2, 1]", "unknown key 'shards'"),
        ("workers: 2\nshards_mb: []\nfree_gpus: []", "expected at least one worker"),
    ],
)
def test_mistakes_in_the_file_are_named(tmp_path: Path, job: str, message: str) -> None:
    found = run(tmp_path, job)
    assert isinstance(found.exception, InputError)
    assert message in str(found.exception)


def test_an_edit_of_the_programme_takes_effect_or_is_refused() -> None:
    job = ServerJob(2, (8.0, 1.0), (1, 1, 1), (20.0, 0.0, 0.0))
    free = best_placement(job)
    assert not free.edited

    def only_the_first(job: ServerJob) -> Any:
        m: Any = build(job)
        m.first = pyo.Constraint(expr=m.w["node-0"] == 1)
        return m

    held = best_placement(job, model=only_the_first)
    assert held.edited
    assert held.workers[0] == 1
    assert held.busiest_mb == min(by_workers(job, w) for w in all_workers(job) if w[0] == 1)
    assert held.busiest_mb > free.busiest_mb
    assert "of the model as it was edited" in sentence(job, free, held)

    def doubled(job: ServerJob) -> Any:
        m: Any = build(job)
        m.busiest.deactivate()
        m.twice = pyo.Objective(expr=2 * m.T)
        return m

    with pytest.raises(SolverError, match=r"its objective is .* where the busiest node has"):
        best_placement(job, model=doubled)
