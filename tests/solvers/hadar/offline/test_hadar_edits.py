"""Edits of Hadar's model take effect in its offline optimum, or are refused in a sentence.

The oracle is HiGHS on the file that Pyomo's own LP writer makes of the edited model, built without
tracing: no compiled rows, no column generation, no gate.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import highspy
import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shadowprice.errors import InputError, SolverError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.instance import Instance
from shadowprice.instances.utility import UtilityTable, effective_throughput, minus_completion
from shadowprice.instances.workload import Workload
from shadowprice.models import hadar as hadar_model
from shadowprice.models.hadar import time_indexed
from shadowprice.models.round_jobs import RoundJobs
from shadowprice.solvers.hadar.offline.branch_and_price import (
    Pricing,
    Search,
    Searched,
    SearchNode,
)
from shadowprice.solvers.hadar.offline.linking import LinkingRows
from shadowprice.solvers.hadar.offline.master import Master
from shadowprice.solvers.hadar.offline.optimum import OfflineOptimum, optimum
from shadowprice.solvers.hadar.offline.pricing import states_of
from shadowprice.solvers.hadar.offline.programme import read_model
from shadowprice.solvers.programs.compile import SolverWarning
from shadowprice.solvers.programs.solution import Infeasible
from support.hadar_plans import ROUND_S, check, make

Edit = Callable[[Any, RoundJobs], None]

# Edits, each with numbers that choose where. All but the last kinds only add rows.


def due(a: int, b: int) -> Edit:
    """A deadline of a job, as a row."""

    def edit(m: Any, jobs: RoundJobs) -> None:
        m.due = pyo.Constraint(expr=m.z[jobs.id[a % jobs.jobs], b % jobs.rounds] >= 1)

    return edit


def due_by_bound(a: int, b: int) -> Edit:
    """A deadline of a job, as a bound of a variable."""

    def edit(m: Any, jobs: RoundJobs) -> None:
        m.z[jobs.id[a % jobs.jobs], b % jobs.rounds].setlb(1)

    return edit


def few_of_a_type(a: int, b: int) -> Edit:
    """A cap on the GPUs of one type in some rounds."""

    def edit(m: Any, jobs: RoundJobs) -> None:
        h, last = jobs.gpu_types[a % jobs.types], b % jobs.rounds
        m.quota = pyo.Param(initialize=b % 3, mutable=True)

        @m.Constraint(pyo.RangeSet(0, last))
        def few(m: Any, t: int) -> Any:
            return sum(m.w[j, h, t] for j in m.J) <= m.quota

    return edit


def few_jobs(a: int, b: int) -> Edit:
    """A cap on the jobs that run in a round."""

    def edit(m: Any, jobs: RoundJobs) -> None:
        @m.Constraint(m.T)
        def most_jobs(m: Any, t: int) -> Any:
            return sum(m.y[j, speed, t] for j, speed in m.L) <= 1 + a % 2

    return edit


def rationed(a: int, b: int) -> Edit:
    """A cap on the rounds of two jobs together, weighted."""

    def edit(m: Any, jobs: RoundJobs) -> None:
        one, other = jobs.id[a % jobs.jobs], jobs.id[b % jobs.jobs]
        runs = sum((1 + (j == one)) * m.y[j, speed, t] for j, speed, t in m.y if j in (one, other))
        m.ration = pyo.Constraint(expr=runs <= 1 + (a + b) % 4)

    return edit


def many_complete(a: int, b: int) -> Edit:
    """A floor of the jobs that complete, and a ceiling of the GPUs of one of them."""

    def edit(m: Any, jobs: RoundJobs) -> None:
        last = jobs.rounds - 1
        m.many = pyo.Constraint(expr=sum(m.z[j, last] for j in m.J) >= a % (jobs.jobs + 1))
        m.share = pyo.Constraint(
            expr=(None, m.w[jobs.id[b % jobs.jobs], jobs.gpu_types[0], last], 1)
        )

    return edit


def forbidden(a: int, b: int) -> Edit:
    """A round in which a job may not run."""

    def edit(m: Any, jobs: RoundJobs) -> None:
        for j, speed, t in m.y:
            if (j, t) == (jobs.id[a % jobs.jobs], b % jobs.rounds):
                m.y[j, speed, t].setub(0)

    return edit


def tied(a: int, b: int) -> Edit:
    """Two jobs that run in a round together or not at all: no price does that."""

    def edit(m: Any, jobs: RoundJobs) -> None:
        runs = [sum(m.y[j, speed, b % jobs.rounds] for speed in m.speeds[j]) for j in jobs.id[:2]]
        m.tie = pyo.Constraint(expr=runs[0] == runs[1])

    return edit


def busy(a: int, b: int) -> Edit:
    """A floor of the GPUs that are held in a round."""

    def edit(m: Any, jobs: RoundJobs) -> None:
        held = sum(m.w[j, h, b % jobs.rounds] for j in m.J for h in m.K)
        m.busy = pyo.Constraint(expr=held >= 1 + a % 2)

    return edit


def other_capacity(a: int, b: int) -> Edit:
    """Fewer GPUs of a type in a round than there are, in the place of the row that said so."""

    def edit(m: Any, jobs: RoundJobs) -> None:
        h, t = jobs.gpu_types[a % jobs.types], b % jobs.rounds
        m.room[h, t].deactivate()
        m.less = pyo.Constraint(expr=2 * sum(m.w[j, h, t] for j in m.J) <= 1 + 2 * (b % 2))

    return edit


def other_objective(a: int, b: int) -> Edit:
    """Completed jobs in the place of their utilities."""

    def edit(m: Any, jobs: RoundJobs) -> None:
        m.total.deactivate()
        done = sum((1 + (a + k) % 3) * m.z[j, t] for k, j in enumerate(m.J) for t in m.T)
        m.most_done = pyo.Objective(expr=done, sense=pyo.maximize)

    return edit


def overtime(a: int, b: int) -> Edit:
    """A variable more: GPUs held beyond a quota, at a price."""

    def edit(m: Any, jobs: RoundJobs) -> None:
        m.beyond = pyo.Var(m.T, bounds=(0, None))
        m.total.deactivate()
        price = 0.01 * (1 + a % 5) * float(jobs.utility.values.max())
        m.net = pyo.Objective(
            expr=m.total.expr - price * sum(m.beyond[t] for t in m.T), sense=pyo.maximize
        )

        @m.Constraint(m.T)
        def within(m: Any, t: int) -> Any:
            return sum(m.w[j, h, t] for j in m.J for h in m.K) - 1 <= m.beyond[t]

    return edit


PRICED = [due, due_by_bound, few_of_a_type, few_jobs, rationed, many_complete, forbidden]
OBJECTIVES = {other_objective: overtime}
OTHERS = [tied, busy, other_capacity, other_objective, overtime]


def builder(edits: list[Edit]) -> Callable[[RoundJobs], pyo.ConcreteModel]:
    def build(jobs: RoundJobs) -> pyo.ConcreteModel:
        model: Any = time_indexed(jobs)
        for edit in edits:
            edit(model, jobs)
        return model

    return build


def by_lp_file(model: pyo.ConcreteModel, folder: Path) -> float | None:
    """Optimum of the model's LP file; None if it has no point."""
    path = folder / "model.lp"
    model.write(str(path), io_options={"symbolic_solver_labels": False})
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("presolve", "off")  # Its presolve has been wrong.
    highs.setOptionValue("mip_rel_gap", 0.0)
    highs.readModel(str(path))
    highs.run()
    if highs.getModelStatus() == highspy.HighsModelStatus.kInfeasible:
        return None
    assert highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return float(highs.getInfo().objective_function_value)


def solved(instance: Instance, table: UtilityTable, edits: list[Edit]) -> OfflineOptimum | None:
    """The offline optimum of the edited model; None if it is said to be infeasible."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SolverWarning)
        try:
            return optimum(instance, table, model=builder(edits))
        except Infeasible:
            return None


def drawn(kinds: list[Callable[[int, int], Edit]]) -> st.SearchStrategy[list[Edit]]:
    number = st.integers(0, 7)
    one = st.tuples(st.sampled_from(kinds), number, number)
    # One edit of a kind, and one of the objective.
    some = st.lists(
        one, min_size=1, max_size=3, unique_by=lambda each: OBJECTIVES.get(each[0], each[0])
    )
    return some.map(lambda chosen: [kind(a, b) for kind, a, b in chosen])


def same(instance: Instance, table: UtilityTable, edits: list[Edit], folder: Path) -> None:
    with mock.patch("shadowprice.models.hadar.traced", nullcontext):
        written = builder(edits)(RoundJobs.of(instance, table))
    expected = by_lp_file(written, folder)
    found = solved(instance, table, edits)
    assert (found is None) == (expected is None)
    if found is not None and expected is not None:
        assert found.proven
        assert found.value == pytest.approx(expected, rel=1e-6, abs=1e-6)
        assert found.bound == pytest.approx(expected, rel=1e-6, abs=1e-6)


@settings(max_examples=4, deadline=None)
@given(st.integers(0, 10_000), drawn(PRICED), st.booleans())
def test_rows_that_are_priced_have_the_optimum_of_the_lp_file(tmp_path_factory, seed, edits, late):
    instance = make(seed, 3, 4, ("1x2:a,1x1:b", "1x3:a,1x2:b")[seed % 2])
    table = (minus_completion if late else effective_throughput)(instance, ROUND_S, 4)
    same(instance, table, edits, tmp_path_factory.mktemp("lp"))


@settings(max_examples=4, deadline=None)
@given(st.integers(0, 10_000), drawn([*PRICED, *OTHERS]))
def test_any_edits_have_the_optimum_of_the_lp_file(tmp_path_factory, seed, edits):
    instance = make(seed, 3, 3, ("1x2:a,1x1:b", "1x3:a,1x2:b")[seed % 2])
    table = effective_throughput(instance, ROUND_S, 3)
    same(instance, table, edits, tmp_path_factory.mktemp("lp"))


@pytest.mark.parametrize("edit", PRICED, ids=lambda edit: edit.__name__)
def test_rows_that_can_be_priced_do_not_need_the_compiled_rows_solved(edit):
    instance = make(3, 3, 4, "1x3:a,1x2:b")
    jobs = RoundJobs.of(instance, effective_throughput(instance, ROUND_S, 4))
    read = read_model(builder([edit(0, 3)]), jobs)
    assert read.known is not None
    assert read.edits
    assert not read.unpriced


@pytest.mark.parametrize("edit", OTHERS, ids=lambda edit: edit.__name__)
def test_what_cannot_be_priced_is_solved_as_rows_with_a_warning_that_says_why(edit):
    instance = make(3, 3, 3, "1x3:a,1x2:b")
    table = effective_throughput(instance, ROUND_S, 3)
    said = {
        tied: "it has more constraints tie",
        busy: "it has more constraints busy",
        other_capacity: r"it has no constraints room\[a,0\] as they were",
        other_objective: "its objective is another",
        overtime: r"it has new variables, beyond\[0\], \.\.\.",
    }
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SolverWarning)
        found = optimum(instance, table, model=builder([edit(0, 0)]))
    (told,) = [str(each.message) for each in caught if "is not used" in str(each.message)]
    assert re.search(said[edit], told)
    assert found.proven
    assert found.edits


def test_the_model_in_the_file_is_what_column_generation_knows():
    for seed, cluster in enumerate(("1x2:a,1x1:b", "1x3:a,1x2:b,2x2:c", "2x2:a")):
        jobs = RoundJobs.of(
            instance := make(seed, 4, 5, cluster), effective_throughput(instance, ROUND_S, 5)
        )
        for build in (time_indexed, lambda jobs: time_indexed(jobs)):
            read = read_model(build, jobs)
            assert read.edits == ()
            assert read.known is not None
            assert read.compiled.traced


def test_an_edited_copy_of_the_file_takes_effect(tmp_path):
    """Another line in a copy of the file, which is given as the model."""
    source = Path(hadar_model.__file__).read_text(encoding="utf-8")
    line = "            return sum(m.w[j, h, t] for j in m.J) <= m.c[h]\n"
    assert line in source
    edited = source.replace(line, line.replace("m.c[h]", "m.c[h] - 1"))
    namespace: dict[str, Any] = {"__name__": "shadowprice.models.hadar"}
    exec(compile(edited, str(tmp_path / "hadar.py"), "exec"), namespace)
    workload = Workload.from_columns(
        arrival_s=[0.0, 0.0],
        gpus=[1, 1],
        work=[ROUND_S, ROUND_S],
        throughput=[[1.0], [1.0]],
        gpu_types=("a",),
    )
    instance = Instance(Cluster.parse("1x2:a"), workload)
    table = minus_completion(instance, ROUND_S, 3)
    assert optimum(instance, table).value == 3 + 3
    found = optimum(instance, table, model=namespace["time_indexed"])
    assert found.value == 3 + 2
    assert found.proven


# What is not of the model is imported once; each fork reads the file as it is by then.
SCRIPT = """
import os, sys
from pathlib import Path

import highspy
import pyomo.environ
import shadowprice as sp
import shadowprice.solvers.programs.compile
from shadowprice.instances.utility import minus_completion

jobs = sp.Workload.from_columns(arrival_s=[0.0] * 4, gpus=[1] * 4, work=[128.0] * 4)
instance = sp.Instance(sp.Cluster.parse("1x2"), jobs)
table = minus_completion(instance, 64.0, 3)
assert "shadowprice.models.hadar" not in sys.modules
for text in sys.argv[1:]:
    file = Path(sp.__file__).parent / "models" / "hadar.py"
    file.write_bytes(Path(text).read_bytes())
    if not os.fork():
        os.dup2(os.open(text + ".err", os.O_WRONLY | os.O_CREAT, 0o600), 2)
        from shadowprice.solvers.hadar.offline.optimum import optimum
        found = optimum(instance, table)
        Path(text + ".out").write_text(f"{found.value};{found.bound:.6g};{found.edits}")
        sys.exit(0)
    assert os.wait()[1] == 0
"""

EDITS_OF_THE_FILE = {
    "published": ("# no edit", "# no edit", "4.0;4;"),
    "narrower": (
        "for j in m.J) <= m.c[h]",
        "for j in m.J) <= 1",
        "2.0;2;the file models/hadar.py was edited",
    ),
    "wider": (
        "m.z[j, t] <= done",
        "m.z[j, t] <= 2 * done",
        "10.0;10;the file models/hadar.py was edited",
    ),
}


def test_an_edit_of_the_file_itself_takes_effect(tmp_path):
    """As a researcher would: another line in the file, no other call; also one that allows more."""
    copy = tmp_path / "shadowprice"
    home = Path(hadar_model.__file__).parents[1]
    # Links, to what is compiled already as well; only the file itself is another.
    shutil.copytree(home, copy, copy_function=os.symlink)
    file = copy / "models" / "hadar.py"
    source = file.read_text(encoding="utf-8") + "# no edit\n"
    file.unlink()
    for name, (line, edited, _) in EDITS_OF_THE_FILE.items():
        assert line in source
        (tmp_path / name).write_text(source.replace(line, edited), encoding="utf-8")
    subprocess.run(
        [sys.executable, "-c", SCRIPT, *(tmp_path / name for name in EDITS_OF_THE_FILE)],
        cwd=tmp_path,
        # Nothing that was compiled of the file as it was a moment ago.
        env={**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
        check=True,
    )
    for name, (_, _, printed) in EDITS_OF_THE_FILE.items():
        assert (tmp_path / f"{name}.out").read_text() == printed
        warned = "column generation is not used" in (tmp_path / f"{name}.err").read_text()
        assert warned == ("edited" in printed)


def test_the_plan_of_an_edited_model_is_a_plan_and_holds_the_edit():
    instance = make(1, 3, 4, "1x3:a,1x2:b")
    table = effective_throughput(instance, ROUND_S, 4)
    edits = (few_of_a_type(0, 3), few_jobs(0, 0))
    _, fewer = edited = [optimum(instance, table, model=builder([edit])) for edit in edits]
    for found in edited:
        assert check(instance, table, found.plan) == pytest.approx(found.utility)
        assert found.utility == pytest.approx(found.value)
    running = [t for runs in optimum(instance, table).plan.runs for t, _ in runs]
    alone = [t for runs in fewer.plan.runs for t, _ in runs]
    assert len(set(running)) < len(running)
    assert len(set(alone)) == len(alone)


def test_a_bound_without_time_holds_for_the_edited_model():
    instance = make(1, 4, 4, "1x3:a,1x1:b")
    table = minus_completion(instance, ROUND_S, 4)
    free = optimum(instance, table)
    for edit in (few_of_a_type(0, 3), rationed(0, 1)):
        hasty = optimum(instance, table, model=builder([edit]), time_limit_s=0.0)
        sure = optimum(instance, table, model=builder([edit]))
        assert sure.proven
        assert np.isfinite(hasty.bound)
        assert hasty.value <= sure.value + 1e-9 <= hasty.bound + 2e-9
        # The row costs something, and the bound of the root knows it.
        assert sure.relaxation < free.relaxation - 1e-6


def test_a_plan_that_does_not_hold_the_rows_is_refused(monkeypatch):
    """Whatever proposed it."""
    instance = make(2, 3, 4, "1x3:a,1x2:b")
    table = minus_completion(instance, ROUND_S, 4)
    honest = Search.run

    def wrong(self: Search) -> Searched:
        found = honest(self)
        job, speeds = next(iter(found.schedules.items()))
        return replace(found, schedules={**found.schedules, job: speeds[-1:]})

    monkeypatch.setattr(Search, "run", wrong)
    with pytest.raises(SolverError, match="does not hold its rows"):
        optimum(instance, table)


def test_what_is_no_plan_is_refused_in_a_sentence():
    instance = make(1, 2, 3, "1x2:a,1x1:b")
    table = effective_throughput(instance, ROUND_S, 3)

    def without_w(jobs: RoundJobs) -> Any:
        m: Any = pyo.ConcreteModel(name="bare")
        m.z = pyo.Var(domain=pyo.Binary)
        m.total = pyo.Objective(expr=m.z, sense=pyo.maximize)
        return m

    def more_gpus(jobs: RoundJobs) -> Any:
        gpus = zip(jobs.gpu_types, jobs.capacity.tolist(), strict=True)
        return time_indexed(jobs, pools={name: (name, 100 * count) for name, count in gpus})

    def in_parts(jobs: RoundJobs) -> Any:
        m: Any = time_indexed(jobs)
        for index in m.w:
            m.w[index].domain = pyo.NonNegativeReals
        m.whole = pyo.Constraint(expr=sum(m.w[j, h, t] for j, h, t in m.w if h == "a") == 0.5)
        return m

    def squared(jobs: RoundJobs) -> Any:
        m: Any = time_indexed(jobs)
        m.odd = pyo.Constraint(expr=m.w["0", "a", 0] * m.w["1", "a", 0] <= 1)
        return m

    refusals = {
        without_w: "model 'bare': has no variable w over jobs, GPU types and rounds",
        in_parts: r"w\['\d',a,\d\] is 0\.5 in its optimum, expected whole GPUs",
        squared: "cannot be translated",
    }
    for model, message in refusals.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SolverWarning)
            with pytest.raises(SolverError, match=message):
                optimum(instance, table, model=model)
    with pytest.raises(InputError, match="got int, expected a Pyomo ConcreteModel"):
        optimum(instance, table, model=lambda jobs: 3)  # type: ignore[arg-type,return-value]
    many = make(5, 4, 3, "1x2:a")
    with (
        pytest.warns(SolverWarning, match="room"),
        pytest.raises(SolverError, match=r"GPUs of type a in round \d, expected at most 2"),
    ):
        optimum(many, minus_completion(many, ROUND_S, 3), model=more_gpus)


def test_runs_after_a_completion_count_where_a_row_asks_for_them():
    """Schedules that end with their completion would not do: such a row is not priced."""
    workload = Workload.from_columns(
        arrival_s=[0.0, 0.0],
        gpus=[1, 1],
        work=[2 * ROUND_S, ROUND_S],
        throughput=[[1.0], [1.0]],
        gpu_types=("a",),
    )
    instance = Instance(Cluster.parse("1x2:a"), workload)
    table = minus_completion(instance, ROUND_S, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SolverWarning)
        found = optimum(instance, table, model=builder([tied(0, 1)]))
    # The second job is complete after round 0 and runs in round 1 all the same.
    assert found.value == optimum(instance, table).value == 3 + 4
    assert 1 in [t for t, _ in found.plan.runs[1]]


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10_000), drawn(PRICED), st.integers(0, 1000))
def test_prices_of_the_rows_bound_the_optimum_whatever_they_are(tmp_path_factory, seed, edits, at):
    """Weak duality: prices of no solver, of any size, for rows and capacity."""
    instance = make(seed, 3, 3, ("1x2:a,1x1:b", "1x3:a,1x2:b")[seed % 2])
    table = minus_completion(instance, ROUND_S, 3)
    jobs = RoundJobs.of(instance, table)
    with mock.patch("shadowprice.models.hadar.traced", nullcontext):
        best = by_lp_file(builder(edits)(jobs), tmp_path_factory.mktemp("lp"))
    read = read_model(builder(edits), jobs)
    assert read.known is not None
    linking = LinkingRows(read.known, read.more)
    master = Master(jobs, linking)
    pricing = Pricing(master, [states_of(jobs, job) for job in range(jobs.jobs)])
    random = np.random.default_rng(at)
    relaxed = replace(
        master.relax(np.ones(len(master.job), dtype=bool), 1.0),
        price=random.exponential(
            random.choice([0.1, 2.0]), (3, len(master.capacity_rows.capacity))
        ),
        linking=linking.valid(random.normal(0.0, random.choice([0.5, 4.0]), len(linking))),
    )
    bound, _, _ = pricing.price(SearchNode.root(linking.allowed), relaxed)
    if best is not None:
        assert bound >= best - 1e-7
