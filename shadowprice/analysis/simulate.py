"""One call from a workload to a verified outcome."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.settle import Run, refuse_copies, settle
from shadowprice.execution.kernel.run import run as run_fastest

if TYPE_CHECKING:
    from shadowprice.analysis.semantics import Semantics
    from shadowprice.execution.own_loop import RunsItself
    from shadowprice.instances.cluster import Cluster
    from shadowprice.instances.workload import Workload
    from shadowprice.solvers.policy import Policy


def simulate(
    workload: Workload,
    cluster: Cluster | str | Path,
    policy: str | Policy | RunsItself = "srtf",
    semantics: Semantics | None = None,
    *,
    drop_infeasible: bool = False,
) -> Outcome:
    """Run a policy over a workload and verify what it did.

    Parameters
    ----------
    cluster : Cluster or str or Path
        A cluster, its short notation (``16x4``), or a TOML file.
    policy : str or Policy or RunsItself
        A policy's name, with parameters after a colon, or a policy of your own; ``hadare``, or
        a :class:`HadarE`, runs jobs as several copies.
    semantics : Semantics, optional
        Placement, rounds, overheads, preset.
    drop_infeasible : bool
        Leave out jobs that can never run, instead of refusing; they are listed in the outcome.

    Returns
    -------
    Outcome
        Verified; its costs, frames and plots are computed from the checked schedule.

    Raises
    ------
    InputError
        If a name is unknown, a job can never fit, or a switch does not apply to the policy.
    PolicyError, VerificationError
        If the policy decides something impossible, or its schedule breaks a rule.

    Examples
    --------
    >>> import shadowprice as sp
    >>> jobs = sp.Workload.from_columns(arrival_s=[0, 0], gpus=[1, 1], work=[10, 1])
    >>> sp.simulate(jobs, "1x1", "srtf").summary()["avg_jct_s"]
    6.0
    >>> sp.simulate(jobs, "2x1", "hadare").summary()["mean_copies"]
    1.0
    """
    run = settle(workload, cluster, policy, semantics, drop_infeasible=drop_infeasible)
    return carry_out(run)


def carry_out(run: Run) -> Outcome:
    """Carry a settled run out, in the engine or in a loop of its own, and verify what was done.

    The compiled loop takes the engine's place where it makes the same schedule in less time.
    """
    if run.own_loop is None:
        return _in_engine(run)
    began = time.process_time()
    schedule = run.own_loop.schedule(run.instance)
    losses = None if run.training is None else run.training.train(run.instance, schedule)
    cpu_s = time.process_time() - began
    return Outcome(run.instance, schedule, run.name, run.settings, cpu_s=cpu_s, losses=losses)


def carry_out_gangs(run: Run) -> Outcome:
    """As :func:`carry_out`, for a run whose cost is compared with bounds on jobs as one gang each.

    Raises
    ------
    InputError
        Also if jobs run as several copies; before anything is carried out.
    """
    refuse_copies(run)
    return carry_out(run)


def _in_engine(run: Run) -> Outcome:
    assert run.policy is not None
    result = run_fastest(run.instance, run.policy, placement=run.placement, rounds=run.rounds)
    return Outcome.verified(
        run.instance,
        result.schedule,
        policy=run.name,
        settings=run.settings,
        decisions=result.decisions,
        cpu_s=result.cpu_s,
        prices=run.prices,
    )
