"""Simulation of a real run: runs are charged what was measured, of which the policy knows nothing, as it did there.

Hosts measure what starts and stops cost; they tell no policy. One that counts charges, as ``hadar`` does, decides
otherwise where it is told them, and jobs change places.
"""

from __future__ import annotations

import time
from dataclasses import replace

from shadowprice.analysis.jobs_and_cluster import Problem, Where
from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.preparation import prepare_run
from shadowprice.analysis.run_options import RunOptions
from shadowprice.analysis.simulate import execute, verified_outcome
from shadowprice.execution.engine import Engine, Rounds
from shadowprice.execution.simulated_hosts import SimulatedHosts
from shadowprice.instances.instance import Instance
from shadowprice.instances.terms.charges import Overheads
from shadowprice.solvers.placement.protocol import Placement
from shadowprice.solvers.policy import Decision, Policy


def simulate_as_executed(
    jobs: Problem, cluster: Where | None, policy: str | Policy, options: RunOptions
) -> Outcome:
    """Simulate jobs on a cluster, or an instance, as real hosts carry them out, and verify it.

    Raises
    ------
    InputError, PolicyError
        As of :func:`shadowprice.simulate`.
    """
    run = prepare_run(jobs, cluster, policy, options)
    if run.policy is None or run.instance.overheads.free:
        return execute(run)
    began_s = time.process_time()
    engine = _UnchargedEngine(run.instance, run.policy, run.placement, run.rounds)
    engine.loop()
    return verified_outcome(run, engine.result(time.process_time() - began_s))


class _UnchargedHosts(SimulatedHosts):
    """Simulated hosts, whose debts nobody hears of."""

    def stop(self, job: int, now_s: float) -> tuple[float, float, float]:
        """Preempt a run; the progress made, the work left, and no debt, in seconds."""
        ran_s, left_s, _ = super().stop(job, now_s)
        return ran_s, left_s, 0.0


class _UnchargedEngine(Engine):
    """The loop of simulation, whose policy is told of no charge."""

    def __init__(
        self, instance: Instance, policy: Policy, placement: Placement, rounds: Rounds
    ) -> None:
        super().__init__(instance, policy, placement, rounds)
        if (
            self.course is None
        ):  # Jobs with courses have hosts of their own, and policies that time them.
            self.hosts = _UnchargedHosts(instance)
        self.state.environment = replace(self.state.environment, overheads=Overheads())

    def _decide(self) -> Decision:
        """Decide, while runs that have not paid what they were charged look as if they owed nothing."""
        state = self.state
        from_s, now_s = state._jobs.progress_from_s, state.now_s
        unpaid = {job: from_s[job] for job in state.running if from_s[job] > now_s}
        for job in unpaid:
            from_s[job] = now_s
        decision = super()._decide()
        for job, begins_s in unpaid.items():
            from_s[job] = begins_s
        return decision
