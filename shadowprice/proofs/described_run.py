"""Hypotheses of theorems, checked on a run: stated in code, not in prose alone.

A theorem on a policy has a function ``missing_hypotheses(run)`` that names those that a run does not meet, in words
that read on after "does not apply:". Where it names none the theorem is about the run. What it supposes of the
instance is in :mod:`shadowprice.proofs.hypotheses`; here is what it supposes of the policy, and of decisions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain

from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.proofs.hypotheses import Hypotheses
from shadowprice.solvers.asrpt.asrpt import Asrpt
from shadowprice.solvers.job_table import Environment, JobTable
from shadowprice.solvers.placement.count import Count
from shadowprice.solvers.placement.protocol import Placement
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
        if allocator.counts_by_job:
            jobs = JobTable.of(instance, Environment.of(instance))
            allocator.arrive(jobs, range(len(instance.workload)))
        return allocator.anywhere


def not_at_events(run: DescribedRun) -> Iterator[str]:
    """Decisions in rounds."""
    if run.round_s > 0:
        yield (
            f"decisions are made every {run.round_s:g} s, the theorem is about decisions at events"
        )


def not_anywhere(run: DescribedRun) -> Iterator[str]:
    """Placements that let a gang wait beside enough free GPUs."""
    if not run.anywhere:
        yield (
            f"placement {run.placement.name} lets a gang wait beside enough free GPUs, the theorem is "
            "about gangs that take any"
        )


def not_of_policy(run: DescribedRun, kind: type[Policy], name: str) -> Iterator[str]:
    """Other policies than a theorem is about."""
    if not isinstance(run.policy, kind):
        yield f"the policy is {run.policy.name}, the theorem is about {name}"


def not_of_completion(run: DescribedRun) -> Iterator[str]:
    """Costs other than the sum of completion times."""
    if run.objective is not Objective.COMPLETION:
        yield f"the objective is {run.objective}, the theorem is about total completion time"


def missing_in(
    run: DescribedRun, hypotheses: Hypotheses, *others: Iterable[str]
) -> tuple[str, ...]:
    """Hypotheses that a run does not meet, in words, of a theorem on decisions at events and gangs that take any GPUs.

    Parameters
    ----------
    others : iterables of str
        In words those that the theorem has beside its hypotheses on the instance.
    """
    instance = hypotheses.missing(run.instance)
    # Where an instance says more than the theorem knows nobody asks how gangs are placed.
    return (
        *chain(*others),
        *not_at_events(run),
        *instance,
        *(() if instance else not_anywhere(run)),
    )


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
