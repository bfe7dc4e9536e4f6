"""What speeds depend on, from the command line: read, run, kept, verified again; or refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

import shadowprice as sp
from shadowprice.analysis.bounds import bounds_of
from shadowprice.analysis.certificates.effort import BoundEffort
from shadowprice.analysis.compare import compare
from shadowprice.analysis.preparation import prepare_run
from shadowprice.analysis.run_directory.directory import load
from shadowprice.analysis.run_options import RunOptions
from shadowprice.cli.app import app
from shadowprice.errors import InputError
from shadowprice.instances.speeds.interference import Interference
from shadowprice.instances.speeds.model_skew import published_skews
from shadowprice.instances.speeds.profiles import Profiles
from shadowprice.instances.terms.widths import Growth
from shadowprice.solvers.tiresias.gittins_index import ServiceDistribution


def call(capsys, *words):
    """Run a command; what it printed."""
    app([str(word) for word in words], standalone_mode=False)
    return capsys.readouterr()


@pytest.fixture
def trace(tmp_path):
    def write(models):
        path = tmp_path / "jobs.csv"
        rows = [
            f"{k},{k % 3 + 1},{50 * k},{400 + 10 * k},{models[k % len(models)]}" for k in range(12)
        ]
        path.write_text("id,gpus,submit,duration,model\n" + "\n".join(rows) + "\n")
        return path

    return write


def test_profiles_are_kept_with_the_run(capsys, trace, tmp_path):
    path = trace(["AlexNet", "gnmt", "unheard-of"])
    words = ("simulate", path, "--cluster", "2x4+12cpu+250gb", "--with", "profiles")
    printed = call(
        capsys, *words, "--policy", "synergy-tune:srtf", "-o", tmp_path / "run", "--json"
    )
    assert "no profile of unheard-of" in printed.err
    run = load(tmp_path / "run")
    assert run.schedule.cpus is not None
    assert run.instance.sensitivity.best.max() == pytest.approx(2.94)
    assert json.loads(printed.out)["avg_jct_s"] == run.summary()["avg_jct_s"]


@pytest.mark.parametrize(
    ("options", "models", "cluster", "faster"),
    [
        (("--with", "spread", "--policy", "fifo"), ["VGG19", "resnet50"], "3x2", False),
        (
            ("--with", "sharing", "--policy", "gandiva"),
            ["VAE", "res-net-50"],
            "3x2",
            True,
        ),
        (("--with", "widths:widest=4", "--policy", "gandiva"), ["VAE"], "12x4", True),
    ],
)
def test_conditions_change_the_run(capsys, trace, options, models, cluster, faster):
    words = ("simulate", trace(models), "--cluster", cluster, "--json")
    plain = json.loads(call(capsys, *words, *options[2:]).out)
    changed = json.loads(call(capsys, *words, *options).out)
    assert changed["verified"]
    assert changed["avg_jct_s"] != plain["avg_jct_s"]
    assert (changed["avg_jct_s"] < plain["avg_jct_s"]) == faster


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--with", "profiles"), "need both"),
        (("--with", "profiles:file=none.json"), "no such file"),
        (("--with", "spread:file=table.txt"), "expected .json or .toml"),
        (("--with", "widths:widest=wide"), "expected a number of GPUs from 1"),
        (("--with", "widths:file=none.json"), "none.json: no such file"),
        (("--with", "sharing:file=none.json"), "none.json"),
        (("--with", "sharing"), "has model 'gnmt', which the table of utilisations"),
    ],
)
def test_what_is_wrong_is_named(trace, options, says):
    with pytest.raises(InputError, match=says):
        app(
            ["simulate", str(trace(["gnmt"])), "--cluster", "2x4", "--policy", "fifo", *options],
            standalone_mode=False,
        )


def test_a_file_of_utilisations(capsys, trace, tmp_path):
    file = tmp_path / "busy.json"
    file.write_text('{"gnmt": 0.3}')
    words = ("simulate", trace(["GNMT"]), "--cluster", "3x2", "--policy", "gandiva", "--json")
    assert json.loads(call(capsys, *words, "--with", f"sharing:file={file}").out)["verified"]
    file.write_text('{"gnmt": "much"}')
    with pytest.raises(InputError, match=r"busy.json\['gnmt'\] is 'much', expected a number"):
        call(capsys, *words, "--with", f"sharing:file={file}")


def jobs(models):
    return sp.Workload.from_columns(
        arrival_s=np.arange(8) * 10,
        gpus=1 + np.arange(8) % 4,
        work=100 + np.arange(8),
        model=models,
    )


def test_rates_for_sharing_are_given_once():
    table = sp.Throughputs(("gpu",), {}, {}, "a table")
    with pytest.raises(InputError, match="given twice, by a table"):
        sp.simulate(
            jobs("VAE"),
            "2x4",
            "fifo",
            RunOptions(interference=Interference(), sharing_rates=table),
        )


def test_bounds_are_of_the_conditions_a_policy_had():
    """A preset without profiles is measured with another yardstick than one with them."""
    profiled = RunOptions(preset="synergy", profiles=Profiles.synthetic())
    found = compare(
        jobs("alexnet"),
        "2x4+12cpu+250gb",
        ["FIFO+fair", "FIFO+tune"],
        "completion",
        profiled,
        budget_s=0.0,
    )
    alone = {
        name: next(
            bound.value_s
            for bound in bounds_of(run.instance, "completion", BoundEffort(0.0))
            if bound.kind == "job"
        )
        for name, run in found.outcomes.items()
    }
    assert alone["FIFO+fair"] > alone["FIFO+tune"]
    assert all(row.ratio >= 1.0 for row in found.rows)


def test_a_sample_of_services_is_for_gittins():
    sample = ServiceDistribution(np.array([50.0, 100.0, 400.0]))
    told = RunOptions(samples=sample)
    policy = prepare_run(jobs("a"), "2x4", "gittins2d", told).policy
    assert (policy.learned, policy.sample) == ("sample", sample)
    assert not policy.knows
    online = prepare_run(jobs("a"), "2x4", "gittins2d:learned=online", told).policy
    assert (online.learned, online.sample) == ("online", sample)


def test_placement_by_skew_uses_the_given_table():
    skews = published_skews()
    switches = RunOptions(skews=skews, placement="skew:pack_limit=0.1")
    place = prepare_run(jobs("VGG19"), "2x4", "fifo", switches).placement
    assert place.skews is skews
    assert place.pack_limit == 0.1


def test_growth_stays_within_a_node():
    widths = Growth(16, 0.8).of(jobs("a"), sp.Cluster.parse("1x4,2x2"))
    assert widths.widest.tolist() == [4] * 8
