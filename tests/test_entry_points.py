"""What installed distributions offer is found by name; what is broken hurts who asks for it alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from shadowprice.analysis.simulate import simulate
from shadowprice.cli.app import app
from shadowprice.errors import InputError
from shadowprice.instances.allocation_problem import AllocationProblem
from shadowprice.instances.traces import BrokenImporter, load_trace
from shadowprice.instances.workload import Workload
from shadowprice.solvers.gavel.allocate import allocate
from shadowprice.solvers.gavel.gavel import Gavel
from shadowprice.solvers.registry import policy
from support.own_code import POLICIES, TRACE, install, write_distribution

MODEL = """
from shadowprice.models import gavel
from shadowprice.models.tracing import traced


def capped(shape):
    m = gavel.max_min(shape)
    with traced():

        @m.Constraint(m.M)
        def cap(m, i):
            return sum(m.x[i, j] for j in m.J) <= 0.25

    return m
"""
IMPORTER = '''
"""Lines of a queue: gangs and run times."""

from shadowprice.instances.traces import Imported
from shadowprice.instances.workload import Workload


def sniff(first_line, path):
    return first_line == "# queue"


def load(path, throughputs):
    rows = [line.split() for line in path.read_text().splitlines()[1:]]
    gpus, work = zip(*(map(float, row) for row in rows))
    jobs = Workload.from_columns(arrival_s=[0.0] * len(rows), gpus=gpus, work=work, source=str(path))
    return Imported(jobs)
'''
GROUPS = {
    "shadowprice.policies": {
        "tiny-widest": "tiny_policies:Widest",
        "tiny-lost": "tiny_policies:Lost",
        "tiny-none": "no_such_package.policies:Own",
        "tiny-broken": "tiny_broken:Own",
        "tiny-list": "tiny_policies:TRACE",
        "fifo": "tiny_policies:Widest",
    },
    "shadowprice.models": {"tiny-capped": "tiny_models:capped"},
    "shadowprice.traces": {"tiny-queue": "tiny_traces", "tiny-half": "tiny_half"},
}
MODULES = {
    "tiny_policies": POLICIES + "\nTRACE = 3\n",
    "tiny_broken": "x = 1\nx = x / 0\n",
    "tiny_models": MODEL,
    "tiny_traces": IMPORTER,
    "tiny_half": "def sniff(first_line, path): ...\n",
}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_distribution(tmp_path / "site", MODULES, GROUPS)
    install(monkeypatch, tmp_path / "site")
    return tmp_path / "site"


def call(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def test_a_policy_is_found_by_its_name_with_parameters(site: Path) -> None:
    found = policy("tiny-widest:window_s=6")
    assert (found.name, found.window_s) == ("widest", 6.0)  # type: ignore[attr-defined]
    jobs = Workload.from_columns(arrival_s=[0, 0], gpus=[1, 1], work=[10, 1])
    assert simulate(jobs, "1x1", "tiny-widest").policy == "tiny-widest"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("tiny-lost", r"tiny 1\.0 \(tiny_policies:Lost\): .*tiny_policies\.py has no 'Lost'"),
        ("tiny-none", r"tiny 1\.0 .*ModuleNotFoundError: No module named 'no_such_package'"),
        ("tiny-broken", r"tiny 1\.0 .*tiny_broken\.py, line 2: ZeroDivisionError: division by"),
        ("tiny-list", r"has no name, knows, preemptive, decide, expected a policy"),
        ("tiny-nowhere", r"did you mean .*'tiny-widest'.*, or FILE\.py:NAME"),
    ],
)
def test_a_broken_offer_is_one_sentence_for_who_asks(name: str, message: str, site: Path) -> None:
    with pytest.raises(InputError, match=message) as caught:
        policy(name)
    assert "\n" not in str(caught.value)


def test_listing_has_all_that_work_and_a_line_for_each_that_does_not(site: Path) -> None:
    done = call("policies", "--json")
    assert done.exit_code == 0
    listed = {row["policy"]: row for row in json.loads(done.stdout)}
    assert listed["tiny-widest"]["from"] == "tiny 1.0"
    assert listed["tiny-widest"]["source"] == ""
    assert listed["fifo"]["from"] == listed["hadare"]["from"] == "shadowprice"
    assert {name for name in listed if name.startswith("tiny")} == {"tiny-widest"}
    lines = done.stderr.splitlines()
    assert [line.split()[1].strip("'") for line in lines] == [
        "fifo",
        "tiny-broken",
        "tiny-list",
        "tiny-lost",
        "tiny-none",
    ]
    assert "hidden by ours of that name" in lines[0]
    table = call("policies", "--all").stdout
    assert "from tiny 1.0" in table
    assert "models of installed packages: tiny-capped (from tiny 1.0)" in " ".join(table.split())


def test_formats_are_listed_and_recognised(site: Path, tmp_path: Path) -> None:
    done = call("trace", "--json")
    listed = {row["format"]: row for row in json.loads(done.stdout)}
    assert listed["tiny-queue"] == {
        "format": "tiny-queue",
        "is": "Lines of a queue: gangs and run times.",
        "from": "tiny 1.0",
    }
    assert listed["philly"]["from"] == "shadowprice"
    assert "tiny_half): has no load, expected sniff(first_line, path)" in done.stderr
    queue = tmp_path / "queue.txt"
    queue.write_text("# queue\n1 30\n2 40\n")
    with pytest.warns(BrokenImporter, match="tiny_half"):
        imported = load_trace(queue)
    assert imported.workload.gpus.tolist() == [1, 2]
    assert len(load_trace(queue, format="tiny-queue").workload) == 2
    with pytest.raises(InputError, match="has no load"):
        load_trace(queue, format="tiny-half")
    with pytest.raises(InputError, match=r"expected one of the \d+ that `shadowprice trace` lists"):
        load_trace(queue, format="none")


def test_a_broken_importer_hurts_no_other_trace(site: Path, tmp_path: Path) -> None:
    trace = tmp_path / "jobs.csv"
    trace.write_text(TRACE)
    done = call("simulate", trace, "--cluster", "1x2", "--policy", "fifo", "--json")
    assert done.exit_code == 0, done.exception
    assert json.loads(done.stdout)["jobs"] == 5
    assert "tiny_half" in done.stderr
    assert len(done.stderr.split("\n\n")[0].splitlines()) == 1


def test_a_model_is_found_by_its_name(site: Path) -> None:
    problem = AllocationProblem.from_columns(
        gpu_types=["a", "b"], capacity=[2, 2], throughput=[[4.0, 1.0], [4.0, 2.0]]
    )
    free = allocate(problem, "max_min_fairness:aware=true")
    capped = allocate(problem, "max_min_fairness:aware=true", model="tiny-capped")
    assert free.alone[:, 0].max() > 0.5
    assert capped.alone[:, 0].max() <= 0.25 + 1e-6
    assert Gavel(model="tiny-capped").policy() != Gavel().policy()
    with pytest.raises(InputError, match=r"model 'none': expected FILE\.py:NAME or one of tiny-c"):
        allocate(problem, "max_min_fairness:aware=true", model="none")


def test_two_distributions_that_offer_one_name(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer = {"shadowprice.policies": {"tiny-widest": "tiny_policies:WIDEST"}}
    write_distribution(tmp_path / "other", {}, offer, name="twin")
    install(monkeypatch, tmp_path / "other")
    with pytest.raises(InputError, match=r"'tiny-widest': offered by tiny 1\.0 and twin 1\.0"):
        policy("tiny-widest")
    done = call("policies", "--json")
    assert done.exit_code == 0
    assert done.stderr.count("offered by tiny 1.0 and twin 1.0") == 2
