"""Hadar and HadarE from the command line and from Python; utilities against a certified bound."""

from __future__ import annotations

import csv
import json
import math
import re
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import shadowprice as sp
from shadowprice.analysis.certificates.utility_bound import EarningRuns
from shadowprice.analysis.run_directory.directory import load as load_run
from shadowprice.analysis.run_directory.directory import save as save_run
from shadowprice.analysis.run_directory.files import INSTANCE, RUN, SCHEDULE, WORKLOAD
from shadowprice.cli import app as cli
from shadowprice.cli.run_inputs import split_names
from shadowprice.errors import InputError, VerificationError
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.workload_files import write_workload
from shadowprice.proofs.hadar import any_schedule as hadar_any_schedule
from shadowprice.proofs.hadar.any_schedule import BoundedJob, least_costs
from shadowprice.solvers.hadar.copy_assignment import Payoff
from shadowprice.solvers.registry import policies
from support.paths import SHARED
from support.printed import without_origin
from support.shares_done import shares_done

GAVEL = SHARED / "data" / "gavel"
TYPES = "2x4:v100,1x4:k80"
NEW_KEYS = ["cru", "ttd_s", "mean_queueing_s", "mean_ftf", "max_ftf"]

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """The command line in this process: exit code, stdout, stderr."""
    monkeypatch.setenv("COLUMNS", "300")

    def call(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["shadowprice", *map(str, words)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main()
        told = capsys.readouterr()
        return int(ended.value.code or 0), told.out, told.err

    return call


def typed_jobs(jobs: int = 12, seed: int = 5) -> sp.Workload:
    """Jobs with whole iterations and a throughput for each of two types."""
    rng = np.random.default_rng(seed)
    fast = rng.integers(2, 9, size=jobs).astype(float)
    return sp.Workload.from_columns(
        id=[f"job{k}" for k in range(jobs)],
        arrival_s=rng.integers(0, 3000, size=jobs),
        gpus=rng.integers(1, 5, size=jobs),
        work=rng.integers(500, 20_000, size=jobs),
        throughput=np.stack([fast, fast / rng.integers(2, 5, size=jobs)], axis=1),
        gpu_types=("v100", "k80"),
    )


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "jobs.csv"
    write_workload(typed_jobs(), path)
    return path


ALL = ["hadar", "hadar-committed", "oasis", "hadare", "hadare:first-come,max_copies=2,width=gang"]


@pytest.mark.parametrize("policy", ALL)
def test_simulate_saves_and_verifies_on_throughputs_by_type(
    policy: str, run: Run, trace: Path, tmp_path: Path
) -> None:
    code, out, err = run(
        "simulate",
        trace,
        "--cluster",
        TYPES,
        "--policy",
        policy,
        "--json",
        "--jobs-out",
        tmp_path / "jobs_out.csv",
        "-o",
        tmp_path / "run",
    )
    assert code == 0, err
    summary = without_origin(out)
    assert summary["policy"] == policy
    assert summary["completed"] == summary["jobs"] == 12
    assert summary["verified"]
    assert 0 < summary["cru"] <= 1
    assert summary["ttd_s"] <= summary["makespan_s"]
    assert 0 < summary["mean_ftf"] <= summary["max_ftf"]
    rows = list(csv.DictReader((tmp_path / "jobs_out.csv").read_text().splitlines()))
    assert {row["id"] for row in rows} == {f"job{k}" for k in range(12)}
    assert sum(float(row["jct_s"]) for row in rows) / 12 == pytest.approx(summary["avg_jct_s"])
    code, again, err = run("verify", tmp_path / "run", "--json")
    assert code == 0, err
    assert without_origin(again) == summary


@pytest.mark.parametrize("policy", ["hadar", "hadar-committed", "oasis", "hadare"])
def test_plain_traces_will_do(policy: str, run: Run, tmp_path: Path) -> None:
    path = tmp_path / "plain.csv"
    write_workload(sp.generate("lognormal", jobs=15, seed=2, gpus_total=8), path)
    code, out, err = run("simulate", path, "--cluster", "2x4", "--policy", policy, "--json")
    assert code == 0, err
    assert json.loads(out)["completed"] == 15


@pytest.mark.skipif(not GAVEL.is_dir(), reason="Gavel's traces and throughputs are not here")
@pytest.mark.parametrize("policy", ["hadar", "hadar-committed", "oasis", "hadare"])
def test_gavels_trace_and_throughput_file(policy: str, run: Run) -> None:
    code, out, err = run(
        "simulate",
        GAVEL / "traces" / "medium_test.trace",
        "--cluster",
        "3x4:v100,2x4:p100,2x4:k80",
        "--throughputs",
        GAVEL / "simulation_throughputs.json.xz",
        "--policy",
        policy,
        "--json",
    )
    assert code == 0, err
    assert json.loads(out)["completed"] == 20


def test_python_has_the_same_handful_of_methods() -> None:
    copies = sp.simulate(typed_jobs(), TYPES, "hadare:max_copies=1,restart_s=0")
    other = sp.simulate(typed_jobs(), TYPES, sp.HadarE(max_copies=1, restart_s=0.0))
    own = sp.simulate(typed_jobs(), TYPES, sp.HadarE(Payoff(), max_copies=1, restart_s=0.0))
    assert list(copies.jobs) == [*sp.simulate(typed_jobs(), TYPES, "fifo").jobs, "copies"]
    assert copies.jobs.equals(other.jobs)
    assert copies.jobs.equals(own.jobs)
    assert own.settings == {**other.settings, "order": "Payoff"}
    assert (copies.jobs["copies"] == 1).all()
    assert copies.jobs["jct_s"].mean() == pytest.approx(copies.summary()["avg_jct_s"])
    assert copies.plot_gantt().get_title(loc="left").startswith("hadare")
    assert copies.plot_jct_cdf().get_xlabel().startswith("job completion time")
    assert "hadare" in repr(copies)
    assert "<table>" in copies._repr_html_()


def test_copies_hold_whole_nodes_in_the_picture_and_in_the_utilization() -> None:
    """One job of one GPU on a node of four: the picture has four GPUs, and nothing is free."""
    jobs = sp.Workload.from_columns(arrival_s=[0], gpus=[1], work=[90])
    outcome = sp.simulate(jobs, "1x4", "hadare:width=gang")
    assert outcome.schedule.gpus.tolist() == [1]
    assert outcome.summary()["utilization"] == outcome.summary()["cru"] == 1.0
    (drawn,) = outcome.plot_gantt().collections[0].get_paths()
    assert sorted({y for _, y in drawn.vertices.tolist()}) == [0.0, 4.0]


def test_preemptions_and_copies_by_hand() -> None:
    """One node, first come first served: the second waits. On two both have two copies, the first for
    two rounds; in the third one node suffices for its last steps and the second job begins."""
    jobs = sp.Workload.from_columns(arrival_s=[0, 10], gpus=[1, 1], work=[500, 700])
    alone = sp.simulate(jobs, "1x1", "hadare:first-come,round_s=100,restart_s=10")
    assert alone.jobs["end_s"].tolist() == [500.0, 1210.0]
    assert alone.jobs["preemptions"].tolist() == [0, 0]
    assert alone.summary()["utilization"] == pytest.approx(1.0)
    assert alone.summary()["mean_queueing_s"] == pytest.approx((0 + 490) / 2)
    both = sp.simulate(jobs, "2x1", "hadare:first-come,round_s=100,restart_s=0")
    assert both.jobs["copies"].tolist() == [2, 2]
    assert both.jobs["end_s"].tolist() == [300.0, 600.0]
    # On one node the later, shorter job is served between two rounds of the first.
    jobs = sp.Workload.from_columns(arrival_s=[0, 10], gpus=[1, 1], work=[300, 50])
    paused = sp.simulate(jobs, "1x1", "hadare:shortest,round_s=100,restart_s=10")
    assert paused.jobs["preemptions"].tolist() == [1, 0]
    assert paused.jobs["end_s"].tolist() == [410.0, 160.0]
    # The first waits for the whole second round, the second for its beginning.
    assert paused.summary()["mean_queueing_s"] == pytest.approx((100 + 90) / 2)


def test_the_new_metrics_of_every_summary_by_hand() -> None:
    jobs = sp.Workload.from_columns(arrival_s=[10, 10], gpus=[1, 1], work=[20, 40])
    summary = sp.simulate(jobs, "1x1", "fifo").summary()
    assert list(summary)[-5:] == NEW_KEYS
    # Two are there for 20 s, then one for 40 s: a half, and 3 / 4 of the GPU. Alone on that they take
    # 40 s and 160 / 3 s; they took 20 s and 60 s.
    expected = {
        "cru": 1.0,
        "ttd_s": 60.0,
        "mean_queueing_s": 10.0,
        "mean_ftf": 0.8125,
        "max_ftf": 1.125,
    }
    assert {key: summary[key] for key in NEW_KEYS} == expected


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--placement", "pack"), "does not take the option 'placement'"),
        (("--preset", "gavel"), "does not take the option 'preset'"),
        (("--predictor", "forest"), "does not take the option 'predictor'"),
        (("--with", "graphs:intra_gb_per_s=300,nic_gb_per_s=12.5"), "expected one: job graphs"),
        (("--round", "5"), "round_s is 5.0"),
        (("--first-round", "60"), "does not take the option 'first_round_s'"),
        (("--with", "charges:restart_s=60"), "does not take the option 'overheads'"),
        (("--prices", "p.csv"), "does not take the option 'prices'"),
    ],
)
def test_switches_that_make_no_sense_with_copies(
    words: tuple[str, ...], message: str, run: Run, trace: Path
) -> None:
    code, out, err = run("simulate", trace, "--cluster", TYPES, "--policy", "hadare", *words)
    assert (code, out) == (2, "")
    assert message in err


def test_the_length_of_its_rounds_is_a_switch_as_well_as_a_parameter(run: Run, trace: Path) -> None:
    words = ("simulate", trace, "--cluster", TYPES, "--json", "--policy")
    told = []
    for policy in (("hadare:round_s=60",), ("hadare", "--round", "60"), ("hadare",)):
        code, out, err = run(*words, *policy)
        assert code == 0, err
        told.append({**without_origin(out), "policy": None, "cpu_s": None})
    assert told[0] == told[1]
    assert told[0]["avg_jct_s"] != told[2]["avg_jct_s"]


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("hadare:copies=2", "expected NAME=VALUE with one of aggregation_s, max_copies, order"),
        ("hadare:max_copies=two", "expected a value like 0"),
        ("hadare:max_copies=-1", "expected at least 1, or 0"),
        ("hadare:width=half", "expected one of node, gang"),
        ("hadare:best", "expected one of payoff, shortest, first-come"),
        ("hadare:round_s=5", "expected more than restart_s"),
    ],
)
def test_parameters_that_are_wrong(policy: str, message: str, run: Run, trace: Path) -> None:
    code, _, err = run("simulate", trace, "--cluster", TYPES, "--policy", policy)
    assert code == 2
    assert message in err


def test_policies_lists_copies_too(run: Run) -> None:
    _, out, _ = run("policies", "--all")
    for name in ("hadar", "hadar-committed", "oasis", "hadare"):
        assert any(line.split()[:1] == [name] for line in out.splitlines())


def saved(tmp_path: Path) -> Path:
    outcome = sp.simulate(typed_jobs(), TYPES, "hadare")
    directory = tmp_path / "copies"
    save_run(outcome, directory)
    return directory


@pytest.mark.parametrize(
    ("column", "change", "rule"),
    [
        ("steps", 1, "steps"),
        ("job", -1, "copy"),
        ("end_s", 1.0, "steps"),
        ("overhead_s", 5.0, "overhead"),
    ],
)
def test_a_schedule_of_copies_that_was_changed_is_found(
    column: str, change: float, rule: str, tmp_path: Path, run: Run
) -> None:
    directory = saved(tmp_path)
    frame = pd.read_parquet(directory / SCHEDULE)
    frame.loc[0, column] += change
    frame.to_parquet(directory / SCHEDULE, index=False)
    code, _, err = run("verify", directory)
    assert code == 2
    assert f"{SCHEDULE}: {rule}: " in err.replace("\n", " ")


def test_metrics_files_and_kinds_that_were_changed_are_found(tmp_path: Path) -> None:
    directory = saved(tmp_path)
    described = json.loads((directory / RUN).read_text())
    for change, error, message in [
        ({"metrics": {**described["metrics"], "cru": 0.5}}, VerificationError, "metric cru"),
        ({"policy": "other"}, VerificationError, "policy"),
        ({"cpu_s": 1.0}, VerificationError, "cpu_s"),
        ({"kind": "spoons"}, InputError, "unknown key 'kind'"),
    ]:
        (directory / RUN).write_text(json.dumps({**described, **change}))
        with pytest.raises(error, match=message):
            load_run(directory)
    (directory / RUN).write_text(json.dumps({**described, "settings": {}}))
    with pytest.raises(VerificationError, match="is not what was saved"):
        load_run(directory)
    (directory / RUN).write_text(json.dumps(described))
    assert load_run(directory).summary() == described["metrics"]
    given = json.loads((directory / INSTANCE).read_text())
    fewer = {**given, "copies": {**given["copies"], "max_copies": 1}}
    (directory / INSTANCE).write_text(json.dumps(fewer))
    with pytest.raises(VerificationError, match="copy: row"):
        load_run(directory)
    (directory / INSTANCE).write_text(json.dumps(given))
    write_workload(typed_jobs(seed=6), directory / WORKLOAD)
    with pytest.raises(VerificationError):
        load_run(directory)


def test_a_directory_changes_its_kind_when_it_is_written_again(tmp_path: Path) -> None:
    directory = saved(tmp_path)
    save_run(sp.simulate(typed_jobs(), TYPES, "fifo"), directory)
    assert load_run(directory).instance.copies is None
    save_run(sp.simulate(typed_jobs(), TYPES, "hadare"), directory)
    assert load_run(directory).instance.copies is not None
    assert sorted(path.name for path in directory.iterdir()) == [
        INSTANCE,
        RUN,
        SCHEDULE,
        WORKLOAD,
    ]


def test_a_run_of_copies_has_a_certificate(tmp_path: Path, run: Run) -> None:
    file = tmp_path / "certificate.jsonl"
    code, out, _ = run("certify", saved(tmp_path), "-o", file)
    assert code == 0
    code, checked, _ = run("verify", file)
    assert code == 0
    factor = out.split(" costs at most ")[1].split("x")[0]
    assert f"hadare costs at most {factor}x the offline optimum" in checked
    assert "copies" in checked


# Prices.


@pytest.mark.parametrize("policy", ["hadar", "hadar-committed", "oasis"])
def test_prices_go_to_a_table_and_a_picture(
    policy: str, run: Run, trace: Path, tmp_path: Path
) -> None:
    words = ("simulate", trace, "--cluster", TYPES, "--policy", policy, "--json")
    files = [tmp_path / "p.parquet", tmp_path / "p.csv"]
    picture = tmp_path / "p.png"
    code, _, err = run(*words, "--prices", files[0], "--prices", picture)
    assert code == 0, err
    run(*words, "--prices", files[1])
    assert picture.read_bytes()[:4] == b"\x89PNG"
    frame = pd.read_parquet(files[0])
    pd.testing.assert_frame_equal(frame, pd.read_csv(files[1]))
    assert list(frame) == ["time_s", "node", "gpu_type", "price", "load", "gpus"]
    assert (frame["price"] > 0).all()
    outcome = sp.simulate(sp.load(trace), TYPES, policy, sp.RunOptions(prices=True))
    assert isinstance(outcome, sp.Outcome)
    assert outcome.prices is not None
    assert frame["price"].tolist() == np.concatenate(outcome.prices.prices).tolist()
    schedule = outcome.schedule
    for row in frame.itertuples():
        held = (schedule.node == row.node) & (schedule.start_s <= row.time_s)
        held &= schedule.end_s > row.time_s
        assert row.load == schedule.gpus[held].sum() <= row.gpus


def test_who_has_no_prices_or_an_unknown_ending(run: Run, trace: Path, tmp_path: Path) -> None:
    words = ("simulate", trace, "--cluster", TYPES, "--policy")
    code, _, err = run(*words, "fifo", "--prices", tmp_path / "p.csv")
    assert code == 2
    assert "'fifo' sets no prices, expected one of hadar" in err
    code, _, err = run(*words, "hadar", "--prices", tmp_path / "p.txt")
    assert code == 2
    assert "expected a name that ends with .parquet, .csv for a table" in err
    with pytest.raises(InputError, match="kept no prices"):
        sp.plot_prices(sp.Outcome(*_made(sp.simulate(typed_jobs(), TYPES, "hadar")), "hadar"))


def _made(outcome: sp.Outcome) -> tuple[sp.Instance, sp.Schedule]:
    return outcome.instance, outcome.schedule


# Utilities.


def test_compare_utilities_from_the_command_line(run: Run, trace: Path, tmp_path: Path) -> None:
    words = (
        "compare",
        trace,
        "--cluster",
        TYPES,
        "--objective",
        "utility",
        "--budget",
        0.3,
        "--policies",
        "hadar:width=8,utility=fairness,hadar-committed,fifo,las2d",
        "--utility",
        "fairness",
    )
    code, out, err = run(*words, "--json", "--plot", tmp_path / "c.png")
    assert code == 0, err
    told = json.loads(out)
    assert (told["objective"], told["utility"], told["round_s"]) == ("utility", "fairness", 360.0)
    names = [row["policy"] for row in told["policies"]]
    assert names == ["hadar:width=8,utility=fairness", "hadar-committed", "fifo", "las2d"]
    for row in told["policies"]:
        assert row["ratio"] == pytest.approx(row["bound"] / row["utility"])
        assert row["ratio"] >= 1
        assert row["certified"]
        assert row["class"].startswith("preemptive schedules")
    assert len({row["bound"] for row in told["policies"]}) == 1
    if told["plan"] is not None:
        assert told["plan"]["utility"] <= told["policies"][0]["bound"] * (1 + 1e-9)
    assert (tmp_path / "c.png").read_bytes()[:4] == b"\x89PNG"
    code, out, _ = run(*words)
    assert code == 0
    assert "fifo reaches at least" in out
    words = out.replace("\n", " ")
    assert re.search(
        r"% of the largest possible utility of preemptive schedules in which no two jobs share a GPU"
        r"(, in whole rounds of 360.0 s)? \(certified by",
        words,
    )
    assert "any schedule" not in words


MINE = """
import pyomo.environ as pyo
from shadowprice.models.hadar import time_indexed

def one_job(jobs):
    m = time_indexed(jobs)
    m.one = pyo.Constraint(m.T, rule=lambda m, t: sum(m.y[j, l, t] for j, l in m.L) <= 1)
    return m

def busy(jobs):
    m = time_indexed(jobs)
    m.busy = pyo.Constraint(expr=sum(m.w[j, h, 0] for j in m.J for h in m.K) >= 1)
    return m

def wrong(jobs):
    return jobs.nothing

def late(jobs):
    m = time_indexed(jobs)
    m.late = pyo.Constraint(expr=m.z["a", 0] + m.z["b", 0] >= 3)
    return m
"""


@pytest.fixture
def two_jobs(tmp_path: Path) -> tuple[object, ...]:
    (tmp_path / "mine.py").write_text(MINE, encoding="utf-8")
    path = tmp_path / "two.csv"
    path.write_text("id,submit,gpus,duration\na,0,1,360\nb,0,1,360\n", encoding="utf-8")
    return ("compare", path, "--cluster", "1x2", "--policies", "fifo")


def test_an_edited_model_of_the_offline_optimum_takes_effect(
    run: Run, two_jobs: tuple[object, ...], tmp_path: Path
) -> None:
    words = (*two_jobs, "--objective", "utility", "--utility", "completion_time", "--budget", 2)
    told = json.loads(run(*words, "--json")[1])["plan"]
    assert told["proven"]
    assert told["edits"] == ""
    code, out, err = run(*words, "--json", "--model", f"{tmp_path}/mine.py:one_job")
    # On a busy machine it may say how far it is.
    assert (code, [line for line in err.splitlines() if " so far" not in line]) == (0, [])
    alone = json.loads(out)["plan"]
    assert alone["proven"]
    # Both complete in one round, which is all the rounds that the compared run takes; now one does.
    assert alone["utility"] == pytest.approx(0.5 * told["utility"])
    assert "it has more constraints one[0]" in alone["edits"]
    code, out, err = run(*words, "--model", f"{tmp_path}/mine.py:busy")
    assert code == 0
    assert "column generation is not used and the compiled rows are solved" in err
    assert "of a model that is not the published one: it has more constraints busy" in out


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mine.py:nothing", "has no 'nothing'; it defines"),
        ("mine.py:wrong", "mine.py, line 16: AttributeError: 'RoundJobs' object has no"),
        ("mine.py:late", "the model is infeasible; these constraints cannot hold together: "),
        ("none.py:wrong", "No such file or directory"),
    ],
)
def test_a_model_that_cannot_be_solved_is_one_sentence(
    run: Run, two_jobs: tuple[object, ...], tmp_path: Path, name: str, message: str
) -> None:
    model = ("--model", f"{tmp_path}/{name}")
    code, _, err = run(*two_jobs, "--objective", "utility", "--budget", 2, *model)
    assert code == 2
    assert message in err
    assert "Traceback" not in err
    assert "goes with --objective utility" in run(*two_jobs, *model)[2]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--utility", "fairness"), "goes with --objective utility"),
        (("--objective", "utility", "--utility", "joy"), "expected one of effective_throughput"),
        (("--objective", "utility", "--policies", "fifo,hadare"), "several copies"),
        (("--objective", "utility", "--policies", "fifo,fifo"), "different names"),
    ],
)
def test_comparisons_that_make_no_sense(
    words: tuple[str, ...], message: str, run: Run, trace: Path
) -> None:
    code, out, err = run("compare", trace, "--cluster", TYPES, "--budget", 0.1, *words)
    assert (code, out) == (2, "")
    assert message in err


def test_names_of_policies_keep_their_parameters() -> None:
    expected = ["a", "b:x,y=2,z=3", "c:w=1", "d"]
    assert split_names("a, b:x,y=2,z=3 ,c:w=1,d") == expected


@st.composite
def two_types(draw: st.DrawFn) -> sp.Instance:
    """A few jobs on nodes of two types, arrivals and work at any second, some charged overheads."""
    count = draw(st.integers(1, 6))
    ints = lambda low, high: draw(  # noqa: E731
        st.lists(st.integers(low, high), min_size=count, max_size=count)
    )
    fast = np.array(ints(1, 4), dtype=float)
    workload = sp.Workload.from_columns(
        arrival_s=ints(0, 40),
        gpus=ints(1, 2),
        work=ints(1, 60),
        throughput=np.stack([fast, fast / np.array(ints(1, 3))], axis=1),
        gpu_types=("v100", "k80"),
        weight=ints(1, 4),
    )
    return sp.Instance(sp.Cluster.parse("1x2:v100,1x2:k80"), workload)


NAMES = sorted(name for name in policies() if not name.startswith("gavel"))


@settings(max_examples=15)
@given(
    instance=two_types(),
    name=st.sampled_from(NAMES),
    utility=st.sampled_from(["effective_throughput", "completion_time", "fairness", "deadline"]),
    length=st.sampled_from([0.0, 7.0, 16.0]),
    restart_s=st.sampled_from([0.0, 1.5]),
    seed=st.integers(0, 10**6),
)
def test_no_run_earns_more_than_any_prices_allow(
    instance: sp.Instance, name: str, utility: str, length: float, restart_s: float, seed: int
) -> None:
    """With and without rounds, with overheads, preempted in the middle of rounds."""
    round_s = 16.0
    policy = (
        f"{name}:round_s={round_s:g}" if name in ("hadar", "hadar-committed", "oasis") else name
    )
    options = sp.RunOptions(round_s=length, overheads=sp.Overheads(restart_s=restart_s))
    outcome = sp.simulate(instance.workload, instance.cluster, policy, options)
    assert isinstance(outcome, sp.Outcome)
    runs = EarningRuns.of({name: outcome}, utility, round_s)
    market, earned = runs.market, runs.earned[name]
    rng = np.random.default_rng(seed)
    jobs = market.valued(runs.rounds)
    worth = max(max(job.values) for job in jobs)
    prices = rng.random((runs.rounds, 2)) ** 4 * worth * rng.choice([0.01, 0.1, 1.0])
    found = hadar_any_schedule.bound(
        jobs, market.capacity, prices, market.utilities.length, [Fraction(1)]
    )
    # Utilities of the theorem are doubles, those of the checker are exact.
    assert earned <= market.bound(found.unit, found.prices)
    assert float(market.bound(found.unit, found.prices)) == pytest.approx(float(found.dual))
    assert earned <= runs.bound(0.02).value


@settings(max_examples=8)
@given(instance=two_types())
def test_the_offline_plan_is_no_more_than_the_bound(instance: sp.Instance) -> None:
    options = sp.RunOptions(round_s=16.0)
    names = ["hadar:round_s=16", "fifo"]
    found = sp.compare_utility(
        instance.workload, instance.cluster, names, "effective_throughput", options, budget_s=0.1
    )
    assert all(row.ratio >= 1 for row in found.rows)
    if found.plan is not None:
        assert found.plan.utility <= float(found.bound.value) * (1 + 1e-6)
        if found.bound.whole_rounds and found.plan.proven:
            # Runs of whole rounds, with all jobs complete, are plans themselves.
            assert all(row.utility <= found.plan.utility * (1 + 1e-6) for row in found.rows)


def test_runs_without_rounds_beat_all_schedules_of_whole_rounds() -> None:
    """Two jobs of half a round on one GPU: why HADAR-cert must not be printed for such runs."""
    jobs = sp.Workload.from_columns(arrival_s=[0, 0], gpus=[1, 1], work=[8, 8])
    found = {}
    for round_s in (0.0, 16.0):
        options = sp.RunOptions(round_s=round_s)
        outcome = sp.simulate(jobs, "1x1", "fifo", options)
        assert isinstance(outcome, sp.Outcome)
        found[round_s] = outcome
    one_round = EarningRuns.of({"fifo": found[0.0]}, "completion_time", 16.0)
    rounds = EarningRuns.of({"fifo": found[16.0]}, "completion_time", 16.0)
    assert one_round.earned["fifo"] == Fraction(2, 16)
    assert rounds.earned["fifo"] == Fraction(1, 16) + Fraction(1, 32)
    prices = np.array([[1 / 32], [0.0]])
    aligned = rounds.bound(0.2, {"offered": prices})
    assert aligned.whole_rounds
    assert aligned.of_class.endswith("in whole rounds of 16.0 s")
    assert aligned.value == rounds.earned["fifo"] < one_round.earned["fifo"]
    mixed = sp.compare_utility(jobs, "1x1", ["fifo", "srtf"], "completion_time", budget_s=0.2)
    assert not mixed.bound.whole_rounds
    both = {"fifo": found[0.0], "rounds": found[16.0]}
    any_schedule = EarningRuns.of(both, "completion_time", 16.0).bound(0.2, {"offered": prices})
    assert not any_schedule.whole_rounds
    assert any_schedule.value >= Fraction(2, 16)


@settings(max_examples=35)
@given(
    seed=st.integers(0, 10**6),
    gpus=st.integers(1, 5),
    rounds=st.integers(1, 5),
    ticks=st.tuples(*[st.integers(5, 60)] * 3),
    arrival=st.integers(0, 25),
    share=st.fractions(min_value=Fraction(1, 2), max_value=1, max_denominator=8),
)
def test_the_least_cost_is_that_of_the_linear_programme(
    seed: int, gpus: int, rounds: int, ticks: tuple[int, ...], arrival: int, share: Fraction
) -> None:
    """Mixed gangs, all levels, a first round that is partly over; against HiGHS."""
    length, capacity = 10, np.array([2, 3, 1])
    prices = np.random.default_rng(seed).integers(0, 50, size=(rounds, 3))
    demand = BoundedJob(gpus, arrival, ticks, share, [1.0] * (rounds + 1))
    costs = list(least_costs(demand, capacity, prices, length))
    first = arrival // length
    assert len(costs) == max(rounds - first, 0)
    for last, cost in zip(range(first, rounds), costs, strict=True):
        expected = programme(demand, capacity, prices, length, last)
        assert (cost is None) == (expected is None)
        if cost is not None and expected is not None:
            assert float(cost) == pytest.approx(expected, abs=1e-6)


def programme(
    demand: BoundedJob, capacity: np.ndarray, prices: np.ndarray, length: int, last: int
) -> float | None:
    """The definition of C_j(f), with a variable for every gang."""
    gangs = [
        (a, b, c)
        for a in range(capacity[0] + 1)
        for b in range(capacity[1] + 1)
        for c in range(capacity[2] + 1)
        if a + b + c == demand.gpus
    ]
    cost, work, rows = [], [], []
    first = demand.arrival // length
    for number in range(first, last + 1):
        for gang in gangs:
            slowest = max(t for t, held in zip(demand.ticks, gang, strict=True) if held)
            cost.append(float(np.dot(gang, prices[number])))
            work.append(length / slowest)
            rows.append(number - first)
    if not gangs:
        return None
    time = np.zeros((last - first + 1, len(rows)))
    time[rows, np.arange(len(rows))] = 1.0
    left = [min((n + 1) * length - demand.arrival, length) / length for n in range(first, last + 1)]
    solved = linprog(
        cost, A_ub=np.vstack([time, [-each for each in work]]), b_ub=[*left, -float(demand.share)]
    )
    return float(solved.fun) if solved.status == 0 else None


def test_prices_and_utilities_that_are_refused() -> None:
    demand = BoundedJob(1, 0, (10,), Fraction(1), [1.0, 0.5])
    one, price = np.array([1]), np.array([[0.1]])
    found = hadar_any_schedule.bound([demand], one, price, 10)
    assert Fraction(9, 10) <= found.dual <= 1
    with pytest.raises(VerificationError, match="negative or not finite"):
        hadar_any_schedule.bound([demand], one, -price, 10)
    rising = BoundedJob(1, 0, (10,), Fraction(1), [0.5, 1.0])
    with pytest.raises(VerificationError, match="do not increase"):
        hadar_any_schedule.bound([rising], one, price, 10)


@given(instance=two_types(), name=st.sampled_from(NAMES))
def test_verified_runs_do_their_work(instance: sp.Instance, name: str) -> None:
    outcome = sp.simulate(instance.workload, instance.cluster, name)
    assert isinstance(outcome, sp.Outcome)
    rows = max(len(outcome.schedule), 1)
    for share, whole in zip(shares_done(outcome), instance.shortest_s.tolist(), strict=True):
        assert abs(float(share) - 1) <= 1e-8 + 8 * rows / (whole * TICKS_PER_S)
        assert math.isfinite(share)
