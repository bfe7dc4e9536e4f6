"""``shadowprice audit``: what was run, verified and measured, and what any scheduler could have gained."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shadowprice.cli.given import split_names
from shadowprice.cli.options import JsonOption
from shadowprice.cli.outputs import ForceOption, expect_outputs, print_record, write_table
from shadowprice.cli.progress import progress_line
from shadowprice.cli.show import console
from shadowprice.errors import InputError

if TYPE_CHECKING:
    from shadowprice.analysis.audit.audit import Audit

MOST_SHOWN = 12
"""Contradictions that are printed; all are in the table that is written."""


def audit_command(
    log: Annotated[
        Path | None,
        typer.Argument(
            help="A log with starts and ends, a table of pieces (job, gpus, start, end, node), or recorded rounds; "
            "with --schedule the trace of its jobs."
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster", help="Cluster on which it ran, as of `simulate`; rounds may say it."
        ),
    ] = None,
    schedule: Annotated[
        Path | None,
        typer.Option(
            "--schedule", help="What was run, where LOG is a trace that says what the jobs are."
        ),
    ] = None,
    policies: Annotated[
        str | None,
        typer.Option(
            "--policies",
            help="Run the jobs again under these; easy,srtf,las2d by default, none for many runs.",
        ),
    ] = None,
    budget_s: Annotated[
        float, typer.Option("--budget", min=0.0, help="Seconds for all bounds, at most.")
    ] = 20.0,
    zone: Annotated[
        str | None, typer.Option("--zone", help="Zone of dates without one, such as Europe/Paris.")
    ] = None,
    contradictions: Annotated[
        Path | None,
        typer.Option("--contradictions", help="Write all contradictions (.csv, .parquet)."),
    ] = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Verify what was run, measure it, and bound what any scheduler could have gained."""
    if log is None and schedule is None:
        raise InputError("expected a log, or --schedule with what was run")
    expect_outputs(force, contradictions)
    from shadowprice.analysis.audit.audit import audit
    from shadowprice.instances.traces import load_trace

    jobs = None if log is None or schedule is None else load_trace(log).workload
    ran = log if schedule is None else schedule
    assert ran is not None
    with progress_line() as say:
        found = audit(
            ran,
            cluster,
            jobs=jobs,
            policies=None if policies is None else split_names(policies),
            budget_s=budget_s,
            zone=zone,
            progress=say,
        )
    if contradictions is not None:
        write_table(contradictions, found.contradictions)
    if as_json:
        print_record(found.document())
        return
    _print(found)


def _print(found: Audit) -> None:
    for line in found.lines():
        console.print(line, markup=False, highlight=False, soft_wrap=True)
