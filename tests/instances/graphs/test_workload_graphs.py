"""Traces with job graphs: graphs from model names, options of simulate and compare, guarantees."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import shadowprice as sp
from shadowprice.analysis.guarantees.lookup import (
    FactorGuarantee,
    Statement,
    UnmetHypotheses,
    guarantee,
)
from shadowprice.analysis.outcome import Outcome
from shadowprice.errors import InputError
from shadowprice.instances.graphs.generated_graphs import TrainingSetting, workload_graphs
from shadowprice.instances.graphs.network import Network
from shadowprice.proofs.asrpt import sharper as asrpt_sharper
from shadowprice.proofs.described_run import DescribedRun
from shadowprice.solvers.asrpt.asrpt import Asrpt
from shadowprice.solvers.policy import Policy
from shadowprice.solvers.registry import policy
from support.command_line import CommandLine

NETWORK = Network(300e9, 12.5e9, 8)


def jobs(n: int = 40, seed: int = 0) -> sp.Workload:
    return sp.generate("recurrent", jobs=n, seed=seed, load=0.8, gpus_total=32)


def test_equal_jobs_share_a_graph_and_gangs_are_right() -> None:
    trace = jobs(100)
    graphs = workload_graphs(trace, NETWORK)
    assert len(graphs.graph) == len(set(zip(trace.model, trace.gpus, strict=True)))
    assert [graphs.graph[k].gpus for k in graphs.of] == trace.gpus.tolist()


def test_models_that_do_not_fit_a_gpu_are_pipelined() -> None:
    trace = sp.Workload.from_columns(
        arrival_s=[0, 0], gpus=[8, 8], work=[1, 1], model=["resnet-50", "gpt-2-xl"]
    )
    small, large = (workload_graphs(trace, NETWORK).graph[k] for k in (0, 1))
    assert len(small.stages) == 1
    # 1.6e9 parameters of 16 bytes on GPUs with 12 GB: three, and the next divisor of 8 is 4.
    assert [stage.replicas for stage in large.stages] == [2] * 4
    roomy = workload_graphs(trace, NETWORK, TrainingSetting(memory_bytes=80e9))
    assert len(roomy.graph[1].stages) == 1


@pytest.mark.parametrize(("model", "message"), [("", "names no model"), ("unet", "model 'unet'")])
def test_jobs_without_a_known_model_are_refused(model: str, message: str) -> None:
    trace = sp.Workload.from_columns(arrival_s=[0], gpus=[1], work=[1], model=[model])
    with pytest.raises(InputError, match=message):
        workload_graphs(trace, NETWORK)


@pytest.mark.parametrize("placement", ["heavy-edge", "heavy-edge-swaps", "first-fit"])
@pytest.mark.parametrize("name", ["asrpt", "asrpt-early", "wcs-duration"])
def test_runs_on_graphs_are_verified(name: str, placement: str) -> None:
    run_options = sp.RunOptions(predictor="median", placement=placement, network=NETWORK)
    outcome = sp.simulate(jobs(), "4x8", name, run_options)
    assert outcome.summary()["verified"]
    assert (outcome.end_s - outcome.instance.workload.arrival_s > 0).all()


def test_policies_that_know_nothing_of_graphs_run_on_them() -> None:
    outcome = sp.simulate(jobs(), "4x8", "fifo", sp.RunOptions(network=NETWORK))
    assert outcome.summary()["verified"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"predictor": "forest"}, "policy 'fifo' takes no predictor"),
        ({"placement": "heavy-edge", "network": NETWORK}, "takes no placement of job graphs"),
        ({"placement": "scatter"}, "placement 'scatter'"),
    ],
)
def test_options_a_policy_does_not_take_are_refused(
    settings: dict[str, object], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        sp.simulate(jobs(), "4x8", "fifo", sp.RunOptions(**settings))  # type: ignore[arg-type]


def stated(outcome: Outcome, acting: Policy) -> Statement | None:
    return guarantee(outcome, DescribedRun(outcome.instance, acting))


def test_the_guarantee_holds_and_is_only_claimed_where_it_is_proven() -> None:
    exact = Asrpt(predictor="oracle", delta=0.0)
    outcome = sp.simulate(jobs(), "4x8", exact)
    found = stated(outcome, exact)
    assert isinstance(found, FactorGuarantee)
    assert found.more.startswith("rho 1x, ")
    assert found.more.endswith("predictions up to 1x over and 1x under")
    widest = int(outcome.instance.workload.gpus.max())
    least = asrpt_sharper.least_busy(outcome.instance.workload.gpus.tolist(), 32)
    assert least is not None
    assert least >= 32 - widest + 1
    smallest = int(outcome.instance.workload.gpus.min())
    assert float(found.factor) == pytest.approx(2.0 + 32 / least - smallest / least)
    noisy = Asrpt(predictor="noisy:4", delta=0.0)
    rough = stated(sp.simulate(jobs(), "4x8", noisy), noisy)
    assert isinstance(rough, FactorGuarantee)
    over, under = map(float, re.findall(r"([\d.]+)x (?:over|under)", rough.more))
    assert 1.0 < over <= 4.0
    assert 1.0 < under <= 4.0
    assert rough.factor > found.factor
    assert not found.besides
    graphs = sp.RunOptions(predictor="median", network=NETWORK)
    delayed = stated(sp.simulate(jobs(), "4x8", "asrpt", graphs), Asrpt(predictor="median"))
    assert isinstance(delayed, FactorGuarantee)
    assert not delayed.more.startswith("rho 1x,")
    assert "longest delay" in delayed.besides
    assert isinstance(stated(outcome, policy("asrpt-early")), UnmetHypotheses)
    assert stated(outcome, policy("fifo")) is None


def test_the_command_line_takes_predictors_networks_and_placements(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    trace, command = tmp_path / "jobs.csv", CommandLine(capfd)
    assert command("generate", "recurrent", "-o", str(trace), "--jobs", "30").returncode == 0
    network = "graphs:intra_gb_per_s=300,nic_gb_per_s=12.5"
    options = ("--cluster", "8x8", "--with", network, "--placement", "heavy-edge")
    done = command(
        "simulate", str(trace), "--policy", "asrpt", "--predictor", "noisy:2", *options, "--json"
    )
    assert json.loads(done.stdout)["verified"] is True
    compared = command(
        "compare",
        str(trace),
        "--objective",
        "completion",
        "--policies",
        "asrpt,wcs-duration",
        "--cluster",
        "8x8",
        "--predictor",
        "oracle",
        "--budget",
        "1",
    )
    assert "by ASRPT-sharper" in compared.stdout.replace("\n", " ")
    wrong = command(
        "simulate", str(trace), "--policy", "asrpt", "--cluster", "8x8", "--with", "graphs"
    )
    assert wrong.returncode == 2
    assert "does not say its bandwidth; give intra_gb_per_s" in wrong.stderr.replace("\n", " ")


def test_loads_count_real_seconds_where_kinds_are_given() -> None:
    kinds = {("resnet-50", 8): 0.5, ("bert-large", 1): 4.0}
    trace = sp.generate("recurrent", jobs=50, seed=1, load=0.8, gpus_total=32, kinds=kinds)
    seconds = np.array([kinds[m, g] for m, g in zip(trace.model, trace.gpus.tolist(), strict=True)])
    asked = (trace.work * seconds * trace.gpus).sum() / (32 * trace.arrival_s.max())
    assert 0.4 < asked < 2.0
