"""Hypotheses of theorems, checked on a run: stated in code, not in prose alone.

A theorem on a policy has a function ``uncovered(run)`` that names every hypothesis that a run does not
meet, in words that read on after "says nothing here:". Where it names none the theorem is about the run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.instances.sharing_gain import SharingGain
from shadowprice.solvers.asrpt.asrpt import Asrpt
from shadowprice.solvers.placement.count import Count
from shadowprice.solvers.placement.protocol import JobAllocator, Placement
from shadowprice.solvers.policy import Policy


@dataclass(frozen=True, eq=False)
class DescribedRun:
    """A run as theorems see it; by default the engine's own semantics.

    Parameters
    ----------
    instance : Instance
        Cluster, jobs, charges, rates of jobs that share, graphs and conditions.
    policy : Policy
        With its parameters.
    objective : Objective
        In which its cost is compared with the optimum's.
    round_s : float
        Time between decisions [s]; 0 for a decision at every event.
    placement : Placement
        Which nodes a gang gets.
    """

    instance: Instance
    policy: Policy
    objective: Objective = Objective.COMPLETION
    round_s: float = 0.0
    placement: Placement = field(default_factory=Count)

    @property
    def anywhere(self) -> bool:
        """True if a gang fits as soon as there are as many free GPUs, wherever they are."""
        instance = self.instance
        types = instance.cluster.type_of_node
        pools = [0] * len(types) if instance.workload.throughput is None else types.tolist()
        allocator = self.placement.allocator(instance.cluster, pools)
        if isinstance(allocator, JobAllocator):
            for model in instance.workload.model.tolist():
                allocator.arrive(model)
        return allocator.anywhere


def not_at_events(run: DescribedRun) -> Iterator[str]:
    """Decisions in rounds."""
    if run.round_s > 0:
        yield (
            f"decisions are made every {run.round_s:g} s, the theorem is about decisions at events"
        )


def not_one_pool(run: DescribedRun) -> Iterator[str]:
    """GPUs of several speeds, and placements that let a gang wait beside enough free GPUs."""
    if run.instance.workload.throughput is not None and len(run.instance.cluster.gpu_types) > 1:
        yield "GPUs differ in speed, the theorem is about one pool of GPUs"
    elif run.instance.workload.asking.any():
        yield (
            "jobs ask for CPUs or memory, for which a gang may wait beside enough free GPUs; the theorem is "
            "about gangs that need GPUs alone"
        )
    elif not run.anywhere:
        yield (
            f"placement {run.placement.name} lets a gang wait beside enough free GPUs, the theorem is "
            "about gangs that take any"
        )


def not_plain_runs(run: DescribedRun) -> Iterator[str]:
    """Charges, and speeds that depend on more than the mapping of a job's graph."""
    if not run.instance.overheads.free:
        yield "runs pay charges, the theorem is about runs that make progress from their start"
    parts = run.instance.conditions
    if parts is not None:
        for words, there in (
            ("CPUs and memory (profiles)", parts.sensitivity),
            ("how gangs are spread", parts.locality),
            ("widths (jobs that grow)", parts.elasticity),
        ):
            if there is not None:
                yield f"speeds depend on {words}, of which the theorem knows no longest run"


def not_of_policy(
    run: DescribedRun, kind: type[Policy], name: str, reason: str | None
) -> Iterator[str]:
    """Other policies than a theorem is about, decisions in rounds, other GPUs, and what its own ``why_not`` found."""
    if not isinstance(run.policy, kind):
        yield f"the policy is {run.policy.name}, the theorem is about {name}"
    yield from not_at_events(run)
    yield from not_one_pool(run)
    if reason is not None:
        yield f"there are {reason}"


def not_one_weight(run: DescribedRun) -> Iterator[str]:
    """Jobs of different weights."""
    weight = run.instance.workload.weight
    if not np.all(weight == weight[:1]):
        yield "jobs have different weights, the theorem is about the unweighted sum"


def not_of_equal_gpus(run: DescribedRun) -> Iterator[str]:
    """All that a theorem on gangs of one pool without charges, rounds and weights does not know."""
    for each in (not_at_events, not_one_pool, not_plain_runs, not_one_weight):
        yield from each(run)
    if run.instance.graphs is not None:
        yield "speeds depend on where the replicas of a job are"
    if SharingGain.of(run.instance) is not None:
        yield "jobs may share GPUs"
    if run.instance.restarts:
        yield "jobs lose their work when they are preempted"


def not_comparable(run: DescribedRun) -> Iterator[str]:
    """Optima that may share GPUs, and costs other than the unweighted sum of completion times."""
    if SharingGain.of(run.instance) is not None:
        yield "jobs may share GPUs, the theorem compares with schedules in which nobody does"
    if run.objective is not Objective.COMPLETION:
        yield f"the objective is {run.objective}, the theorem is about total completion time"
    yield from not_one_weight(run)


def not_strictly_in_order(run: DescribedRun) -> Iterator[str]:
    """Policies other than A-SRPT, and A-SRPT that starts jobs early or lets them overtake."""
    if not isinstance(run.policy, Asrpt):
        yield f"the policy is {run.policy.name}, the theorem is about A-SRPT"
        return
    if run.policy.work_conserving:
        yield "jobs may start before their virtual completion"
    if run.policy.overtake:
        yield "jobs may overtake others"


def held_back(run: DescribedRun) -> Iterator[str]:
    """Jobs with graphs that may wait for a better place."""
    if isinstance(run.policy, Asrpt) and run.policy.delta > 0 and run.instance.graphs is not None:
        yield f"jobs may be held back for consolidation (delta {run.policy.delta:g})"
