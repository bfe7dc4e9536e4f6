"""The optimistic profiler: the sweep, the memory formula, and the command line."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from shadowprice.cli.panels import shown
from shadowprice.errors import InputError
from shadowprice.hosts.cli.profile import profile_command
from shadowprice.hosts.profiling.limited_command import available_cpus
from shadowprice.hosts.profiling.profiler import (
    CACHED_SHARES,
    Storage,
    measure_profile,
    sweep,
)
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.speeds.profiles import Profiles
from shadowprice.instances.workload import Workload

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="CPUs are limited on Linux only")

SCALES = """
import os, time
from multiprocessing import get_context
UNITS = 2_000_000
def work(units):
    began = time.process_time()
    for k in range(units):
        k * k
    return time.process_time() - began
if __name__ == "__main__":
    cpus = int(os.environ["SHADOWPRICE_CPUS"])
    assert len(os.sched_getaffinity(0)) == cpus
    with get_context("fork").Pool(cpus) as pool:
        longest = max(pool.map(work, [UNITS // cpus] * cpus))
    print("epoch 1 done")
    print(f"throughput={UNITS / longest}")
"""
"""Divides its work among as many processes as it has CPUs, and counts CPU time: other load is not measured."""


class Asked:
    """A throughput that remembers for how many CPUs it was asked."""

    def __init__(self, rate: Callable[[int], float]) -> None:
        self.rate, self.cpus = rate, list[int]()

    def __call__(self, cpus: int) -> float:
        self.cpus.append(cpus)
        return self.rate(cpus)


@given(rates=st.lists(st.floats(0.01, 100.0), min_size=1, max_size=40), gpus=st.integers(1, 8))
def test_the_sweep_follows_the_published_rule(rates: list[float], gpus: int) -> None:
    asked = Asked(lambda cpus: rates[cpus - 1])
    points = sweep(asked, len(rates), gpus)
    # The first run is repeated, the others are not.
    assert asked.cpus == [len(rates), *(cpus for cpus, _ in points)]
    assert all(rate == rates[cpus - 1] for cpus, rate in points)
    for k, (cpus, rate) in enumerate(points):
        before_s, now_s = 1.0 / points[k - 1][1], 1.0 / rate
        change = abs(now_s - before_s) / before_s
        if k and abs(change - 0.1) < 1e-9:
            return
        following = cpus // 2 if k and change < 0.1 else cpus - gpus
        assert (points[k + 1][0] if k + 1 < len(points) else 0) == max(following, 0)


@pytest.mark.parametrize(
    ("rate", "gpus", "cpus"),
    [
        (lambda _: 5.0, 1, [24, 23, 11, 5, 2, 1]),
        (lambda cpus: 2.0**cpus, 1, [*range(24, 0, -1)]),
        (lambda cpus: 2.0**cpus, 4, [24, 20, 16, 12, 8, 4]),
        (lambda cpus: min(cpus, 8.0), 2, [24, 22, 11, 5, 3, 1]),
    ],
)
def test_the_sweep_of_some_models(rate: Callable[[int], float], gpus: int, cpus: list[int]) -> None:
    assert [count for count, _ in sweep(rate, 24, gpus)] == cpus


@given(
    knee=st.integers(1, 12),
    gpus=st.integers(1, 4),
    dataset_gb=st.floats(1.0, 1000.0),
    disk=st.floats(0.05, 5.0),
    faster=st.floats(1.0, 50.0),
    process_gb=st.floats(0.0, 10.0),
)
def test_memory_is_filled_by_the_formula(
    knee: int, gpus: int, dataset_gb: float, disk: float, faster: float, process_gb: float
) -> None:
    storage = Storage(dataset_gb, disk, disk * faster, process_gb)
    units = 1000.0
    found = measure_profile(
        lambda cpus: 10.0 * min(cpus, knee), storage, max_cpus=12, gpus=gpus, units_per_epoch=units
    )
    profile = found.profile
    assert len(profile.memory_gb_per_gpu) == len(CACHED_SHARES) == 11
    assert profile.memory_gb_per_gpu[[0, -1]] * gpus == pytest.approx(
        [process_gb, process_gb + dataset_gb]
    )
    for row, (cpus, rate) in enumerate(sorted(found.points)):
        assert profile.cpus_per_gpu[row] == cpus / gpus
        for column, q in enumerate(CACHED_SHARES):
            fetch_s = q * dataset_gb / (disk * faster * cpus) + (1 - q) * dataset_gb / disk
            assert profile.speed[row, column] == pytest.approx(units / max(units / rate, fetch_s))


def test_all_memory_is_what_was_measured_and_no_more_cpus_are_slower() -> None:
    rates = {8: 90.0, 7: 120.0, 6: 60.0, 5: 40.0, 4: 30.0, 3: 20.0, 2: 10.0, 1: 5.0}
    found = measure_profile(
        lambda cpus: rates[cpus], Storage(1.0, 1e6), max_cpus=8, gpus=1, units_per_epoch=1e6
    )
    assert found.points == tuple(rates.items())
    assert found.profile.speed[:, -1].tolist() == [5.0, 10.0, 20.0, 30.0, 40.0, 60.0, 120.0, 120.0]
    assert found.profile.demand()[0] == 7.0


def test_it_needs_few_runs() -> None:
    """As the language models: nothing to gain, so halving; a tenth of all cells and less."""
    found = measure_profile(
        lambda _: 3.0, Storage(10.0, 1.0), max_cpus=24, gpus=1, units_per_epoch=100.0
    )
    assert len(found.points) + 1 == 7
    assert found.cells >= 9 * (len(found.points) + 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"max_cpus": 0}, "max_cpus is 0"),
        ({"max_cpus": 1.5}, "max_cpus is 1.5"),
        ({"gpus": 0}, "gpus is 0"),
        ({"units_per_epoch": 0.0}, "units_per_epoch is 0"),
        ({"throughput": lambda _: 0.0}, "throughput with 4 CPUs is 0.0"),
        ({"throughput": lambda _: math.nan}, "throughput with 4 CPUs is nan"),
    ],
)
def test_what_the_profiler_refuses(change: dict[str, Any], message: str) -> None:
    usual: dict[str, Any] = {
        "throughput": lambda _: 1.0,
        "max_cpus": 4,
        "gpus": 1,
        "units_per_epoch": 1.0,
    }
    usual |= change
    with pytest.raises(InputError, match=message):
        measure_profile(usual.pop("throughput"), Storage(1.0, 1.0), **usual)


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ((0.0, 1.0), "dataset_gb is 0"),
        ((1.0, 0.0), "disk_gb_per_s is 0"),
        ((1.0, math.nan), "disk_gb_per_s is nan"),
        ((1.0, 2.0, 1.0), "memory_gb_per_s_per_cpu is 1.0, expected at least disk_gb_per_s, 2"),
        ((1.0, 1.0, math.nan), "memory_gb_per_s_per_cpu is nan"),
        ((1.0, 1.0, 1.0, -1.0), "process_gb is -1"),
    ],
)
def test_storage_that_is_none(numbers: tuple[float, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Storage(*numbers)


def app() -> typer.Typer:
    found = typer.Typer()
    found.command(**shown("profile"))(profile_command)
    return found


USUAL = ["--model", "tiny", "--storage", "dataset_gb=4,disk_gb_per_s=0.5"]


def test_a_real_command_is_profiled_and_its_file_is_read(tmp_path: Path) -> None:
    script, path = tmp_path / "scales.py", tmp_path / "profile.json"
    script.write_text(SCALES)
    cpus = min(2, len(available_cpus()))
    given_options = [*USUAL, "--units-per-epoch", "1e12", "--max-cpus", str(cpus), "-o", str(path)]
    given_options.append("--force")  # A further try writes the file again.
    for _ in range(5):
        result = CliRunner().invoke(app(), [*given_options, "--", sys.executable, str(script)])
        assert result.exit_code == 0, result.output
        table = Profiles.load(path).table("tiny", 1)
        assert table is not None
        assert table.cpus_per_gpu.tolist() == list(range(1, cpus + 1))
        gain = table.speed[-1, -1] / table.speed[0, -1]
        if cpus < 2 or 1.3 < gain < 3.0:
            break  # twice as fast on two: shown only if nobody else had one of them meanwhile
    else:
        pytest.fail(f"{gain} times as fast on two CPUs")
    # The disk needs 8 s for an epoch of days: memory does not matter.
    assert np.ptp(table.speed, axis=1).max() == 0.0
    record = json.loads(path.read_text())["profiles"][0]["measured"]
    assert record["command"] == [sys.executable, str(script)]
    assert record["units_per_s_by_cpus"][str(cpus)] == table.speed[-1, -1]
    jobs = Workload.from_columns(arrival_s=[0], gpus=[1], work=[60], model=["tiny"])
    assert Profiles.load(path).of(jobs, Cluster.parse("1x4+4cpu+16gb")).best[0] == pytest.approx(
        table.best / table.at(1.0, 4.0)
    )


def test_timed_work_from_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "profile.json"
    options = [*USUAL, "--units-per-epoch", "10", "--max-cpus", "1", "-o", str(path)]
    sleep = "import time; time.sleep(0.2)"
    command = ["--work-per-run", "1", "--", sys.executable, "-c", sleep]
    result = CliRunner().invoke(app(), [*options, "--csv", *command])
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("cpus,units_per_s\n1,")
    table = Profiles.load(path).table("tiny", 1)
    assert table is not None
    # At most 1 unit in 0.2 s; without a cache 10 units in 8 s.
    assert table.speed[0, 0] <= 10 / 8 + 1e-9
    assert table.speed[0, 0] <= table.speed[0, -1] <= 5.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--", sys.executable, "-c", "pass"], "printed no line throughput"),
        (["--timeout", "0.3", "--", "sleep", "9"], "did not end within"),
        (["--max-cpus", "4096", "--", "sleep", "9"], "expected 1 to"),
        (["--gpus", "0", "--", "sleep", "9"], "gpus is 0"),
        (["--storage", "dataset_gb=4", "--", "true"], "--storage: has no disk_gb_per_s"),
        (["--storage", "dataset=4", "--", "true"], "--storage: unknown key 'dataset'"),
        (["--", "no-such-program-here"], "no program"),
    ],
)
def test_errors_on_the_command_line(tmp_path: Path, options: list[str], message: str) -> None:
    path = tmp_path / "profile.json"
    cpus = [] if "--max-cpus" in options else ["--max-cpus", "1"]
    given_options = [*USUAL, "--units-per-epoch", "10", *cpus, "-o", str(path)]
    result = CliRunner().invoke(app(), [*given_options, *options])
    assert isinstance(result.exception, InputError)
    assert message in str(result.exception)
    assert not path.exists()
