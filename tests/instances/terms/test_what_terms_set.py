"""Every term in one run: the switches of a program that it stands for, and the cluster's."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import shadowprice as sp
from shadowprice.analysis.run_options import RunOptions
from shadowprice.analysis.written_options import ReadOptions
from shadowprice.errors import InputError
from shadowprice.instances.failures.checkpointing import Checkpointing
from shadowprice.instances.failures.failures import Failures
from shadowprice.instances.failures.fault_law import FaultLaw
from shadowprice.instances.failures.preemption import Preemption
from shadowprice.instances.graphs.network import Network
from shadowprice.instances.speeds.interference import Interference
from shadowprice.instances.speeds.model_skew import published_skews
from shadowprice.instances.terms.charges import Overheads
from shadowprice.instances.terms.options.reading import terms_of_options, with_terms
from shadowprice.instances.terms.registry import SETTINGS
from shadowprice.instances.terms.settings import TermContext
from shadowprice.instances.terms.widths import Growth, ModelGrowth
from shadowprice.instances.terms.window import JobWindow

NODES = "[[nodes]]\ncount = 2\ngpus = 4\nintra_gb_per_s = 200\nnic_gb_per_s = 25\n"
PROFILE = """{"profiles": [{"model": "a", "gpus": 1, "cpus_per_gpu": [1, 3], "memory_gb_per_gpu": [9],
 "speed": [[0.5], [1.0]]}]}"""
LAW = "mtbf_s=900,repair_s=30"


def run_with(*texts: str, cluster: str = "2x4", **given: Any) -> ReadOptions:
    run = TermContext(sp.Cluster.load(cluster), "jobs.csv", **given)
    read = with_terms(run, terms_of_options(texts))
    return ReadOptions(read.cluster, RunOptions(**read.options))


SWITCHES: list[tuple[str, dict[str, Any]]] = [
    ("charges", {"overheads": Overheads()}),
    ("charges:start_s=1,restart_s=2,migration_s=4", {"overheads": Overheads(1.0, 2.0, 4.0)}),
    ("sharing", {"interference": Interference()}),
    ("sharing:file=busy.json", {"interference": Interference({"a": 0.5})}),
    (
        "graphs:intra_gb_per_s=300,nic_gb_per_s=12.5",
        {"network": Network(300e9, 12.5e9, 4, "per-gpu")},
    ),
    (
        "graphs:intra_gb_per_s=300,nic_gb_per_s=12.5,nic_sharing=per-job",
        {"network": Network(300e9, 12.5e9, 4, "per-job")},
    ),
    ("spread", {"skews": published_skews()}),
    ("widths:widest=3", {"growth": Growth(3)}),
    ("widths:widest=3,efficiency=0.75", {"growth": Growth(3, 0.75)}),
    ("window:last=7", {"until_complete": JobWindow(0, 7)}),
    ("window:first=2,last=7,latest_s=99", {"until_complete": JobWindow(2, 7, 99.0)}),
    ("restart", {"preemption": Preemption.RESTART}),
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in (
        ("busy.json", '{"a": 0.5}'),
        ("nodes.toml", NODES),
        ("widths.toml", "[models]\na = {widest = 2}\n"),
        ("speeds.json", '{"models": {"a": {"skew": 0.5, "spread_speed": 0.25}}}'),
        ("quotas.csv", "date,a\n2020-04-01,4\n2020-04-02,8\n"),
        ("faults.csv", "node,down_s,up_s\n1,30,60\n"),
        ("graphs.json", '{"graphs": [], "jobs": {}}'),
        ("profiles.json", PROFILE),
    ):
        Path(name).write_text(text)


@pytest.mark.parametrize(("text", "switches"), SWITCHES)
def test_a_term_sets_its_switches_and_no_other(text: str, switches: dict[str, Any]) -> None:
    run = run_with(text)
    assert run.cluster == sp.Cluster.load("2x4")
    for each in fields(RunOptions):
        assert getattr(run.options, each.name) == switches.get(each.name, each.default)
        if each.name in switches:
            assert each.name in SETTINGS[text.partition(":")[0]].sets


def test_files_are_read() -> None:
    found = run_with("widths:file=widths.toml", "spread:file=speeds.json").options
    assert isinstance(found.growth, ModelGrowth)
    assert found.growth.entry("a") == Growth(2)
    assert found.skews is not None
    assert found.skews.skew_of("a") == 0.5
    graphs = run_with("graphs:file=graphs.json", cluster="nodes.toml").options
    assert graphs.graphs is not None
    assert graphs.graphs.source == "graphs.json"
    assert graphs.network == Network(200e9, 25e9, 4)
    profiles = run_with("profiles:file=profiles.json").options.profiles
    assert profiles is not None
    assert list(profiles.tables) == [("a", 1)]
    published = run_with("profiles").options.profiles
    assert published is not None
    assert len(published.tables) > 1


@pytest.mark.parametrize(
    ("text", "law", "checkpoints"),
    [
        (f"failures:{LAW}", FaultLaw(900.0, 30.0, seed=5), Checkpointing()),
        (f"failures:law=exponential,{LAW},seed=3", FaultLaw(900.0, 30.0, seed=3), Checkpointing()),
        (
            f"failures:law=weibull,{LAW},shape=0.5,repair_shape=2,interval_s=64,cost_s=2",
            FaultLaw(900.0, 30.0, 0.5, 2.0, 5),
            Checkpointing(64.0, 2.0),
        ),
    ],
)
def test_laws_of_failures(text: str, law: FaultLaw, checkpoints: Checkpointing) -> None:
    found = run_with(text, seed=5).options.failures
    assert isinstance(found, Failures)
    assert (found.faults, found.checkpoints) == (law, checkpoints)


def test_a_table_of_faults_and_none_at_all() -> None:
    table = run_with("failures:file=faults.csv,interval_s=64", seed=5).options.failures
    assert table is not None
    assert (table.name, table.checkpoints) == ("faults.csv", Checkpointing(64.0))
    never = run_with("failures:law=none,interval_s=64").options.failures
    assert never is not None
    assert (never.name, never.drawn) == ("none", False)
    with pytest.raises(InputError, match="is a table of downtimes and takes no choices"):
        run_with("failures:file=faults.csv,nodes=9")


def test_quotas_are_of_the_cluster_from_the_date_that_somebody_says() -> None:
    starts = []
    for text, origin_s in (
        ("quotas:file=quotas.csv,date=2020-04-01T18:00:00", None),
        ("quotas:file=quotas.csv", 1585764000.0),
        # What is written goes before what the trace says.
        ("quotas:file=quotas.csv,date=2020-04-01T18:00:00", 0.0),
    ):
        run = run_with(text, origin_s=origin_s)
        assert run.options == RunOptions()
        assert run.cluster.quotas is not None
        assert run.cluster.quotas.gpus == ((4,), (8,))
        starts.append(run.cluster.quotas.start_s)
    assert starts == [(0.0, 21600.0)] * 3
    with pytest.raises(InputError, match=r"jobs\.csv: does not say the date of its time 0"):
        run_with("quotas:file=quotas.csv")
