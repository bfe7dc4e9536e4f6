"""Pollux' simulator: github.com/petuum/adaptdl, branch osdi21-artifact, folder simulator/, at c793c70 (read).

Time goes in steps of 60 s. In a step all jobs advance, then the policy decides: jobs are seen from the first step that
ends at or after their arrival, those that are complete leave with the step in which they are, their GPUs idle until
its end. Whoever is given other GPUs than before owes 30 s without progress. An epoch ends at the nearest whole second.
Another period is ``--round``; interference is that of the term (``--with goodput:tables=...,interference=0.25``).
Autoscaling of the cluster is off, as it is there without ``--max-nodes``.

Quirks kept: an epoch that is over by rounding down, with a step, is seen a step later; jobs of ``ncf`` have one GPU
under Optimus, which predicts that a job on one GPU accumulates whatever its batch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from shadowprice.errors import InputError
from shadowprice.execution.engine import Rounds
from shadowprice.execution.preset import Preset, Recipe, RecipeInputs, RunSetup
from shadowprice.instances.terms.charges import Overheads
from shadowprice.instances.terms.declared import DeclaredTerm
from shadowprice.instances.terms.goodput import Goodput
from shadowprice.instances.workload import Workload
from shadowprice.solvers.placement.count import Count
from shadowprice.solvers.policy import Policy
from shadowprice.solvers.pollux.optimus import Optimus
from shadowprice.solvers.pollux.pollux import Pollux
from shadowprice.solvers.pollux.two_queues import TwoQueues

STEP_S = 60.0
RESTART_S = 30.0
EACH_STEP_S = 1.0
"""Time after which policies ask to decide again, which they do with the next step."""
SINGLE = ("ncf",)
"""Applications whose jobs the simulator keeps on one GPU."""
STATED_BATCH = {"ncf": 32768}
"""Batches that jobs of an application keep under Pollux; those of the others are Pollux' to choose."""


def in_simulator(policy: Policy, jobs: Callable[[Workload], Workload] = lambda all: all) -> Recipe:
    """The recipe of a policy, with the simulator's steps, charges and rounding.

    Parameters
    ----------
    jobs : callable
        What the simulator makes of the jobs under this policy.
    """

    def recipe(inputs: RecipeInputs) -> RunSetup:
        return RunSetup(
            jobs(inputs.workload),
            policy,
            inputs.placement,
            Rounds(STEP_S, STEP_S),
            Overheads(start_s=RESTART_S),
            declared=tuple(map(_on_whole_seconds, _expect_goodput(inputs))),
        )

    return recipe


def _expect_goodput(inputs: RecipeInputs) -> tuple[DeclaredTerm, ...]:
    if not any(isinstance(each, Goodput) for each in inputs.declared):
        raise InputError(
            f"{inputs.where}: jobs run at what was measured of their applications, expected "
            "--with goodput:tables=FOLDER"
        )
    return inputs.declared


def _on_whole_seconds(term: DeclaredTerm) -> DeclaredTerm:
    return replace(term, whole_seconds=True) if isinstance(term, Goodput) else term


def any_batch(workload: Workload) -> Workload:
    """The jobs as they are under Pollux: without batches, but for those of :data:`STATED_BATCH`."""
    batches = [STATED_BATCH.get(model, 0) for model in workload.model.tolist()]
    return replace(workload, batch_size=np.array(batches, dtype=np.int64))


PRESET = Preset(
    name="pollux",
    source="github.com/petuum/adaptdl, branch osdi21-artifact, at c793c70",
    placements={"count": Count()},
    recipes={
        "tiresias": in_simulator(TwoQueues()),
        "pollux": in_simulator(Pollux(round_s=EACH_STEP_S, single=SINGLE), any_batch),
        "pollux-interfering": in_simulator(
            Pollux(round_s=EACH_STEP_S, avoid=False, single=SINGLE), any_batch
        ),
        "optimus": in_simulator(Optimus(EACH_STEP_S, SINGLE, accumulates_alone=True)),
    },
)
