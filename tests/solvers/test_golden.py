"""Presets reproduce the recorded runs of public simulators, every job to the second."""

from __future__ import annotations

import numpy as np
import pytest

from shadowprice.execution.engine import run
from shadowprice.execution.preset import RunSetup
from shadowprice.execution.preset_registry import preset
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule
from shadowprice.instances.workload import Workload
from shadowprice.proofs.certificate import verify
from shadowprice.solvers.tiresias.gittins_index import ServiceDistribution
from support.peers import (
    ends,
    in_file_order,
    needs_peers,
    peer_cluster,
    peer_workload,
    recorded,
    runs_of,
    synergy_workload,
)

pytestmark = needs_peers


def executed(file: str, recipe: RunSetup) -> tuple[Workload, Schedule]:
    instance = Instance(peer_cluster(file), recipe.workload, recipe.overheads)
    result = run(instance, recipe.policy, placement=recipe.placement, rounds=recipe.rounds)
    verify(instance, result.schedule)
    return recipe.workload, result.schedule


def samples() -> ServiceDistribution:
    return ServiceDistribution(
        np.array(recorded("tiresias_gittins_samples.json")["samples"], float)
    )


@pytest.mark.parametrize(
    ("file", "name"),
    runs_of("tiresias_W*.json") + runs_of("helios_W*.json") + runs_of("pai_W*.json"),
)
def test_every_job_ends_when_the_peer_says(file: str, name: str) -> None:
    peer = file.split("_")[0]
    golden = recorded(file)["runs"][name]
    workload, schedule = executed(
        file, preset(peer).recipe(name, peer_workload(file), samples=samples())
    )
    ids = [job[0] for job in recorded(file)["jobs"]]
    np.testing.assert_array_equal(
        in_file_order(workload, ids, ends(workload, schedule)), golden["end"]
    )
    if "start" in golden:
        first = np.full(len(workload), np.inf)
        np.minimum.at(first, schedule.job, schedule.start_s)
        np.testing.assert_array_equal(in_file_order(workload, ids, first), golden["start"])


@pytest.mark.parametrize("file", ["synergy_W1k.json", "synergy_static32.json"])
@pytest.mark.parametrize("name", ["FIFO+fair", "SRTF+fair", "LAS+fair"])
def test_synergy_with_proportional_shares(file: str, name: str) -> None:
    golden, jobs = recorded(file)["runs"][name], recorded(file)["jobs"]
    recipe = preset("synergy").recipe(name, synergy_workload(file))
    workload, schedule = executed(file, recipe)
    jct = in_file_order(workload, [job[0] for job in jobs], ends(workload, schedule)) - [
        job[2] for job in jobs
    ]
    np.testing.assert_allclose(jct, golden["jct"], atol=1e-3)


@pytest.mark.parametrize("file", ["tiresias_W1.json", "tiresias_W2.json"])
@pytest.mark.parametrize("name", ["dlas-gpu", "shortest", "sjf"])
def test_as_many_preemptions_as_the_peer(file: str, name: str) -> None:
    _, schedule = executed(file, preset("tiresias").recipe(name, peer_workload(file)))
    preemptions = len(schedule.runs) - len(recorded(file)["jobs"])
    assert preemptions == recorded(file)["runs"][f"{name}/count"]["preemptions"]
