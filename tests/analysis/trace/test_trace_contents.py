"""What is in a trace, laws fitted to one, and other arrivals: against counts, and as laws."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from shadowprice.analysis.trace.contents import MOST_GROUPS, contents
from shadowprice.analysis.trace.figures import durations_figure
from shadowprice.analysis.trace.fit import FittedParameter, fit, read_parameters, write_fit
from shadowprice.analysis.trace.page import NO_NUMBER, summary_rows, trace_page
from shadowprice.cli.app import app
from shadowprice.errors import InputError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.generators import generate
from shadowprice.instances.generators.rescaling import (
    at_load,
    offered_load,
    poisson_arrivals_of,
    shuffled,
)
from shadowprice.instances.workload import COLUMNS, Workload
from shadowprice.instances.workload_files import write_workload

JOB = st.tuples(
    st.integers(0, 200_000),
    st.integers(1, 9),
    st.integers(1, 5000),
    st.sampled_from(["", "HP", "Spot"]),
    st.integers(0, 30),
    st.sampled_from(["", "g", "h"]),
)


def jobs_of(rows: list[tuple[int, int, int, str, int, str]]) -> Workload:
    arrival, gpus, work, job_class, tenant, group = zip(*rows, strict=True)
    return Workload.from_columns(
        arrival_s=arrival,
        gpus=gpus,
        work=work,
        job_class=list(job_class),
        tenant=[f"t{each}" for each in tenant],
        group=list(group),
    )


@given(st.lists(JOB, min_size=1, max_size=40))
def test_contents_are_those_of_a_count(rows: list[tuple[int, int, int, str, int, str]]) -> None:
    jobs = jobs_of(rows)
    cluster = Cluster.parse("1x8")
    found, here = contents(jobs), contents(jobs, cluster)
    gpu_s = sum(gpus * work for _, gpus, work, *_ in rows)
    assert found.gpu_h == pytest.approx(gpu_s / 3600)
    assert sum(found.by_hour) == len(rows)
    for parts in (found.by_gang, found.by_tenant, found.by_class):
        if parts:
            assert sum(part.jobs for part in parts) == len(rows)
            assert math.fsum(part.gpu_h for part in parts) == pytest.approx(found.gpu_h)
            assert math.fsum(part.share_of_gpu_time for part in parts) == pytest.approx(1)
            assert len(parts) <= MOST_GROUPS + 1
    for part in found.by_gang:
        mine = [work for _, gpus, work, *_ in rows if str(gpus) == part.name]
        assert (part.jobs, part.median_s) == (len(mine), np.median(mine))
    assert here.infeasible == sum(gpus > 8 for _, gpus, *_ in rows)
    groups = [group for *_, group in rows if group]
    if not groups:
        assert found.recurrence is None
    else:
        assert found.recurrence is not None
        again = [group for group in groups if groups.count(group) > 1]
        assert found.recurrence.groups == len(set(again))
        assert found.recurrence.jobs == len(again)
    json.dumps(here.document(), allow_nan=False)


@given(st.lists(JOB, min_size=2, max_size=40), st.floats(0.01, 50), st.integers(0, 9))
def test_other_arrivals_leave_the_jobs_as_they_are(
    rows: list[tuple[int, int, int, str, int, str]], load: float, seed: int
) -> None:
    jobs = jobs_of(rows)
    if jobs.arrival_s[0] == jobs.arrival_s[-1]:
        with pytest.raises(InputError, match="arrive at one moment"):
            at_load(jobs, load, 8)
        return
    scaled = at_load(jobs, load, 8)
    assert offered_load(scaled, 8) == pytest.approx(load, rel=1e-3)
    poisson = poisson_arrivals_of(jobs, seed)
    assert poisson == poisson_arrivals_of(jobs, seed)
    for other in (scaled, poisson):
        for name in set(COLUMNS) - {"arrival_s"}:
            assert getattr(other, name).tolist() == getattr(jobs, name).tolist()
    mixed = shuffled(jobs, seed)
    assert mixed.arrival_s.tolist() == jobs.arrival_s.tolist()
    row = [jobs.row_of[name] for name in mixed.id.tolist()]
    assert sorted(row) == list(range(len(jobs)))
    for name in set(COLUMNS) - {"arrival_s", "deadline_s"}:
        assert getattr(mixed, name).tolist() == getattr(jobs, name)[row].tolist()


def test_poisson_arrivals_have_the_gaps_of_a_poisson_process() -> None:
    jobs = generate("lognormal", jobs=20_000, seed=1, load=0.5, gpus_total=64)
    gaps = np.diff(poisson_arrivals_of(jobs, 3, load=0.9, gpus_total=64).arrival_s)
    assert gaps.std() / gaps.mean() == pytest.approx(1, abs=0.03)
    loaded = poisson_arrivals_of(jobs, 3, load=0.9, gpus_total=64)
    assert offered_load(loaded, 64) == pytest.approx(0.9, rel=0.04)


def holds(estimate: FittedParameter, value: float) -> bool:
    """Within 4.5 standard deviations: by chance not once in a hundred thousand."""
    width = 4.5 / 1.96
    low = estimate.value - width * (estimate.value - estimate.low)
    return low <= value <= estimate.value + width * (estimate.high - estimate.value)


@given(
    st.floats(200, 5000),
    st.floats(0.5, 2.5),
    st.floats(1, 500),
    st.integers(0, 2**32),
    st.booleans(),
)
def test_a_fit_of_what_was_generated_finds_the_parameters(
    median_s: float, sigma: float, jobs_per_hour: float, seed: int, clipped: bool
) -> None:
    ends = {"shortest_s": 60.0, "longest_s": 20_000.0} if clipped else {}
    wide = {"shortest_s": 1.0, "longest_s": 4e9}
    jobs = generate(
        "lognormal",
        jobs=800,
        seed=seed,
        jobs_per_hour=jobs_per_hour,
        median_s=median_s,
        sigma=sigma,
        **(ends or wide),
    )
    found = fit(jobs)
    assert holds(found.median_s, median_s)
    assert holds(found.sigma, sigma)
    assert holds(found.jobs_per_hour, jobs_per_hour)
    assert found.distance < 0.1
    assert sum(found.gang_shares.values()) == pytest.approx(1)


def test_parameters_are_written_and_generated_from(tmp_path: Path) -> None:
    jobs = generate("lognormal", jobs=500, seed=4)
    found = fit(jobs)
    write_fit(found, "here", tmp_path / "law.json")
    name, parameters = read_parameters(tmp_path / "law.json")
    assert (name, parameters) == ("lognormal", found.parameters())
    runner = CliRunner()
    command = ["generate", "lognormal", "--parameters", str(tmp_path / "law.json"), "--seed", "4"]
    done = runner.invoke(app, [*command, "-o", str(tmp_path / "like.csv"), "--jobs", "50"])
    assert done.exit_code == 0, done.output
    assert len((tmp_path / "like.csv").read_text().splitlines()) == 51
    busy = [*command, "--load", "2", "--gpus", "32", "-o", str(tmp_path / "busy.csv")]
    assert runner.invoke(app, busy).exit_code == 0
    other = runner.invoke(
        app,
        ["generate", "tiresias", *command[2:], "-o", str(tmp_path / "b.csv")],
    )
    assert "is for generator 'lognormal', expected 'tiresias'" in str(other.exception)
    (tmp_path / "law.json").write_text('{"generator": "lognormal"}')
    with pytest.raises(InputError, match="parameters"):
        read_parameters(tmp_path / "law.json")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"gpu_milli": 500}, "hold parts of GPUs"),
        ({"throughput": [[1.0]] * 4, "gpu_types": ("a",)}, "its work is iterations"),
        ({"arrival_s": [5] * 4}, "three run times or more, at different times"),
        ({"work": [1, 1, 2, 2]}, "three run times or more, at different times"),
    ],
)
def test_what_cannot_be_fitted(columns: dict[str, object], message: str) -> None:
    usual = {"arrival_s": [0, 1, 2, 3], "gpus": 1, "work": [1, 2, 3, 4]}
    with pytest.raises(InputError, match=message):
        fit(Workload.from_columns(**{**usual, **columns}))


def test_a_page_asks_the_network_for_nothing_and_escapes_names() -> None:
    rows = [(k * 50, 1 + k % 9, 10 + k, "HP", k % 20, "g") for k in range(60)]
    jobs = jobs_of(rows)
    named = Workload.from_frame(jobs.to_frame().assign(tenant="<script>alert(1)</script>"))
    text = trace_page(named, Cluster.parse("4x8"), ["rows read 60, kept 60", "note: <b>"])
    assert "<script>alert" not in text
    assert "note: &lt;b&gt;" in text
    assert "src=" not in text.split("</head>")[1]
    assert "default-src &#39;none&#39;" in text or "default-src 'none'" in text
    for name in ("arrivals", "durations", "demand", "parts0", "parts2"):
        assert f'id="{name}"' in text


def test_commands(tmp_path: Path) -> None:
    runner, path = CliRunner(), tmp_path / "jobs.csv"
    write_workload(generate("lognormal", jobs=60, seed=1), path)
    shown = runner.invoke(app, ["trace", str(path), "--cluster", "8x8", "--json"])
    assert json.loads(shown.stdout)["jobs"] == 60
    table = runner.invoke(app, ["trace", str(path), "--page", str(tmp_path / "page.html")])
    assert table.exit_code == 0, table.output
    assert "GPU time [GPU-h]" in table.stdout
    assert (tmp_path / "page.html").stat().st_size > 10_000
    scale = ["trace", str(path), "--force", "-o", str(tmp_path / "scaled.csv")]
    done = runner.invoke(app, [*scale, "--cluster", "8x8", "--load", "0.9", "--shuffle"])
    assert done.exit_code == 0, done.output
    shown = runner.invoke(
        app, ["trace", str(tmp_path / "scaled.csv"), "--cluster", "8x8", "--json"]
    )
    assert json.loads(shown.stdout)["load"] == pytest.approx(0.9)
    assert runner.invoke(app, [*scale, "--arrivals", "poisson"]).exit_code == 0
    for options, message in (
        (["--load", "1"], "--load: goes with --cluster"),
        (["--arrivals", "weibull"], "expected poisson"),
    ):
        assert message in str(runner.invoke(app, [*scale, *options]).exception)


@pytest.mark.parametrize("types", ["", "cores"])
def test_what_a_trace_of_one_job_does_not_have_is_said_in_a_word(types: str) -> None:
    jobs = Workload.from_columns(arrival_s=[5], gpus=[2], work=[10], allowed_types=[types])
    cluster = Cluster.parse("1x2,1x2:cores")
    rows = summary_rows(contents(jobs, cluster), cluster)
    assert ("mean time between arrivals [s]", NO_NUMBER) in rows
    outside = re.sub(r"<script.*?</script>", "", trace_page(jobs, cluster), flags=re.DOTALL)
    assert re.search(r"\bnan", outside) is None


@given(st.lists(st.integers(1, 50), min_size=1, max_size=900))
def test_the_curve_of_run_times_says_how_many_run_at_most_as_long(run_s: list[int]) -> None:
    jobs = Workload.from_columns(arrival_s=[0] * len(run_s), gpus=[1] * len(run_s), work=run_s)
    times_s = np.array(run_s, dtype=float)
    (curve, *_) = durations_figure(jobs, contents(jobs), times_s).data
    assert (curve.y[0], curve.y[-1]) == (0.0, 1.0)
    assert (curve.x[0], curve.x[-1]) == (times_s.min(), times_s.max())
    highest = dict(zip(curve.x[1:], curve.y[1:], strict=True))
    for time_s, share in highest.items():
        at_most = float((times_s <= time_s).mean())
        # Beyond 400 jobs some ranks are left out.
        assert 0.0 <= at_most - share <= (0.0 if len(run_s) <= 400 else 1 / 400)
