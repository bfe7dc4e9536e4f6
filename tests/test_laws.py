"""Laws that every policy obeys, whatever the instance."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowprice.execution.engine import run
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule
from shadowprice.instances.strategies import instances
from shadowprice.instances.workload import Workload
from shadowprice.solvers.gandiva import Gandiva
from shadowprice.solvers.gavel import Gavel
from shadowprice.solvers.gittins2d import Gittins2d
from shadowprice.solvers.hadar import Hadar
from shadowprice.solvers.las import Las
from shadowprice.solvers.las2d import Las2d
from shadowprice.solvers.policy import Knowledge, Policy
from shadowprice.solvers.registry import placements, policies, policy
from shadowprice.solvers.synergy import ByDemand, Synergy

POLICIES = policies()
NAMES = sorted(POLICIES)


def ends_by_id(instance: Instance, schedule: Schedule) -> dict[str, float]:
    last = np.zeros(len(instance.workload))
    np.maximum.at(last, schedule.job, schedule.end_s)
    return dict(zip(instance.workload.id.tolist(), last.tolist(), strict=True))


def scaled_policy(name: str, factor: float) -> Policy:
    """The same policy with its own times scaled."""
    found = POLICIES[name]
    if isinstance(found, Las | Gandiva):
        return replace(found, quantum_s=found.quantum_s * factor)
    if isinstance(found, Las2d | Gittins2d):
        return replace(found, thresholds_gpu_s=tuple(t * factor for t in found.thresholds_gpu_s))
    if isinstance(found, Gavel | Hadar | Synergy | ByDemand):
        return replace(found, round_s=found.round_s * factor)
    return found


# Hadar's rounds begin at whole multiples of their length, whatever the times of the jobs.
ALIGNED = {"hadar-committed", "oasis"}

# Virtual completions are rounded up to the time grid before anything starts at them; with early
# starts a tick can decide which job goes first.
ROUNDED = {"asrpt"}
NOT_SCALED = {"asrpt-early", "asrpt-guarded"}

# These let GPUs idle on purpose: the head blocks, jobs wait for their virtual completion, or
# nothing starts within a round.
BLOCKING = {"fifo", "sjf", "easy", "spjf", "spwf", "asrpt", "asrpt-early", "asrpt-guarded", "hadar"}


@given(
    instance=instances(),
    name=st.sampled_from(sorted(set(NAMES) - NOT_SCALED - ALIGNED)),
    factor=st.sampled_from([0.25, 0.5, 2.0, 8.0, 3.0]),
)
def test_scaling_all_times_scales_all_completions(
    instance: Instance, name: str, factor: float
) -> None:
    jobs = instance.workload
    scaled = Instance(
        instance.cluster, replace(jobs, arrival_s=jobs.arrival_s * factor, work=jobs.work * factor)
    )
    before = ends_by_id(instance, run(instance, POLICIES[name]).schedule)
    after = ends_by_id(scaled, run(scaled, scaled_policy(name, factor)).schedule)
    for job, end_s in before.items():
        exact = factor != 3.0 and name not in ROUNDED
        assert after[job] == pytest.approx(factor * end_s, abs=0.0 if exact else 1e-4)


@given(data=st.data(), instance=instances(distinct_arrivals=True), name=st.sampled_from(NAMES))
def test_order_of_rows_does_not_matter(data: st.DataObject, instance: Instance, name: str) -> None:
    jobs = instance.workload
    order = data.draw(st.permutations(range(len(jobs))))
    shuffled = Workload.from_frame(jobs.to_frame().iloc[list(order)])
    again = Instance(instance.cluster, shuffled)
    assert ends_by_id(instance, run(instance, POLICIES[name]).schedule) == ends_by_id(
        again, run(again, POLICIES[name]).schedule
    )


@given(
    instance=instances(),
    name=st.sampled_from(NAMES),
    placement=st.sampled_from(sorted(placements())),
)
def test_same_input_same_schedule(instance: Instance, name: str, placement: str) -> None:
    first, second = (
        run(instance, policy(name), placement=placements()[placement]).schedule for _ in range(2)
    )
    assert first.to_frame().equals(second.to_frame())


@given(instance=instances(), name=st.sampled_from(NAMES))
def test_policies_that_do_not_preempt_run_every_job_once(instance: Instance, name: str) -> None:
    schedule = run(instance, POLICIES[name]).schedule
    if not POLICIES[name].preemptive:
        assert len(schedule.runs) == len(instance.workload)


@given(
    instance=instances(),
    name=st.sampled_from(sorted(set(NAMES) - BLOCKING - ALIGNED)),
)
def test_no_gpus_idle_while_a_job_that_fits_waits(instance: Instance, name: str) -> None:
    schedule = run(instance, POLICIES[name]).schedule
    times = np.unique(
        np.concatenate((schedule.start_s, schedule.end_s, instance.workload.arrival_s))
    )
    end = ends_by_id(instance, schedule)
    for now in times.tolist():
        active = (schedule.start_s <= now) & (schedule.end_s > now)
        free = instance.cluster.total_gpus - int(schedule.gpus[active].sum())
        runs = set(schedule.job[active].tolist())
        for row, (job, arrival, gpus) in enumerate(
            zip(
                instance.workload.id,
                instance.workload.arrival_s,
                instance.workload.gpus,
                strict=True,
            )
        ):
            waits = arrival <= now < end[job] and row not in runs
            assert not (waits and gpus <= free), (
                f"{job} waits at {now} s for {gpus} of {free} free GPUs"
            )


@given(instance=instances(), name=st.sampled_from([n for n in NAMES if not POLICIES[n].knows]))
def test_a_policy_that_knows_nothing_is_blind_to_the_future(instance: Instance, name: str) -> None:
    """Doubling the longest job changes nothing before its old completion."""
    jobs = instance.workload
    if len(jobs) == 0:
        return
    before = run(instance, POLICIES[name]).schedule
    last = np.zeros(len(jobs))
    np.maximum.at(last, before.job, before.end_s)
    longest = int(last.argmax())
    work = jobs.work.copy()
    work[longest] *= 2
    changed = Instance(instance.cluster, replace(jobs, work=work))
    after = run(changed, POLICIES[name]).schedule
    until = last[longest]
    assert started_before(before, until) == started_before(after, until)


def started_before(schedule: Schedule, until_s: float) -> set[tuple[int, float]]:
    early = schedule.start_s < until_s
    return set(zip(schedule.job[early].tolist(), schedule.start_s[early].tolist(), strict=True))


def test_reading_undeclared_knowledge_is_an_error() -> None:
    from shadowprice.errors import PolicyError
    from shadowprice.solvers.srtf import Srtf

    class Peeking(Srtf):
        knows = frozenset[Knowledge]()

    jobs = Workload.from_columns(arrival_s=[0, 0], gpus=[1, 1], work=[1, 2])
    with pytest.raises(PolicyError, match="reads 'duration', but declares that it knows nothing"):
        run(Instance(Cluster.parse("1x1"), jobs), Peeking())
