"""Models of one's own on the command line: they take effect, and what is wrong with them is one line."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from shadowprice.analysis.simulate import simulate
from shadowprice.cli.app import app
from shadowprice.errors import InputError, SolverError
from shadowprice.instances.workload import Workload
from shadowprice.solvers.gavel.gavel import Gavel
from shadowprice.solvers.gavel.policies.max_min_fairness import MaxMinFairness
from shadowprice.user_code import load
from support.paths import ROOT

MODEL = '''
import pyomo.environ as pyo

from shadowprice.models import gavel
from shadowprice.models.tracing import traced


def capped(shape):
    """Nobody gets more than half of a GPU's time on type a."""
    m = gavel.max_min(shape)
    with traced():

        @m.Constraint(m.M)
        def cap(m, i):
            return m.x[i, "a"] <= 0.5

    return m


def level(shape):
    m = gavel.max_min(shape)
    m.limit = pyo.Constraint(expr=m.t <= 0.01)
    return m


def hungry(shape):
    m = gavel.max_min(shape)
    with traced():
        m.quota = pyo.Param(m.M, mutable=True)

        @m.Constraint(m.M)
        def within(m, i):
            return m.x[i, "a"] <= m.quota[i]

    return m


def first(shape):
    """The first job has nine tenths of all time, at least."""
    m = gavel.max_min(shape)
    if len(shape.jobs) > 1:
        m.keep = pyo.Constraint(expr=m.x["0", shape.types[0]] >= 0.9)
    return m


number = 3
'''


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(MODEL)
    return path


@pytest.fixture
def problem(tmp_path: Path) -> Path:
    path = tmp_path / "problem.json"
    jobs = [{"tput": [4.0, 1.0]}, {"tput": [3.0, 2.0]}, {"tput": [1.0, 1.0]}]
    path.write_text(json.dumps({"cluster": {"a": 2, "b": 2}, "jobs": jobs}))
    return path


def allocated(*arguments: str | Path) -> Any:
    result = CliRunner().invoke(app, ["allocate", *map(str, arguments), "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_allocate_solves_the_model_it_is_given(mine: Path, problem: Path) -> None:
    free = allocated("max_min_fairness:aware=true", problem)
    assert max(shares[0] for _, shares in free["allocation"]) > 0.5
    capped = allocated("max_min_fairness:aware=true", problem, "--model", f"{mine}:capped")
    assert max(shares[0] for _, shares in capped["allocation"]) <= 0.5 + 1e-9
    level = allocated(
        "max_min_fairness:aware=true", problem, "--model", f"{mine}:level", "--explain"
    )
    assert level["objective"] == pytest.approx(0.01)
    assert "row limit, price 1" in level["explanation"][0]


def test_data_of_ones_own_are_found_by_name(mine: Path, problem: Path) -> None:
    given = json.loads(problem.read_text())
    for k, job in enumerate(given["jobs"]):
        job["data"] = {"quota": 0.1 * (k + 1)}
    problem.write_text(json.dumps(given))
    found = allocated("max_min_fairness:aware=true", problem, "--model", f"{mine}:hungry")
    for jobs, shares in found["allocation"]:
        assert shares[0] <= 0.1 * (jobs + 1) + 1e-9


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("mine.py:nothing", "mine.py has no 'nothing'; it defines capped, level, hungry, first"),
        ("mine.py:number", "expected a function that builds a model"),
        ("other.py:capped", "other.py: No such file or directory"),
        ("mine.py:hungry", "Param 'quota' has no values"),
        ("broken.py:build", "broken.py, line 2: "),
        ("raises.py:build", "raises.py, line 2: ZeroDivisionError: division by zero"),
        ("mine.py", "expected FILE.py:NAME"),
    ],
)
def test_what_is_wrong_is_one_line(
    mine: Path, problem: Path, model: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(mine.parent)
    Path("broken.py").write_text("x = 1\ndef build(:\n")
    Path("raises.py").write_text("x = 1\ny = x / 0\n")
    arguments = ["allocate", "max_min_fairness:aware=true", str(problem), "--model", model]
    result = CliRunner().invoke(app, arguments)
    assert isinstance(result.exception, InputError)
    assert said in str(result.exception)
    assert "\n" not in str(result.exception)


def test_simulate_schedules_by_the_model_it_is_given(mine: Path) -> None:
    """Two jobs of two hours take turns on a GPU; a model that keeps it for the first ends that first."""
    jobs = Workload.from_columns(id=["0", "1"], arrival_s=[0, 0], gpus=[1, 1], work=[7200, 7200])
    fair = simulate(jobs, "1x1", "gavel:max_min_fairness:aware=true").end_s
    kept = simulate(jobs, "1x1", f"gavel:model={mine}:first").end_s
    assert fair.min() > 1.8 * 7200
    assert kept[0] < 1.2 * 7200
    assert kept[1] == pytest.approx(2 * 7200)


def test_simulate_names_a_model_that_asks_for_too_much(mine: Path) -> None:
    jobs = Workload.from_columns(id=["0"], arrival_s=[0], gpus=[1], work=[7200])
    with pytest.raises(InputError, match="Param 'quota' has no values"):
        simulate(jobs, "1x1", f"gavel:model={mine}:hungry")


def test_python_takes_allocation_policies_as_objects(mine: Path) -> None:
    jobs = Workload.from_columns(id=["0", "1"], arrival_s=[0, 0], gpus=[1, 1], work=[7200, 7200])
    policy = MaxMinFairness("mine", model=load(f"{mine}:first", "model"))
    kept = simulate(jobs, "1x1", Gavel(allocation=policy)).end_s
    assert kept[0] < 1.2 * 7200


def test_the_page_on_formulations_does_what_it_says(
    tmp_path: Path, problem: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its file, and its two commands, with a user who has a cap."""
    page = (ROOT / "docs" / "formulations.md").read_text("utf-8")
    blocks = re.findall(r"```(python|console)\n(.*?)```", page, re.S)[1:]
    assert [language for language, _ in blocks[:2]] == ["python", "console"]
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(blocks[0][1])
    given = json.loads(problem.read_text())
    for job in given["jobs"]:
        job["entity"] = "ada"
    given["data"] = {"user_cap": {"ada": 1.5}}
    problem.write_text(json.dumps(given))
    allocate, run = (line.split()[2:] for line in blocks[1][1].strip().splitlines()[-2:])
    found = allocated(*(argument for argument in allocate[1:]))
    assert sum(sum(shares) for _, shares in found["allocation"]) == pytest.approx(1.5)
    assert any("row within_cap[ada]" in sentence for sentence in found["explanation"])
    Path("jobs.csv").write_text("id,gpus,submit,duration\n0,1,0,600\n")
    result = CliRunner().invoke(app, run)
    assert result.exit_code == 0, result.output


WRONG = """
import pyomo.environ as pyo

from shadowprice.models import gavel


def raises(shape):
    raise KeyError("speed")


def nothing(shape):
    return None


def number(shape):
    return 3


def binaries(shape):
    m = gavel.max_min(shape)
    m.pick = pyo.Var(m.M, domain=pyo.Binary)
    m.picked = pyo.Constraint(m.M, rule=lambda m, i: m.pick[i] <= sum(m.x[i, j] for j in m.J))
    return m
"""


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("raises", "model raises: .*wrong.py, line 8: KeyError: 'speed'"),
        ("nothing", "model nothing: returned nothing, expected a ConcreteModel of Pyomo"),
        ("number", "model number: returned int, expected a ConcreteModel of Pyomo"),
        ("binaries", "constraint 'fair' has no price, .* with integer or binary variables"),
    ],
)
def test_a_wrong_model_is_one_line(tmp_path: Path, problem: Path, name: str, message: str) -> None:
    path = tmp_path / "wrong.py"
    path.write_text(WRONG)
    asked = ["allocate", "max_min_fairness", str(problem), "--model", f"{path}:{name}"]
    result = CliRunner().invoke(app, asked)
    assert isinstance(result.exception, (InputError, SolverError))
    assert re.search(message, str(result.exception))
    assert "\n" not in str(result.exception)
