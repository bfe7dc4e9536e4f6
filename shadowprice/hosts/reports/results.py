"""Results of a real run: a verified log, measurements that can be simulated, and the drift."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd
from scipy.stats import kendalltau

from shadowprice.analysis.metrics import mean
from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.run_options import RunOptions
from shadowprice.errors import InputError, ShadowpriceError, VerificationError
from shadowprice.hosts.live.graphs.run_graphs import MeasuredMappings
from shadowprice.hosts.live.ledger import RunLedger
from shadowprice.hosts.live.measured_run import (
    MeasuredRun,
    RealJob,
    measured_run,
    write_measured,
)
from shadowprice.hosts.live.state_directory import LEDGER
from shadowprice.hosts.log.execution_log import LogRejected, verify_ledger
from shadowprice.hosts.reports.simulated_run import simulate_as_executed
from shadowprice.hosts.reports.unsimulated import unsimulated
from shadowprice.hosts.supervision.files import write_text
from shadowprice.hosts.throughput_files import spread_speeds
from shadowprice.instances.graphs.workload_graphs import shape_of
from shadowprice.instances.speeds.model_skew import ModelSkews
from shadowprice.solvers.policy import Policy
from shadowprice.user_code import runs_a_file

# Simulated against real: how far a simulation of what was measured is from what happened.


COLUMNS = {
    "job": "job",
    "arrival_s": "arrival [s]",
    "real_jct_s": "real JCT [s]",
    "simulated_jct_s": "simulated [s]",
    "difference_s": "difference [s]",
    "relative_error": "error",
}
"""Columns of a drift, and their heads where they are shown."""


@dataclass(frozen=True, eq=False)
class Drift:
    """Job completion times, simulated and real.

    Parameters
    ----------
    frame : DataFrame
        One row a job that finished: its name, ``arrival_s``, ``real_jct_s``, ``simulated_jct_s``,
        ``difference_s`` (simulated minus real) and ``relative_error`` (that over real).
    policy : str
        Policy of both.
    remarks : tuple of str
        Where the simulation is of something else: faults, drivers that took over, rates that had to be assumed, jobs
        left out, replicas placed otherwise.
    """

    frame: pd.DataFrame
    policy: str
    remarks: tuple[str, ...] = ()

    @property
    def real_mean_s(self) -> float | None:
        """Mean JCT of the real run [s]; None if no job finished."""
        return mean(self.frame["real_jct_s"].to_numpy())

    @property
    def simulated_mean_s(self) -> float | None:
        """Mean JCT of the simulation, of the same jobs [s]."""
        return mean(self.frame["simulated_jct_s"].to_numpy())

    @property
    def relative_error(self) -> float | None:
        """Error of the simulated mean JCT: 0.1 if it is 10 % too long; None without jobs."""
        real_s, simulated_s = self.real_mean_s, self.simulated_mean_s
        if not real_s or simulated_s is None:
            return None
        return simulated_s / real_s - 1.0

    @property
    def rank_agreement(self) -> float | None:
        """Kendall's tau of the orders in which jobs finish, simulated and real.

        1 if all finish in the same order, -1 if in the reverse; None with fewer than two jobs, or all at once.
        """
        arrival_s = self.frame["arrival_s"]
        ends = [arrival_s + self.frame[f"{of}_jct_s"] for of in ("real", "simulated")]
        tau = float(kendalltau(*ends).statistic) if len(self.frame) > 1 else math.nan
        return None if math.isnan(tau) else tau

    def sentence(self) -> str:
        """The result in words."""
        if self.real_mean_s is None or self.relative_error is None:
            return f"{self.policy}: no job finished, there is nothing to compare"
        tau = self.rank_agreement
        order = "" if tau is None else f"; order of ends: Kendall's tau {tau:.2f}"
        return (
            f"{self.policy}: mean JCT of {len(self.frame)} jobs was {self.real_mean_s:.1f} s, simulated "
            f"{self.simulated_mean_s:.1f} s ({100 * self.relative_error:+.1f} %){order}"
        )

    def table(self) -> str:
        """One line a job, and the means, as text."""
        names = [name for name in COLUMNS if name != "arrival_s"]
        rows = [[COLUMNS[name] for name in names]]
        rows += [
            [name, *(f"{value:.1f}" for value in values[:3]), f"{100 * values[3]:+.1f} %"]
            for name, *values in self.frame[names].itertuples(index=False)
        ]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])])
            for row in rows
        ]
        return "\n".join([*lines, self.sentence(), *self.remarks])


def drift(jobs: Iterable[RealJob], outcome: Outcome, remarks: Sequence[str] = ()) -> Drift:
    """Compare jobs of a real run with the same ones of a simulation.

    Jobs that did not finish, and those that were not simulated, are left out of both means.

    Raises
    ------
    InputError
        If a job finished no later than it arrived.
    """
    row_of, simulated = outcome.instance.workload.row_of, outcome.jct_s
    rows = []
    for job in jobs:
        if not math.isfinite(job.finish_s) or job.name not in row_of:
            continue
        real_s, simulated_s = job.finish_s - job.arrival_s, float(simulated[row_of[job.name]])
        if real_s <= 0:
            raise InputError(
                f"job {job.name!r}: finished at {job.finish_s} s, expected later than its arrival "
                f"at {job.arrival_s} s"
            )
        difference_s = simulated_s - real_s
        rows.append(
            (job.name, job.arrival_s, real_s, simulated_s, difference_s, difference_s / real_s)
        )
    return Drift(pd.DataFrame(rows, columns=list(COLUMNS)), outcome.policy, tuple(remarks))


def replay(run: MeasuredRun, policy: str | Policy | None = None) -> Drift:
    """Simulate a real run with what was measured in it, and compare.

    Same policy, placement, cluster, jobs and rounds; rates alone, beside others and when spread, and charges, as
    they were measured.

    Parameters
    ----------
    policy : str or Policy, optional
        The policy, where its name in the log does not tell.

    Raises
    ------
    InputError, PolicyError
        As of ``simulate``.
    """
    mapped = run.mapped
    # Where jobs might share GPUs, who asked for no CPUs and memory held none, whether a pair was measured or not.
    together = bool(run.table.pairs) or (run.shared and bool(run.workload.asking.any()))
    speeds: ModelSkews | None = None if mapped is not None else spread_speeds(run.observations)
    options = RunOptions(
        placement=run.placement,
        round_s=run.round_s,
        first_round_s=0.0,
        overheads=run.overheads,
        sharing_rates=run.table if together else None,
        skews=speeds if speeds is not None and speeds.models else None,
        profiles=run.profiles,
        network=None if mapped is None else mapped.network,
        graphs=None if mapped is None else mapped.graphs,
    )
    outcome = simulate_as_executed(run.workload, run.cluster, policy or run.policy, options)
    placed = [] if mapped is None else _placed_otherwise(mapped, outcome)
    return drift(run.jobs, outcome, [*run.notes, *placed])


def _placed_otherwise(mapped: MeasuredMappings, outcome: Outcome) -> list[str]:
    """A sentence if the simulation groups replicas on nodes, which are alike, otherwise than the real run did."""
    rows, found = outcome.schedule, dict[str, tuple[float, list[tuple[int, ...]]]]()
    assert rows.stages is not None
    names = outcome.instance.workload.id
    for job, start_s, stages in zip(
        rows.job.tolist(), rows.start_s.tolist(), rows.stages.tolist(), strict=True
    ):
        name = str(names[job])
        first_s, shape = found.setdefault(name, (start_s, []))
        if start_s < first_s:
            found[name] = (start_s, [stages])
        elif start_s == first_s:
            shape.append(stages)
    others = [
        name
        for name, (_, shape) in found.items()
        if name in mapped.placed
        and shape_of(shape) != shape_of(stages for _, stages in mapped.placed[name])
    ]
    if not others:
        return []
    return [f"replicas are first on other nodes together than in the real run: {', '.join(others)}"]


MEASURED = "measured"
"""Folder of the state directory for what was measured."""
DRIFT = "drift.csv"
REMARKS = "drift.txt"
"""Files there: rows of a :class:`Drift`, and its remarks, one a line."""


@dataclass(frozen=True)
class Results:
    """Results of a run.

    Parameters
    ----------
    checked : mapping of str to int
        Counts of the verifier: events, leases, steps lost ...
    drift : Drift or None
        Simulated against real; None if there is nothing to compare.
    command : str
        Simulates what was measured; empty if nothing was.
    why : str
        Why there is no drift.
    """

    checked: Mapping[str, int]
    drift: Drift | None
    command: str
    why: str = ""


def is_state_directory(directory: Path) -> bool:
    """True if a folder is the state directory of a real run."""
    return (directory / LEDGER).is_file()


def verify_run(state: Path) -> dict[str, int]:
    """Check the log of a real run.

    Raises
    ------
    VerificationError
        Naming the event and the rule it breaks.
    InputError
        If there is no ledger, or it cannot be read.
    """
    path = state / LEDGER
    RunLedger.open(path, readonly=True).close()
    try:
        return verify_ledger(path)
    except LogRejected as error:
        raise VerificationError(f"{path}: {error}") from error
    except (sqlite3.Error, ValueError, LookupError) as error:
        raise InputError(f"{path}: cannot be read as the log of a run: {error!r}") from error


def results(state: Path, policy: str | Policy | None = None) -> Results:
    """Verify a run, write what was measured in it to ``STATE/measured``, and simulate that.

    Parameters
    ----------
    policy : str or Policy, optional
        The run's policy, where its name does not tell. One whose name runs a file is simulated only if it
        is given: no code is run because a log names it.

    Raises
    ------
    VerificationError, InputError
        As of :func:`verify_run`, or if the measurements cannot be written.
    """
    checked = verify_run(state)
    ledger = RunLedger.open(state / LEDGER, readonly=True)
    try:
        faults = unsimulated(ledger.events())
        run = measured_run(ledger)
    except InputError as error:
        return Results(checked, None, "", str(error))
    finally:
        ledger.close()
    place = state / MEASURED
    _remove_links(place)
    command = write_measured(run, place)
    for path in place.iterdir():
        path.chmod(0o600)
    if policy is None and runs_a_file(run.policy):
        why = f"its policy {run.policy!r} runs a file, which is not done because a log names it"
        return Results(checked, None, command, why)
    try:
        drift = replay(run, policy)
        drift = replace(drift, remarks=(*faults, *drift.remarks))
    except ShadowpriceError as error:
        return Results(checked, None, command, str(error))
    # Rows never lie beside remarks on others, wherever this is cut off.
    if (place / DRIFT).is_file():
        (place / DRIFT).unlink()
    write_text(str(place / REMARKS), "".join(f"{remark}\n" for remark in drift.remarks))
    write_text(str(place / DRIFT), drift.frame.to_csv(index=False))
    return Results(checked, drift, command)


def _remove_links(folder: Path) -> None:
    """Remove links in the place of a folder and of its files: a job may have made them."""
    if folder.is_symlink():
        folder.unlink()
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.is_symlink():
            path.unlink()
