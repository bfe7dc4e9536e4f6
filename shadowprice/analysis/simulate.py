"""One call from a workload to a verified outcome."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from shadowprice.analysis.jobs_and_cluster import JobsAndCluster, Problem, Where
from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.preparation import PreparedRun, prepare_run, require_bounded
from shadowprice.errors import EarlyEndError
from shadowprice.execution.copies.outages import known_after
from shadowprice.execution.job_window import cut_schedule, window_end_s
from shadowprice.execution.kernel.run import run_fastest

if TYPE_CHECKING:
    from shadowprice.analysis.run_options import RunOptions
    from shadowprice.execution.engine import EngineRun
    from shadowprice.execution.simulator import HasSimulator
    from shadowprice.execution.watch import Watch
    from shadowprice.instances.instance import Instance
    from shadowprice.instances.schedule import Schedule
    from shadowprice.instances.terms.window import JobWindow
    from shadowprice.solvers.policy import Policy

_FIRST_JOBS, _MOST_JOBS = 4, 256
"""How many jobs of an endless workload are taken at first and at most, a job of the window's end."""


def simulate(
    jobs: Problem,
    cluster: Where | None = None,
    policy: str | Policy | HasSimulator = "srtf",
    options: RunOptions | None = None,
    *,
    drop_infeasible: bool = False,
    watch: Watch | None = None,
) -> Outcome:
    """Run a policy over a workload and verify what it did.

    Parameters
    ----------
    jobs : Problem
        The jobs: a workload, a table whose columns have names that a CSV of jobs may have, or jobs without end
        (:func:`shadowprice.endless`), these only with ``options.until_complete``. Or an instance, which is run as it
        is; what follows is then given by name.
    cluster : Where, optional
        A cluster, its short notation (``16x4``), or a TOML file; none beside an instance.
    policy : str or Policy or HasSimulator
        A policy's name, with parameters after a colon, or a policy of your own; ``hadare``, or
        a :class:`HadarE`, runs jobs as several copies.
    options : RunOptions, optional
        Placement, rounds, overheads, preset. With ``until_complete`` the run ends when the jobs of that
        window are complete, and its outcome has the metrics of these; every job that had come by then is
        in the schedule with what it had done.
    drop_infeasible : bool
        Leave out jobs that can never run, instead of refusing; they are listed in the outcome.
    watch : Watch, optional
        Told how far the run is. Where it stops the run, the outcome is of what was done until then: a partial
        run, whose instance says when it was stopped. Neither runs until a window of jobs is complete nor
        schedulers with a loop of their own are told anything or stopped.

    Returns
    -------
    Outcome
        Verified; its costs, frames and plots are computed from the checked schedule.

    Raises
    ------
    InputError
        If a name is unknown, a job can never fit, an option does not apply to the policy, a workload without end is
        given without a window of jobs, a table has wrong columns or values (naming row and column), or an
        instance is given and an option says what it says itself.
    EarlyEndError
        If the last job of a trace arrives before those of the window are complete.
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
    >>> instance = sp.Instance(sp.Cluster.parse("1x1"), jobs, sp.Overheads(start_s=1.0))
    >>> sp.simulate(instance, policy="srtf").summary()["avg_jct_s"]
    7.5
    >>> endless = sp.endless("gavel-published", jobs_per_hour=1.0)
    >>> until = sp.RunOptions(until_complete=sp.JobWindow(20, 40))
    >>> sp.simulate(endless, "2x8", "srtf", until).summary()["window"]
    '20:40'
    """
    inputs = JobsAndCluster.of(jobs, cluster)
    window = inputs.window(options)
    if window is not None:
        return execute_until(inputs, policy, options, window, drop_infeasible=drop_infeasible)[1]
    run = prepare_run(inputs, None, policy, options, drop_infeasible=drop_infeasible)
    return execute(run, watch)


def execute(run: PreparedRun, watch: Watch | None = None) -> Outcome:
    """Carry a prepared run out, in the engine or in a loop of its own, and verify what was done."""
    done = _execute(run, watch)
    # Of nodes that fail, more faults may have been drawn than were known before.
    return _verified(replace(run, instance=done.instance), done)


def verified_outcome(run: PreparedRun, done: EngineRun) -> Outcome:
    """Outcome of a prepared run that the engine carried out elsewhere, verified."""
    executed = _Executed(done.instance, done.schedule, done.cpu_s, done.decisions)
    return _verified(replace(run, instance=done.instance), executed)


def execute_bounded(run: PreparedRun, watch: Watch | None = None) -> Outcome:
    """As :func:`execute`, for a run whose cost is compared with bounds on jobs as one gang each.

    Raises
    ------
    InputError
        Also if jobs run as several copies, or need not be complete; before anything is carried out.
    """
    require_bounded(run)
    return execute(run, watch)


@dataclass(frozen=True)
class _Executed:
    """Result of carrying a run out, unverified."""

    instance: Instance
    schedule: Schedule
    cpu_s: float
    decisions: int = 0


def execute_until(
    inputs: JobsAndCluster,
    policy: str | Policy | HasSimulator,
    options: RunOptions | None,
    window: JobWindow,
    *,
    drop_infeasible: bool,
    name: str | None = None,
) -> tuple[PreparedRun, Outcome]:
    """Run until a window of jobs is complete; the run and its outcome have the jobs that had come by then.

    Their name is the policy's unless one is given. Of an endless workload so many first jobs are taken that the last
    arrives later: which number it is makes no difference, since nobody sees a job before it arrives.
    """
    count = _FIRST_JOBS * window.last
    while True:
        some = inputs.first(count)
        try:
            run = prepare_run(some, None, policy, options, drop_infeasible=drop_infeasible)
            done = _execute(run)
            end_s = window_end_s(done.schedule, window)
            # In rounds nobody looks at who arrives within the last one.
            if not inputs.endless or some.ending().arrival_s[-1] >= end_s:
                break
            count *= 2
        except EarlyEndError:
            count *= 2
            if not inputs.endless or count > _MOST_JOBS * window.last:
                raise
    there = some.before(end_s)
    prepared = prepare_run(there, None, policy, options, drop_infeasible=drop_infeasible)
    settings = {**prepared.settings, "until_complete": str(window)}
    instance = replace(prepared.instance, failures=done.instance.failures)
    shortened = replace(prepared, settings=settings, prices=run.prices, instance=instance)
    shortened = shortened if name is None else replace(shortened, name=name)
    schedule = cut_schedule(done.schedule, end_s)
    if not there.ending().fractional.any():  # Jobs that hold parts of GPUs may all come later.
        schedule = replace(schedule, shared_gpu=None)
    return shortened, _verified(shortened, replace(done, schedule=schedule))


def _execute(run: PreparedRun, watch: Watch | None = None) -> _Executed:
    """Carry a prepared run out, in the engine or in a loop of its own.

    The compiled loop takes the engine's place where it makes the same schedule in less time.
    """
    if run.simulator is None:
        assert run.policy is not None
        with _ending(run.policy):
            done = run_fastest(
                run.instance, run.policy, placement=run.placement, rounds=run.rounds, watch=watch
            )
        return _Executed(done.instance, done.schedule, done.cpu_s, done.decisions)
    began, instance = time.process_time(), run.instance
    schedule = run.simulator.schedule(instance)
    if instance.failures is not None:
        end_s = float(schedule.end_s.max(initial=0.0))
        instance = replace(instance, failures=known_after(instance.failures, end_s))
    return _Executed(instance, schedule, time.process_time() - began)


def _ending(policy: Policy) -> AbstractContextManager[object]:
    """End of a run for a policy that has one: its process, if it is sealed, is over then."""
    return policy if isinstance(policy, AbstractContextManager) else nullcontext()


def _verified(run: PreparedRun, done: _Executed) -> Outcome:
    return Outcome(
        run.instance,
        done.schedule,
        run.name,
        run.settings,
        done.decisions,
        done.cpu_s,
        run.prices,
    )
