"""Runs whose schedules go to disk as they arise, are verified there, and never are in memory."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from shadowprice.analysis.preparation import prepare_run
from shadowprice.analysis.run_directory.directory import (
    cleaning_writer,
    describe,
    instance_writer,
    save,
)
from shadowprice.analysis.run_directory.files import (
    INSTANCE,
    SCHEDULE,
    UNKNOWN,
    WORKLOAD,
    Provenance,
    claim,
    finish,
    partial,
)
from shadowprice.analysis.run_directory.schedule_file import ScheduleFile, ScheduleWriter
from shadowprice.analysis.simulate import simulate
from shadowprice.analysis.streamed_outcome import StreamedOutcome
from shadowprice.errors import InputError
from shadowprice.execution.kernel.run import CompiledRun, runs_compiled
from shadowprice.instances.workload_files import write_workload
from shadowprice.proofs.verification.segments import verifiable_in_segments

if TYPE_CHECKING:
    from shadowprice.analysis.outcome import VerifiedRun
    from shadowprice.analysis.preparation import PreparedRun
    from shadowprice.analysis.run_options import RunOptions
    from shadowprice.execution.simulator import HasSimulator
    from shadowprice.execution.watch import Watch
    from shadowprice.instances.cluster import Cluster
    from shadowprice.instances.workload import Workload
    from shadowprice.solvers.index_policy import JobIndex
    from shadowprice.solvers.policy import Policy

STREAMED_JOBS = 500_000
"""Jobs from which on a run that can be streamed is."""


def simulate_into(
    directory: str | Path,
    workload: Workload,
    cluster: Cluster | str | Path,
    policy: str | Policy | HasSimulator,
    options: RunOptions | None = None,
    *,
    drop_infeasible: bool = False,
    watch: Watch | None = None,
    provenance: Provenance = UNKNOWN,
) -> VerifiedRun:
    """Run a policy over a workload into a run directory, as :func:`shadowprice.simulate` and a save do.

    From :data:`STREAMED_JOBS` jobs on runs that can be are streamed. Their files and metrics are the same.

    Parameters
    ----------
    directory : str or Path
        Where to write; an earlier run there is replaced.
    workload, cluster, policy, options, drop_infeasible, watch
        As of :func:`shadowprice.simulate`.
    provenance : Provenance
        Command and trace that it comes from.
    """
    streamed = options is None or (options.until_complete is None and not options.sealed)
    if len(workload) >= STREAMED_JOBS and streamed:
        run = prepare_run(workload, cluster, policy, options, drop_infeasible=drop_infeasible)
        outcome = stream(run, directory, watch, provenance=provenance)
        if outcome is not None:
            return outcome
    whole = simulate(
        workload, cluster, policy, options, drop_infeasible=drop_infeasible, watch=watch
    )
    save(whole, directory, provenance=provenance)
    return whole


def stream(
    run: PreparedRun,
    directory: str | Path,
    watch: Watch | None = None,
    *,
    provenance: Provenance = UNKNOWN,
) -> StreamedOutcome | None:
    """Carry a prepared run out into a run directory; an earlier run there is replaced.

    Memory is O(n) for n jobs, and does not depend on how often they are preempted.

    Parameters
    ----------
    watch : Watch, optional
        Told how far the run and its verification are. Where it stops the run, what was done until then is
        kept, as a run that was stopped.
    provenance : Provenance
        Command and trace that it comes from.

    Returns
    -------
    StreamedOutcome or None
        Verified; None, and nothing is written, if the run is not one that the compiled loop serves.

    Raises
    ------
    InputError
        If the directory cannot be written, or holds something else than an earlier run.
    PolicyError, VerificationError
        As :func:`shadowprice.simulate`.
    """
    index = _index(run)
    if index is None:
        return None
    assert run.policy is not None
    directory = Path(directory)
    try:
        claim(directory)
        names = [INSTANCE, WORKLOAD, SCHEDULE]
        compiled = CompiledRun(run.instance, run.policy, index, run.placement, run.rounds)
        try:
            outcome = _written(run, compiled, directory, watch)
            described = describe(outcome, provenance)
            # Of a run that was stopped it says when.
            instance_writer(outcome.instance)(partial(directory, INSTANCE))
            for name, write in cleaning_writer(provenance, described).items():
                write(partial(directory, name))
                names.append(name)
            finish(directory, names, described)
        finally:
            for name in names:
                with suppress(OSError):
                    partial(directory, name).unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{directory}: cannot be written: {error}") from error
    return outcome


def _written(
    run: PreparedRun, compiled: CompiledRun, directory: Path, watch: Watch | None
) -> StreamedOutcome:
    """Write jobs and schedule as partial files, and verify them there."""
    write_workload(run.instance.workload, partial(directory, WORKLOAD))
    with ScheduleWriter(partial(directory, SCHEDULE)) as schedule:
        for rows in compiled.rows(watch):
            schedule.add(rows)
    return StreamedOutcome(
        compiled.instance,
        ScheduleFile(partial(directory, SCHEDULE)),
        run.name,
        run.settings,
        compiled.decisions,
        compiled.cpu_s,
        watch,
    )


def _index(run: PreparedRun) -> JobIndex | None:
    if run.policy is None or run.prices is not None or not verifiable_in_segments(run.instance):
        return None
    return runs_compiled(run.instance, run.policy, run.placement)
