"""Output of the results of a real run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from shadowprice.analysis.real_runs.results import results, verify_run
from shadowprice.cli.show import console
from shadowprice.solvers.policy import Policy


def print_results(state: Path, policy: str | Policy | None = None) -> None:
    """Print the verifier's counts, simulated against real, and how to simulate it again."""
    found = results(state, policy)
    lines = [checked_line(found.checked)]
    if found.drift is not None:
        lines.append(found.drift.table())
    elif found.why:
        lines.append(f"nothing to simulate: {found.why}")
    if found.command:
        lines.append(f"simulate what was measured: {found.command}")
    console.print("\n".join(lines), markup=False, highlight=False, soft_wrap=True)


def print_verified(state: Path, as_json: bool) -> None:
    """Print the verifier's counts for the log of a real run."""
    checked = verify_run(state)
    if as_json:
        print(json.dumps(checked))
    else:
        console.print(checked_line(checked), markup=False, highlight=False, soft_wrap=True)


def checked_line(checked: Mapping[str, int]) -> str:
    """The counts in words."""
    return (
        f"log verified: {checked['leases']} leases of {checked['jobs']} jobs, no device held twice, no job "
        f"lost; {checked['steps_lost']} steps lost, at most {checked['most_lost']} at once; "
        f"drivers: {checked['drivers']}"
    )
