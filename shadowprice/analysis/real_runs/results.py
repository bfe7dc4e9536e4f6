"""Results of a real run: a verified log, measurements that can be simulated, and the drift."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from shadowprice.analysis.real_runs.drift import Drift, replay
from shadowprice.errors import InputError, ShadowpriceError, VerificationError
from shadowprice.execution.real.ledger import RunLedger
from shadowprice.execution.real.measured_run import measured_run, write_measured
from shadowprice.execution.real.state_directory import LEDGER
from shadowprice.proofs.execution_log import LogRejected, verify_ledger
from shadowprice.solvers.policy import Policy
from shadowprice.user_code import runs_a_file

MEASURED = "measured"
"""Folder of the state directory for what was measured."""


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
        run = measured_run(ledger)
    except InputError as error:
        return Results(checked, None, "", str(error))
    finally:
        ledger.close()
    command = write_measured(run, state / MEASURED)
    if policy is None and runs_a_file(run.policy):
        why = f"its policy {run.policy!r} runs a file, which is not done because a log names it"
        return Results(checked, None, command, why)
    try:
        drift = replay(run, policy)
    except ShadowpriceError as error:
        return Results(checked, None, command, str(error))
    drift.frame.to_csv(state / MEASURED / "drift.csv", index=False)
    return Results(checked, drift, command)
