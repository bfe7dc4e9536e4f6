"""Presets and schedulers with a loop of their own are online: laws over their whole runs.

A preset may change the workload before it runs it, and loops of their own are given all jobs at
once; so these laws compare what was done up to a moment, for workloads that agree until then.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from shadowprice.errors import PolicyError
from shadowprice.execution.copies.hadare import HadarE
from shadowprice.execution.engine import run
from shadowprice.execution.preset_registry import presets
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule
from shadowprice.instances.speeds.sensitivity import Sensitivity
from shadowprice.instances.speeds.throughputs import Throughputs
from shadowprice.instances.terms.declared import DeclaredTerm
from shadowprice.instances.terms.goodput import Goodput
from shadowprice.instances.workload import Workload
from shadowprice.proofs.testing.future import other_future
from shadowprice.solvers.tiresias.gittins_index import ServiceDistribution
from shadowprice.studies.presets.gavel.policies import ALL_POLICIES
from shadowprice.studies.presets.gavel.simulator import simulate_gavel
from support.conditioned_jobs import CLUSTER, FLAT, PROFILE
from support.copies import in_copies
from support.goodput_tables import small

# For each of some sixty policies, presets and placements; the nightly search draws forty times as many.
EXAMPLES = max(settings().max_examples // 5, 2)
TYPES = ("k80", "p100", "v100")
MODELS = ("LM (batch size 5)", "Transformer (batch size 16)")
SAMPLES = ServiceDistribution(np.array([600.0, 9000.0, 40000.0]))
COPIES: list[dict[str, Any]] = [{}, {"order": "shortest"}, {"max_copies": 2, "width": "gang"}]
ONE_GPU = ("allox",)
"""Policies of Gavel's simulator that take jobs of one GPU only."""

PLACED = [
    (preset.name, policy, placement)
    for preset in presets().values()
    for policy in sorted(preset.recipes)
    for placement in preset.placements
]


@st.composite
def columns(draw: st.DrawFn, gangs: list[int]) -> dict[str, list[int]]:
    """Of jobs that arrive over some rounds of a preset; nobody but the first in its first second."""
    n = draw(st.integers(3, 7))
    later = st.lists(st.integers(1, 4000), min_size=n - 1, max_size=n - 1)
    return {
        "arrival_s": [0, *sorted(draw(later))],
        "gpus": draw(st.lists(st.sampled_from(gangs), min_size=n, max_size=n)),
        "work": draw(st.lists(st.integers(100, 5000), min_size=n, max_size=n)),
    }


@st.composite
def profiled(draw: st.DrawFn) -> Instance:
    """Jobs with profiles of CPUs and memory, and models of which some are consolidated."""
    jobs = draw(columns([1, 2, 4, 6]))
    n = len(jobs["gpus"])
    models = draw(st.lists(st.sampled_from(["vgg16", "resnet50"]), min_size=n, max_size=n))
    of = np.array(draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)))
    sensitivity = Sensitivity((PROFILE, FLAT), of)
    return Instance(CLUSTER, Workload.from_columns(**jobs, model=models), sensitivity=sensitivity)


@st.composite
def typed(draw: st.DrawFn, gangs: list[int]) -> Instance:
    """Jobs in steps, with rates by GPU type and for sharing."""
    jobs = draw(columns(gangs))
    n = len(jobs["gpus"])
    rate = st.sampled_from([0.5, 1.0, 2.0])
    workload = Workload.from_columns(
        **jobs,
        model=draw(st.lists(st.sampled_from(MODELS), min_size=n, max_size=n)),
        tenant=draw(st.lists(st.sampled_from(["0", "1"]), min_size=n, max_size=n)),
        throughput=draw(st.lists(st.tuples(rate, rate, rate), min_size=n, max_size=n)),
        gpu_types=TYPES,
    )
    rates = {
        (gpu_type, (one, gpus), (other, gpus)): (0.75, 0.5)
        for gpu_type in TYPES
        for one in MODELS
        for other in MODELS
        if one <= other
        for gpus in (1, 2)
    }
    together = Throughputs(TYPES, {}, rates)
    return Instance(Cluster.parse("1x2:k80,1x2:p100,1x2:v100"), workload, sharing_rates=together)


def futures(instance: Instance) -> tuple[float, Iterable[Instance]]:
    """Last arrival [s], and instances that are the same before it."""
    arrival_s = instance.workload.arrival_s
    last_s = float(arrival_s.max())
    return last_s, (instance, other_future(instance, arrival_s < last_s))


def before(schedule: Schedule, instance: Instance, until_s: float) -> set[tuple[object, ...]]:
    """Pieces of a schedule up to a moment."""
    rows = schedule.start_s < until_s
    ends = np.minimum(schedule.end_s[rows], until_s)
    names = instance.workload.id[schedule.job[rows]].tolist()
    parts = (schedule.node[rows], schedule.gpus[rows], schedule.start_s[rows], ends)
    return set(zip(names, *(part.tolist() for part in parts), strict=True))


def preset_schedule(instance: Instance, name: str, policy: str, placement: str) -> Schedule:
    preset = presets()[name]
    workload = instance.workload
    declared: tuple[DeclaredTerm, ...] = ()
    if name == "pollux":
        count = len(workload)
        workload = replace(
            workload,
            model=np.array(["m", "n"], dtype=object)[np.arange(count) % 2],
            gpus=np.minimum(workload.gpus, 2),
            batch_size=np.full(count, 8),
        )
        declared = (Goodput((small("m"), small("n"))),)
    setup = preset.recipe(
        policy,
        workload,
        placement,
        samples=SAMPLES,
        cluster=instance.cluster,
        sensitivity=None if declared else instance.sensitivity,
        declared=declared,
    )
    ready = Instance(
        instance.cluster,
        setup.workload,
        setup.overheads,
        sensitivity=setup.sensitivity,
        declared=setup.declared or (),
    )
    return run(ready, setup.policy, placement=setup.placement, rounds=setup.rounds).schedule


@pytest.mark.parametrize(("name", "policy", "placement"), PLACED)
@settings(max_examples=EXAMPLES)
@given(instance=profiled())
def test_no_run_of_a_preset_foresees_arrivals(
    name: str, policy: str, placement: str, instance: Instance
) -> None:
    until_s, worlds = futures(instance)
    try:
        one, other = (
            before(preset_schedule(world, name, policy, placement), world, until_s)
            for world in worlds
        )
    except PolicyError:  # the original stops where a job cannot be placed
        assume(False)
    assert one == other


# By which method a programme is solved is not what this law is about.
@pytest.mark.parametrize("policy", sorted(ALL_POLICIES))
@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_no_policy_of_gavels_simulator_foresees_arrivals(policy: str, data: st.DataObject) -> None:
    instance = data.draw(typed([1] if policy in ONE_GPU else [1, 2]))
    until_s, worlds = futures(instance)
    one, other = (
        [each for each in simulate_gavel(world, policy, seed=1).rounds if each.start_s < until_s]
        for world in worlds
    )
    assert one == other


@pytest.mark.parametrize("switches", COPIES)
@settings(max_examples=EXAMPLES)
@given(instance=typed([1, 2]))
def test_copies_do_not_foresee_arrivals(switches: dict[str, Any], instance: Instance) -> None:
    until_s, worlds = futures(instance)
    found = []
    for world in worlds:
        _, done = in_copies(replace(world, sharing_rates=None), HadarE(**switches))
        rows = done.start_s < until_s
        names = ("job", "copy", "node", "gpus", "start_s", "end_s", "overhead_s", "steps")
        parts = [getattr(done, name)[rows].tolist() for name in names]
        found.append(list(zip(*parts, strict=True)))
    assert found[0] == found[1]
