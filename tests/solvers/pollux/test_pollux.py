"""Policies of jobs with goodput: Pollux, Sia, AFS, on drawn jobs and on recorded ones."""

from __future__ import annotations

import json
import lzma
from collections import Counter
from time import process_time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shadowprice as sp
from shadowprice.errors import InputError
from shadowprice.execution.engine import Rounds, run
from shadowprice.instances.goodput.application import Application
from shadowprice.instances.goodput.tables import load_applications
from shadowprice.instances.schedule import Schedule
from shadowprice.instances.terms.goodput import Goodput
from shadowprice.instances.workload import Workload
from shadowprice.proofs.certificate import verify
from shadowprice.solvers.pollux.pollux import Genetic, Pollux, RoundProgramme
from shadowprice.solvers.pollux.search import searched
from shadowprice.solvers.registry import policy
from support.elastic_jobs import elastic_instance
from support.elastic_rounds import drawn_round
from support.paths import ROOT

RECORDED = ROOT.parent / "shared" / "golden" / "recorded"
NAMES = ("pollux", "pollux-exact", "sia", "afs")
SEEDS = st.integers(0, 10**6)


def shares_a_node(schedule: Schedule) -> bool:
    """Whether two jobs that are each on several nodes are on one node at one time."""
    columns = schedule.job, schedule.node, schedule.start_s, schedule.end_s
    rows = list(zip(*(each.tolist() for each in columns), strict=True))
    pieces = Counter((job, start) for job, _, start, _ in rows)
    spread = [row for row in rows if pieces[row[0], row[2]] > 1]
    return any(
        one[1] == other[1] and one[0] < other[0] and one[2] < other[3] and other[2] < one[3]
        for one in spread
        for other in spread
    )


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=4)
@given(jobs=st.integers(1, 5), seed=SEEDS, fixed=st.booleans())
def test_runs_are_verified_and_the_same_again(name: str, jobs: int, seed: int, fixed: bool) -> None:
    instance = elastic_instance(jobs, 2, 2, seed, fixed=fixed)
    rounds = Rounds(60.0, 60.0)
    # Two nodes of two GPUs have few matrices: a small population has met them.
    tried = Pollux(method=Genetic(size=20, generations=20)) if name == "pollux" else policy(name)
    first = run(instance, tried, rounds=rounds).schedule
    verify(instance, first)
    again = run(instance, tried, rounds=rounds).schedule
    assert np.array_equal(first.start_s, again.start_s)
    assert np.array_equal(first.node, again.node)
    if name.startswith("pollux"):
        assert not shares_a_node(first)


def test_a_job_doubles_at_most_what_it_ran_on() -> None:
    schedule = run(elastic_instance(1, 4, 2, 3), Pollux(), rounds=Rounds(60.0, 60.0)).schedule
    starts = np.unique(schedule.start_s)
    widths = [int(schedule.gpus[schedule.start_s == start].sum()) for start in starts]
    assert widths[0] == 1
    assert max(widths) > 2
    assert all(after <= 2 * max(widths[: k + 1]) for k, after in enumerate(widths[1:]))


def test_numbers_of_the_policy_are_checked() -> None:
    with pytest.raises(InputError, match="expected seconds, the first > 0"):
        Pollux(round_s=0.0)
    assert Pollux(method=RoundProgramme(1.0)) != Pollux(method=Genetic(1))


@pytest.mark.slow
def test_a_decision_for_160_jobs_on_64_gpus_takes_at_most_a_second() -> None:
    costs = drawn_round(160, 16, np.random.default_rng(0), gpus=4)
    start, draw = costs.held[None], np.random.default_rng(0)
    searched(costs, start, draw, generations=1)
    before_s = process_time()
    searched(costs, start, draw)
    assert process_time() - before_s <= 1.0


# Recorded: the runs of the authors.


def recorded(name: str) -> Any:
    """A file of recorded runs; the test is skipped where it is not."""
    file = RECORDED / f"{name}.json.xz"
    if not file.exists():
        pytest.skip(f"{file} is not here")
    return json.loads(lzma.decompress(file.read_bytes()))


@pytest.fixture(scope="module")
def applications(tmp_path_factory: pytest.TempPathFactory) -> tuple[Application, ...]:
    """Those of the recorded profile tables."""
    folder = tmp_path_factory.mktemp("traces")
    for name, text in recorded("pollux_profile_tables")["tables"].items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return load_applications(folder)


def mean_jct_s(name: str, applications: tuple[Application, ...]) -> tuple[float, dict[str, float]]:
    """Mean JCT of a recorded workload under Pollux, and the authors' of all policies [s]."""
    data = recorded("pollux_osdi21")
    rows = list(zip(*data["workloads"][name]["rows"], strict=True))
    jobs = Workload.from_columns(
        id=list(rows[0]),
        arrival_s=[float(each) for each in rows[1]],
        model=list(rows[2]),
        gpus=[int(each) for each in rows[3]],
        batch_size=[int(each) for each in rows[4]],
        work=[1.0] * len(rows[0]),
    )
    load, number = name.split("/")
    theirs = {
        system: data["runs"][f"results-jobload/{system}-{load}"]["avgs"][number]
        for system in ("pollux", "optimus", "tiresias")
    }
    options = sp.RunOptions(preset="pollux", declared=(Goodput(applications),))
    return sp.simulate(jobs, "16x4", "pollux", options).summary()["avg_jct_s"], theirs


@pytest.mark.slow
def test_a_recorded_workload_takes_as_long_as_recorded(
    applications: tuple[Application, ...],
) -> None:
    ours, theirs = mean_jct_s("0.5/workload-5", applications)
    assert ours == pytest.approx(theirs["pollux"], rel=0.05)
    assert ours < min(theirs["optimus"], theirs["tiresias"])


@pytest.mark.slow
@pytest.mark.parametrize("load", ["0.5", "1.0"])
def test_the_mean_of_the_eight_workloads_is_that_recorded(
    load: str, applications: tuple[Application, ...]
) -> None:
    runs = [mean_jct_s(f"{load}/workload-{number}", applications) for number in range(1, 9)]
    ours = np.mean([jct_s for jct_s, _ in runs])
    theirs = {name: np.mean([means[name] for _, means in runs]) for name in runs[0][1]}
    assert ours == pytest.approx(theirs["pollux"], rel=0.05)
    assert ours < min(theirs["optimus"], theirs["tiresias"])
