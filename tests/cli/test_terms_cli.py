"""``--with`` from the command line to what is written, and the pages of ``shadowprice terms``."""

from __future__ import annotations

import hashlib
import json
import shlex
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner

import shadowprice as sp
from shadowprice.analysis.run_directory.directory import load
from shadowprice.analysis.run_options import RunOptions
from shadowprice.cli.app import app
from shadowprice.errors import InputError
from shadowprice.instances.features import APART, Feature
from shadowprice.instances.terms.options.reading import terms_of_options
from shadowprice.instances.terms.quotas import QuotasSettings
from shadowprice.instances.terms.registry import DECLARED, SETTINGS
from shadowprice.instances.terms.settings import TermSettings
from shadowprice.instances.traces import load_trace
from support.written_failures import failures_of

WIDE = {"COLUMNS": "200", "TERM": "dumb"}


def said(*words: str) -> str:
    done = CliRunner().invoke(app, words, env=WIDE, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def refused(*words: str) -> str:
    with pytest.raises(InputError) as refusal:
        CliRunner().invoke(app, words, env=WIDE, catch_exceptions=False)
    return str(refusal.value)


@pytest.fixture
def trace(tmp_path: Path) -> str:
    path = tmp_path / "jobs.csv"
    rows = "".join(f"j{k},{20 * k},{k % 3 + 1},{100 + 7 * k},a\n" for k in range(20))
    path.write_text(f"id,arrival_s,gpus,work,tenant\n{rows}")
    return str(path)


def test_several_terms_in_one_run(trace: str, tmp_path: Path) -> None:
    table, run = tmp_path / "quotas, by=day.csv", tmp_path / "run"
    table.write_text("date,a,total\n2020-04-01,3,3\n")
    given = [
        str(QuotasSettings(str(table), "2020-04-01T12:00:00")),
        "charges:start_s=5,restart_s=2",
        "failures:mtbf_s=500,repair_s=40,seed=3,interval_s=50,cost_s=1",
    ]
    words = [word for each in given for word in ("--with", each)]
    found = json.loads(
        said(
            "simulate",
            trace,
            "--cluster",
            "2x2",
            "--policy",
            "srtf",
            *words,
            "-o",
            str(run),
            "--json",
        )
    )
    failures = failures_of("mtbf_s=500,repair_s=40,seed=3", 50.0, 1.0)
    overheads = sp.Overheads(start_s=5.0, restart_s=2.0)
    cluster = load(run).instance.cluster
    assert cluster.quotas is not None
    assert cluster.quotas.gpus == ((3,),)
    expected = sp.simulate(
        load_trace(trace).workload,
        cluster,
        "srtf",
        RunOptions(overheads=overheads, failures=failures),
    ).summary()
    del expected["cpu_s"]
    assert {name: found[name] for name in expected} == expected
    assert found["faults"] > 0
    # What was written, and the files that it names.
    made_by = json.loads((run / "run.json").read_text())["made_by"]
    assert made_by["options"]["terms"] == given
    digest = hashlib.sha256(table.read_bytes()).hexdigest()
    assert made_by["inputs_sha256"][str(table)] == digest


def test_a_pair_that_has_no_meaning_is_refused_with_why(tmp_path: Path) -> None:
    trace = tmp_path / "jobs.csv"
    trace.write_text("arrival_s,gpus,work,model\n0,2,400,resnet-50\n0,1,300,vgg-19\n")
    words = ("--with", "widths:widest=2", "--with", "graphs:intra_gb_per_s=300,nic_gb_per_s=12")
    refused = CliRunner().invoke(
        app, ["simulate", str(trace), "--cluster", "2x2", "--policy", "srtf", *words]
    )
    assert isinstance(refused.exception, InputError)
    assert APART[frozenset((Feature.WIDTHS, Feature.GRAPHS))] in str(refused.exception)


def test_quotas_are_not_for_jobs_without_end(tmp_path: Path) -> None:
    table = tmp_path / "quotas.csv"
    table.write_text("date,a,total\n2020-04-01,3,3\n")
    words = ["--endless", "gavel-published:seed=1", "--cluster", "2x2", "--policy", "srtf"]
    terms = ["--with", f"quotas:file={table},date=2020-04-01", "--with", "window:last=5"]
    refused = CliRunner().invoke(app, ["simulate", *words, *terms])
    assert isinstance(refused.exception, InputError)
    assert "is endless, and quotas are about the days of a trace" in str(refused.exception)


def test_bandwidths_are_those_of_the_nodes_where_none_are_written(tmp_path: Path) -> None:
    jobs, nodes = tmp_path / "recurrent.csv", tmp_path / "nodes.toml"
    nodes.write_text("[[nodes]]\ncount = 2\ngpus = 4\nintra_gb_per_s = 300\nnic_gb_per_s = 12.5\n")
    said("generate", "recurrent", "--jobs", "10", "--gpus", "8", "-o", str(jobs))
    costs = []
    for term in ("graphs", "graphs:intra_gb_per_s=300,nic_gb_per_s=12.5", "graphs:nic_gb_per_s=1"):
        words = ("--cluster", str(nodes), "--policy", "fifo", "--with", term, "--json")
        costs.append(json.loads(said("simulate", str(jobs), *words))["avg_jct_s"])
    assert costs[0] == costs[1] < costs[2]


def test_a_certificate_is_compared_with_terms_of_the_cluster_alone(tmp_path: Path) -> None:
    (tmp_path / "cert.jsonl").write_text("")
    refused = CliRunner().invoke(app, ["verify", str(tmp_path / "cert.jsonl"), "--with", "charges"])
    assert isinstance(refused.exception, InputError)
    assert "--with charges: is about a run" in str(refused.exception)


def test_the_help_of_simulate_is_short() -> None:
    told = said("simulate", "--help").splitlines()
    assert "--with" in " ".join(told)
    assert len(told) < 75


def test_all_terms_are_listed() -> None:
    rows = json.loads(said("terms", "--json"))
    assert [row["term"] for row in rows] == list(Feature)
    assert all(row["says"] and row["given_by"] for row in rows)
    told = said("terms")
    assert all(each in told for each in Feature)
    assert "is written twice in a value: a,,b is a,b" in told


@pytest.mark.parametrize("feature", Feature)
def test_the_page_of_a_term(feature: Feature) -> None:
    record: dict[str, Any] = json.loads(said("terms", feature, "--json"))
    told = said("terms", feature)
    assert feature.sentence in told
    names = [each["name"] for each in record["settings"]]
    term = {**SETTINGS, **DECLARED}.get(feature)
    assert names == ([] if term is None else [each.name for each in fields(term)])  # type: ignore[arg-type]
    assert all(f"│ {each} " in told for each in names)
    pairs = [pair for pair in APART if feature in pair]
    assert record["not_with"] == {
        other: APART[pair] for pair in pairs for other in pair if other != feature
    }
    assert all(other in told for other in record["not_with"])


def test_a_page_that_there_is_not() -> None:
    with pytest.raises(InputError, match="term 'copy': did you mean 'copies'"):
        said("terms", "copy")


@pytest.mark.parametrize("term", SETTINGS.values())
def test_the_example_of_a_term_has_it(term: type[TermSettings]) -> None:
    name, *words = shlex.split(term.example)
    command = typer.main.get_command(app).commands[name]  # type: ignore[attr-defined]
    (found,) = terms_of_options(command.make_context(name, words).params["terms"])
    assert type(found) is term


OWN = '''
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from shadowprice.instances.terms.declared import DeclaredRun, HoldingTerm
from shadowprice.proofs.verification.rules import TermRule


def none(term, runs):
    return ()


@dataclass(frozen=True)
class Lamp(HoldingTerm):
    """No more than so many GPUs.

    Parameters
    ----------
    gpus : int
    """

    name: ClassVar[str] = "lamp"
    rule: ClassVar[TermRule] = TermRule(none)

    gpus: int

    def holds(self, run):
        yield "site", run.gpus

    def limit(self, place, now_s):
        return self.gpus


class Plain:
    pass


class Half(HoldingTerm):
    pass


@dataclass(frozen=True)
class Empty(HoldingTerm):
    name: ClassVar[str] = "empty"
'''


def test_a_term_in_a_file_of_ones_own(trace: str, tmp_path: Path) -> None:
    """It runs, is bounded and swept; its settings are checked; what is no term is refused in a sentence."""
    path = tmp_path / "own.py"
    path.write_text(OWN)
    run = ("simulate", trace, "--cluster", "2x2", "--policy", "srtf", "--json")
    free, dark = json.loads(said(*run)), json.loads(said(*run, "--with", f"{path}:Lamp:gpus=3"))
    assert dark["avg_jct_s"] > free["avg_jct_s"]
    compared = (
        "compare",
        trace,
        "--cluster",
        "2x2",
        "--policies",
        "srtf",
        "--budget",
        "0",
        "--json",
    )
    found = [
        json.loads(said(*compared, *more))["policies"][0]
        for more in ((), ("--with", f"{path}:Lamp:gpus=3"))
    ]
    assert found[0]["bound"] == found[1]["bound"]
    assert found[0]["ratio"] < found[1]["ratio"]
    for text, message in (
        ("Lamp:gpu=3", "unknown key 'gpu'; did you mean 'gpus'?"),
        ("Lamp", "gpus"),
        ("Lamp:gpus=x", "gpus is 'x', expected"),
        ("Lump", "has no 'Lump'; it defines"),
        ("Plain", "is no term, expected a class of HoldingTerm, SlowingTerm or both"),
        ("Half", "expected a frozen dataclass, whose fields are settings"),
        ("Empty", "does not say holds, limit"),
    ):
        assert message in refused(*run, "--with", f"{path}:{text}")
    assert "not known to run directories" in refused(
        *run, "--with", f"{path}:Lamp:gpus=3", "-o", str(tmp_path / "r")
    )


def test_racks_are_written_and_read(trace: str, tmp_path: Path) -> None:
    run = (
        "simulate",
        trace,
        "--cluster",
        "4x2",
        "--policy",
        "srtf",
        "--json",
        "-o",
        str(tmp_path / "run"),
    )
    said(*run, "--with", "racks:nodes=2,across_racks=0.5,uplink=1")
    assert str(load(tmp_path / "run").instance.declared) == (
        "(Racks(nodes=2, across_nodes=1.0, across_racks=0.5, uplink=1),)"
    )
    path = tmp_path / "run" / "instance.json"
    path.write_text(path.read_text().replace('"racks"', '"rocks"'))
    with pytest.raises(
        InputError, match=r"instance.json: declared: unknown key 'rocks'; did you mean 'racks'"
    ):
        load(tmp_path / "run")
