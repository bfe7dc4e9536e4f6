"""One cascade: what a comparison prints is what a certificate says is what the checker accepts, to the last digit."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random

import numpy as np
import pytest
from typer.testing import CliRunner

import shadowprice as sp
from shadowprice.analysis.bounds import bounds_of, certified_and_largest, certified_bounds
from shadowprice.analysis.certificates import cascade
from shadowprice.analysis.certificates.effort import BoundEffort
from shadowprice.analysis.certify import KNOWS, certify
from shadowprice.analysis.compare import _bounded
from shadowprice.cli.app import app
from shadowprice.errors import InfeasibleJobError, InputError, VerificationError
from shadowprice.instances.features import Feature, missing
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.proofs import checker
from shadowprice.solvers.offline.bounds import Bound
from support.consumers.bounds import ran
from support.drawn_worlds import FEATURES
from support.feature_instances import may_meet
from support.refuted import SEARCHING, worlds
from support.small_instances import instance_of

TOTALS = (Objective.FLOW, Objective.COMPLETION)
SETS = 400 if SEARCHING else 40


def claimed(text: str) -> dict[str, object]:
    """The claim of a certificate that the checker accepts."""
    return checker.check_lines(io.StringIO(text, newline="\n"))


def sets_of_features(count: int, seed: int) -> list[tuple[str, ...]]:
    """Every feature by itself, and random pairs and triples that may meet."""
    random, found = Random(seed), [(each,) for each in FEATURES]
    while len(found) < count:
        some = tuple(random.sample(FEATURES, random.randint(0, 3)))
        if may_meet([Feature(each) for each in some]):
            found.append(some)
    return found


def first_run(names: tuple[str, ...]) -> sp.Outcome:
    """A run of the first world with these features whose jobs can run at all."""
    for world in worlds(names, 20):
        try:
            return ran(instance_of(world))
        except InfeasibleJobError:
            continue
    raise AssertionError(f"no world with {names} has a run")


@pytest.mark.parametrize("seed", range(SETS))
def test_a_comparison_prints_what_a_certificate_says_and_the_checker_accepts(seed: int) -> None:
    """Of every objective and feature: cost, bound, ratio and kind."""
    names = sets_of_features(SETS, 5)[seed]
    run = replace(first_run(names), settings={"preemptive": True})
    instance = run.instance
    if missing(instance, KNOWS):
        with pytest.raises(InputError, match="not known to certificates"):
            certify(run, budget_s=0.0)
        return
    for goal in Objective:
        if instance.stopped_s is not None and goal is Objective.MAKESPAN:
            continue
        for budget_s in (0.0, 0.02):
            ((row,), _) = _bounded({"run": run}, goal, budget_s)
            written = certify(run, goal, bound=row.proven_by)
            said = claimed(written.text)
            assert (written.bound_kind, said["kind"]) == (row.bound_kind, row.bound_kind)
            assert Fraction(str(said["bound"])) == row.proven_by.ticks
            assert Fraction(str(said["cost"])) == row.cost_ticks
            if row.factor is not None:
                assert Fraction(str(said["ratio"])) == written.factor == row.factor
            if not budget_s:
                assert certify(run, goal, budget_s=0.0).text == written.text
                assert certified_bounds(instance, (goal,), BoundEffort(0.0))[goal] == row.proven_by


def test_what_is_certified_is_the_checkers_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that says too much of its multipliers is not believed; nor is one that says too little."""
    jobs = sp.Workload.from_columns(arrival_s=[0, 1, 2], gpus=[1, 2, 1], work=[4, 3, 2])
    instance = Instance(sp.Cluster.parse("1x2"), jobs)
    (fair, _) = certified_and_largest(bounds_of(instance, "flow", BoundEffort(0.0)))
    plain = cascade._plain_bounds

    for factor in (Fraction(1, 3), Fraction(7)):

        def wrong(*given: object, factor: Fraction = factor) -> object:
            for each in plain(*given):  # type: ignore[arg-type]
                yield type(each)(each.record, each.ticks * factor)

        monkeypatch.setattr(cascade, "_plain_bounds", wrong)
        found = list(bounds_of(instance, "flow", BoundEffort(0.0)))
        (bound, _) = certified_and_largest(found)
        assert bound.ticks <= fair.ticks
        assert sum(each.certified for each in found) == 1
        values = {each.kind: each.ticks for each in certified_again(instance, bound)}
        assert values[bound.kind] == bound.ticks


def certified_again(instance: Instance, bound: Bound) -> list[Bound]:
    """The bound by its record alone."""
    run = ran(instance)
    said = claimed(certify(run, bound=bound).text)
    return [Bound(Fraction(str(said["bound"])), bound.kind, bound.holds_for, certified=True)]


def test_a_bound_that_says_more_than_its_record_is_refused() -> None:
    jobs = sp.Workload.from_columns(arrival_s=[0, 0, 0], gpus=1, work=[4, 3, 2])
    run = sp.simulate(jobs, "1x1", "fifo")
    (bound, _) = certified_and_largest(bounds_of(run.instance, "flow", BoundEffort(0.0)))
    more = Bound(
        bound.ticks + Fraction(1, 2**20),
        bound.kind,
        bound.holds_for,
        certified=True,
        record=bound.record,
        of_class=bound.of_class,
    )
    with pytest.raises(VerificationError, match="the bound is"):
        certify(run, bound=more)
    with pytest.raises(InputError, match="bound 'cp-sat': is not certified"):
        certify(run, bound=Bound(bound.ticks, "cp-sat", bound.holds_for, certified=False))


@pytest.mark.parametrize("seed", range(6))
def test_a_bound_does_not_depend_on_who_is_compared(seed: int) -> None:
    """Of one class: ten gangs under fifo alone are bounded as with srtf beside it."""
    rng = np.random.default_rng(seed)
    jobs = sp.Workload.from_columns(
        arrival_s=np.sort(rng.integers(0, 9, 6)),
        gpus=rng.integers(1, 5, 6),
        work=rng.integers(1, 7, 6),
    )
    alone = sp.compare(jobs, "1x4", ["las2d"], budget_s=5.0)
    beside = sp.compare(jobs, "1x4", ["srtf", "las2d", "fifo"], budget_s=5.0)
    assert len({row.proven_by.ticks for row in (*alone.rows, *beside.rows)}) == 1
    assert len({row.holds_for for row in (*alone.rows, *beside.rows)}) == 1


def test_commands_print_the_same_factor(tmp_path: Path) -> None:
    """``compare``, ``certify`` and ``check``, with charges of starts and on GPUs of two types."""
    table = tmp_path / "jobs.csv"
    table.write_text("id,arrival_s,gpus,duration_s\na,0,1,400\nb,10,2,300\nc,20,1,100\nd,30,2,50\n")
    given = ["--cluster", "1x2", "--with", "charges:start_s=7"]
    runner = CliRunner()

    def output(*words: str) -> str:
        found = runner.invoke(app, list(words))
        assert found.exit_code == 0, found.output
        return found.output

    for policy in ("fifo", "srtf", "las2d"):
        directory = tmp_path / policy
        output("simulate", str(table), *given, "--policy", policy, "--output", str(directory))
        for objective in ("flow", "completion", "makespan"):
            goal = ["--objective", objective, "--budget", "0"]
            rows = output("compare", str(table), *given, "--policies", policy, *goal)
            file = tmp_path / f"{policy}-{objective}.jsonl"
            # Who never preempts is compared with schedules that do not either.
            once = ["--non-preemptive"] if policy == "fifo" else []
            written = output("certify", str(directory), "--output", str(file), *once, *goal)
            checked = output("verify", str(file))
            (printed,) = re.findall(rf"{policy} .* ([\d.]+x)", rows)
            for text in (written, checked):
                what = "non-preemptive" if once else "preemptive"
                assert f"{policy} costs at most {printed} the offline optimum of {what} " in text


def test_a_fixed_effort_finds_the_same_on_every_run() -> None:
    rng = np.random.default_rng(3)
    jobs = sp.Workload.from_columns(
        arrival_s=np.sort(rng.integers(0, 50, 40)),
        gpus=rng.integers(1, 5, 40),
        work=rng.integers(1, 30, 40),
    )
    instance = Instance(sp.Cluster.parse("2x4"), jobs)
    effort = BoundEffort.of_size(4_000)
    one, other = (list(bounds_of(instance, "flow", effort)) for _ in range(2))
    assert [(each.ticks, each.kind, each.record) for each in one] == [
        (each.ticks, each.kind, each.record) for each in other
    ]
    assert "interval-lp" in {each.kind for each in one}
    least = max(each.ticks for each in bounds_of(instance, "flow", BoundEffort(0.0)))
    assert least <= max(each.ticks for each in one)
    assert least / TICKS_PER_S > 0


def test_a_number_of_steps_bounds_without_a_solver_and_without_a_clock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same bounds twice, of plans only beside those that need no search, and more steps are never worse."""
    rng = np.random.default_rng(3)
    jobs = sp.Workload.from_columns(
        arrival_s=np.sort(rng.integers(0, 50, 40)),
        gpus=rng.integers(1, 5, 40),
        work=rng.integers(1, 30, 40),
    )
    instance = Instance(sp.Cluster.parse("2x4"), jobs)

    def none(*args: object) -> None:
        raise AssertionError("no solver is asked")

    monkeypatch.setattr(cascade, "interval_prices", none)
    monkeypatch.setattr(cascade, "window_bounds", none)
    effort = BoundEffort.of_plans(0.2)
    assert effort.repeatable
    one, other = (list(bounds_of(instance, "flow", effort)) for _ in range(2))
    assert [(each.ticks, each.kind, each.record) for each in one] == [
        (each.ticks, each.kind, each.record) for each in other
    ]
    best, _ = certified_and_largest(one)
    assert best.kind in {"priced-plans", "configurations"}
    least, _ = certified_and_largest(bounds_of(instance, "flow", BoundEffort(0.0)))
    assert least.ticks < best.ticks
    more, _ = certified_and_largest(bounds_of(instance, "flow", BoundEffort.of_plans(1.0)))
    assert more.ticks >= best.ticks
