"""Readers of instances that run them, verify what was run, and write it down."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.run_directory import directory
from shadowprice.errors import InputError
from shadowprice.execution import engine, shares
from shadowprice.execution.copies import simulation
from shadowprice.execution.copies.hadare import HadarE
from shadowprice.execution.engine import Rounds
from shadowprice.execution.job_window import cut_schedule, window_end_s
from shadowprice.execution.kernel import run as kernel
from shadowprice.execution.sealed import outline
from shadowprice.hosts.live import engine as real
from shadowprice.instances.documents import written_instance
from shadowprice.instances.features import Feature, unknown
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule
from shadowprice.instances.speeds.sensitivity import Sensitivity
from shadowprice.models import hadare
from shadowprice.proofs import certificate
from shadowprice.proofs.verification import compiled_pass, segments
from shadowprice.proofs.verification import features as verified_features
from shadowprice.solvers.knowledge import Knowledge
from shadowprice.solvers.placement.count import Count
from shadowprice.solvers.registry import policy
from shadowprice.studies import instance_digest
from shadowprice.studies.presets import tiresias_gandiva
from shadowprice.studies.presets.gavel import simulator
from support.consumers.consumer import Consumer
from support.feature_instances import HUNGRY, instance_with, may_meet

FIFO = policy("fifo")
OASIS = policy("oasis")
"""One of those that choose nodes."""
SYNERGY = policy("synergy-tune")
"""One of those that choose CPUs and memory, where there are profiles."""


def with_profiles(instance: Instance) -> Instance:
    """The instance, and profiles of its jobs where these may meet what it says."""
    if not may_meet({*instance.features, Feature.PROFILES}):
        return instance
    profiles = Sensitivity((HUNGRY,), np.zeros(len(instance.workload), dtype=np.int64))
    return replace(instance, sensitivity=profiles)


def scheduled(instance: Instance) -> tuple[Instance, Schedule]:
    """A schedule of an instance with any features, and the instance with what became known meanwhile."""
    if instance.copies is not None:
        return instance, copied(instance)
    made = engine.run(replace(instance, stopped_s=None), FIFO)
    if instance.stopped_s is not None:
        cut = cut_schedule(made.schedule, instance.stopped_s)
        return replace(made.instance, stopped_s=instance.stopped_s), cut
    if instance.until_complete is None:
        return made.instance, made.schedule
    end_s = window_end_s(made.schedule, instance.until_complete)
    there = instance.workload.select(instance.workload.arrival_s < end_s)
    return replace(made.instance, workload=there), cut_schedule(made.schedule, end_s)


def copied(instance: Instance) -> Schedule:
    """The schedule of HadarE."""
    return simulation.run_copies(instance, HadarE().scores(), lambda gang, _: gang)


def verified(instance: Instance) -> None:
    """Has a schedule verified."""
    assert certificate.verify(*scheduled(instance)).any()


def saved(instance: Instance) -> None:
    """Writes a run directory, reads it, and finds the same instance."""
    outcome = Outcome.verified(*scheduled(instance), policy="fifo", settings={}, decisions=1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run"
        directory.save(outcome, path)
        found = directory.load(path).instance
    assert found.features == outcome.instance.features
    assert instance_digest.digest_of(found) == instance_digest.digest_of(outcome.instance)


def left_to_another(
    serves: Callable[[Instance], bool], knows: Collection[Feature]
) -> Callable[[Instance], None]:
    """Of a reader that leaves what it does not serve to another: refuses with what it does not know."""

    def read(instance: Instance) -> None:
        if not serves(instance):
            raise InputError("; ".join(unknown(instance, knows)))

    return read


def passes_over(instance: Instance) -> bool:
    """True if the compiled pass looks at schedules of an instance."""
    whole = certificate.JobsOnTypes.of(instance).alone
    return compiled_pass.CompiledPass.over(instance, whole, compiled_pass.LEAST_ROWS) is not None


def behind_the_gate(made: Callable[[Any], object]) -> Callable[[Instance], None]:
    """Of an engine of real runs, of which only the gate is there: what is behind it fails for want of a run."""

    def read(instance: Instance) -> None:
        run = SimpleNamespace(measuring=SimpleNamespace(instance=instance))
        with suppress(AttributeError):
            made(run)

    return read


def of_gavels_types(*features: Feature) -> Instance:
    """With throughputs in steps per second, which that simulator always has."""
    return instance_with(Feature.RATES, *features)


def twice_a_second(instance: Instance) -> Instance:
    """Run times of whole seconds."""
    jobs = replace(instance.workload, work=2.0 * instance.workload.work)
    return replace(instance, workload=jobs)


CONSUMERS = (
    Consumer("execution.engine.KNOWS", engine.KNOWS, lambda i: engine.run(i, FIFO)),
    Consumer(
        "execution.sealed.outline.KNOWS",
        outline.KNOWS,
        lambda i: outline.outline(i, [Knowledge.SPEED_UP], Count(), None),
    ),
    Consumer(
        "execution.engine.CHOSEN_NODES_KNOWS",
        engine.CHOSEN_NODES_KNOWS,
        lambda i: engine.run(i, OASIS),
    ),
    Consumer(
        "execution.engine.CHOSEN_CPU_MEMORY_KNOWS",
        engine.CHOSEN_CPU_MEMORY_KNOWS,
        lambda i: engine.Engine(with_profiles(i), SYNERGY, Count(), Rounds()),
    ),
    Consumer(
        "execution.kernel.run.KNOWS",
        kernel.KNOWS,
        left_to_another(lambda i: kernel.serves(i, Count()), kernel.KNOWS),
    ),
    Consumer(
        "execution.shares.KNOWS",
        shares.KNOWS,
        lambda i: shares.run_in_shares(i, "max_min_fairness"),
    ),
    Consumer(
        "execution.copies.simulation.KNOWS",
        simulation.KNOWS,
        copied,
        lambda *f: instance_with(Feature.COPIES, *f),
    ),
    Consumer(
        "models.hadare.KNOWS",
        hadare.KNOWS,
        hadare.CopiesInRounds.of,
        lambda *f: instance_with(Feature.COPIES, *f),
    ),
    Consumer(
        "studies.presets.gavel.simulator.KNOWS",
        simulator.KNOWS,
        lambda i: simulator.simulate_gavel(i, "max_min_fairness"),
        of_gavels_types,
    ),
    Consumer(
        "studies.presets.tiresias_gandiva.KNOWS",
        tiresias_gandiva.KNOWS,
        tiresias_gandiva.simulate_tiresias_gandiva,
        lambda *f: twice_a_second(instance_with(*f)),
    ),
    Consumer(
        "hosts.live.engine.KNOWS",
        real.KNOWS,
        behind_the_gate(lambda run: real.RealEngine(run, FIFO, Count(), Rounds())),
    ),
    Consumer("proofs.verification.features.KNOWS", verified_features.KNOWS, verified),
    Consumer(
        "proofs.verification.compiled_pass.KNOWS",
        compiled_pass.KNOWS,
        left_to_another(passes_over, compiled_pass.KNOWS),
    ),
    Consumer(
        "proofs.verification.segments.KNOWS",
        segments.KNOWS,
        left_to_another(segments.verifiable_in_segments, segments.KNOWS),
    ),
    Consumer("instances.documents.written_instance.KNOWS", written_instance.KNOWS, saved),
    Consumer("studies.instance_digest.KNOWS", instance_digest.KNOWS, instance_digest.digest_of),
)
