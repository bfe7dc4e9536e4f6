"""``shadowprice models``: the list is made from the files, and what is printed is the compiled model."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import highspy
import pytest
import typer
from typer.testing import CliRunner, Result

from shadowprice.cli.models import models_command
from shadowprice.cli.panels import shown
from shadowprice.errors import InputError, ShadowpriceError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.instance import Instance
from shadowprice.instances.traces import load_trace
from shadowprice.solvers.programs.catalogue import OF_INSTANCE, model_file, model_files
from shadowprice.solvers.programs.compile import compile_model
from shadowprice.solvers.programs.model_text import rows_of, size_of
from support.paths import ROOT

FILES = sorted(
    path.stem
    for path in (ROOT / "shadowprice" / "models").glob("*.py")
    if re.search(r"^def [a-z]\w*\((.|\n)*?-> pyo.ConcreteModel:", path.read_text(), re.MULTILINE)
    and path.stem != "tracing"
)
TRACE = """id,submit,gpus,duration
a,0,1,360
b,0,2,720
c,360,1,360
"""


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "jobs.csv"
    path.write_text(TRACE, encoding="utf-8")
    return path


def run(*arguments: object) -> Result:
    app = typer.Typer()
    app.command(**shown("models"))(models_command)
    return CliRunner().invoke(app, [str(each) for each in arguments], env={"COLUMNS": "200"})


def instance_of(trace: Path) -> Instance:
    return Instance(Cluster.parse("1x2"), load_trace(trace).workload)


def test_every_file_with_a_model_is_listed() -> None:
    assert list(model_files()) == FILES
    listed = json.loads(run("--json").output)
    assert [each["model"] for each in listed] == FILES
    for each in listed:
        assert each["kind"] in ("exact", "relaxation")
        assert each["source"]
        assert (ROOT / f"{each['solved_by'].replace('.', '/')}.py").is_file()
        assert (ROOT / each["tested_in"]).is_file()
    plain = run().output
    assert all(f" {name} " in plain for name in FILES)


def test_the_list_does_not_load_pyomo() -> None:
    program = (
        "from shadowprice.solvers.programs.catalogue import model_files; import sys; model_files(); "
        "print('pyomo' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("name", FILES)
def test_every_model_is_shown_with_its_rows_and_written(
    name: str, trace: Path, tmp_path: Path
) -> None:
    found = model_file(name)
    given = (trace, "--cluster", "1x2") if found.displayed_by == OF_INSTANCE else ()
    instance = instance_of(trace) if given else None
    compiled = compile_model(found.build(instance))
    size = size_of(compiled)
    best = compiled.solve()
    told = json.loads(run(name, *given, "--json").output)
    keys = ("rows", "columns", "nonzeros", "whole")
    assert [told[key] for key in keys] == [getattr(size, key) for key in keys]
    for ending in ("lp", "mps"):
        path = tmp_path / f"model.{ending}"
        done = run(name, *given, "-o", path)
        assert done.exit_code == 0, done.output
        assert f"{size.rows} rows, {size.columns} columns" in done.output
        highs = highspy.Highs()
        highs.setOptionValue("output_flag", False)
        highs.readModel(str(path))
        highs.run()
        assert highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
        objective = highs.getInfo().objective_function_value
        # Pyomo writes MPS files without the sense of the objective in some versions.
        assert abs(objective) == pytest.approx(abs(best.objective), rel=1e-6, abs=1e-6)


def test_rows_are_in_the_names_of_the_paper(trace: Path) -> None:
    instance = instance_of(trace)
    compiled = compile_model(model_file("hadar").build(instance))
    rows = {row.name: row for row in rows_of(compiled)}
    done = " - ".join(f"0.5 y[b,gpu,{t}]" for t in range(3))
    assert rows["work[b,2]"].text in (f"-{done} + z[b,2] <= 0", f"z[b,2] - {done} <= 0")
    assert rows["room[gpu,1]"].text == "w[a,gpu,1] + w[b,gpu,1] + w[c,gpu,1] <= 2"
    assert rows["room[gpu,1]"].says == "no more GPUs than there are"
    assert len(rows_of(compiled, 1)) == len({row.name.split("[")[0] for row in rows.values()})


def test_a_small_model_is_printed_whole() -> None:
    done = run("tiresias")
    assert "min busiest" in done.output
    assert "gang" in done.output
    # Cells are wrapped in a narrow window; nothing is cut.
    for name in ("traffic[node-1]", "gang", "server[server-1]", "15 rows, 11 columns"):
        assert name in done.output
    assert "\N{HORIZONTAL ELLIPSIS}" not in done.output
    assert "rows of each constraint are shown" not in done.output


def test_a_model_of_jobs_is_described_without_them() -> None:
    done = run("hadar")
    assert "built by time_indexed, schedule_form, dual in shadowprice.models.hadar" in done.output
    assert "TRACE --cluster CLUSTER" in done.output
    assert "complete only when" not in done.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nothing",), "model 'nothing': expected one of the 17 that"),
        (("--cluster", "1x2"), "are of one model, expected a NAME"),
        (("hadar", "--cluster", "1x2"), "TRACE and --cluster go together"),
        (("tiresias", "{trace}", "--cluster", "1x2"), "is not about a trace"),
        (("hadar", "-o", "x.lp"), "is built from jobs and a cluster"),
        (("tiresias", "-o", "x.txt"), "ends in '.txt', expected .lp or .mps"),
        (("tiresias", "-o", "/nowhere/x.lp"), "cannot be written"),
    ],
)
def test_bad_options_are_named(trace: Path, arguments: tuple[str, ...], message: str) -> None:
    found = run(*(word.format(trace=trace) for word in arguments))
    assert isinstance(found.exception, ShadowpriceError)
    assert message in str(found.exception)


def test_a_model_that_would_be_too_large_to_show_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    rows = [f"j{k},{k},1,{1000 + k}" for k in range(40)]
    path.write_text("\n".join(["id,submit,gpus,duration", *rows]), encoding="utf-8")
    for name in ("time_indexed", "preemptive", "hadar"):
        found = run(name, path, "--cluster", "1x2")
        assert isinstance(found.exception, InputError)
        assert "expected at most" in str(found.exception)


def test_a_file_that_does_not_say_what_it_has_to_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from shadowprice.solvers.programs import catalogue

    source = (ROOT / "shadowprice" / "models" / "tiresias.py").read_text(encoding="utf-8")
    monkeypatch.setattr(catalogue, "FOLDER", tmp_path)
    mine = tmp_path / "mine.py"
    mine.write_text(source, encoding="utf-8")
    assert list(model_files()) == ["mine"]
    mine.write_text(source.replace('KIND = "exact"', 'KIND = "good"'), encoding="utf-8")
    with pytest.raises(InputError, match="has KIND 'good'"):
        model_files()
