"""``shadowprice audit``: what was run, verified and measured, and what any scheduler could have gained."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shadowprice.analysis.wording import at_most, cost_cells
from shadowprice.cli.options import with_options
from shadowprice.cli.origin import origin
from shadowprice.cli.outputs import (
    ForceOption,
    expect_outputs,
    expect_run_directory,
    with_origin,
    write_file,
    write_picture,
    write_table,
)
from shadowprice.cli.progress import progress_line
from shadowprice.cli.results import ResultForm, print_result
from shadowprice.cli.run_inputs import split_names
from shadowprice.cli.show import console, print_lines, print_rows, table_of
from shadowprice.errors import InputError

if TYPE_CHECKING:
    from shadowprice.analysis.audit.audit import Audit, AuditedRun

MOST_SHOWN = 12
"""Contradictions that are printed; all are in the table that is written."""


@with_options
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
    page: Annotated[
        Path | None, typer.Option("--page", help="Write a page of pictures (HTML, one file).")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Write a picture of one run (PNG, PDF, SVG).")
    ] = None,
    day: Annotated[
        int | None,
        typer.Option(
            "--day", min=0, help="Day whose GPUs the page draws, from 0; the busiest by default."
        ),
    ] = None,
    run_directory: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="Write what was run as a run directory, for `verify` and `certify`.",
        ),
    ] = None,
    force: ForceOption = False,
    *,
    form: ResultForm,
) -> None:
    """Verify what was run, measure it, and bound what any scheduler could have gained."""
    if log is None and schedule is None:
        raise InputError("expected a log, or --schedule with what was run")
    if day is not None and page is None:
        raise InputError(f"--day {day}: goes with --page")
    expect_outputs(force, contradictions, page, plot)
    expect_run_directory(force, run_directory)
    from shadowprice.analysis.audit.audit import audit
    from shadowprice.instances.traces import load_trace

    jobs = None if log is None or schedule is None else load_trace(log).workload
    ran = log if schedule is None else schedule
    assert ran is not None
    with progress_line() as say:
        result = audit(
            ran,
            cluster,
            jobs=jobs,
            policies=None if policies is None else split_names(policies),
            budget_s=budget_s,
            zone=zone,
            progress=say,
        )
    if contradictions is not None:
        write_table(contradictions, result.contradictions)
    if page is not None:
        from shadowprice.analysis.audit.page import audit_page

        text = audit_page(result, day, made_by=origin().sentence())
        write_file(page, lambda partial: partial.write_text(text, encoding="utf-8"))
    if plot is not None:
        from shadowprice.analysis.audit.figures import overview

        write_picture(plot, overview(_one(result, "--plot draws")))
    if run_directory is not None:
        from shadowprice.analysis.run_directory.directory import save
        from shadowprice.analysis.run_directory.files import Provenance

        outcome = _one(result, "-o writes").run.outcome
        assert outcome is not None
        save(outcome, run_directory, provenance=Provenance(origin().record()))
    print_result(
        form,
        lambda: _show(result),
        lambda: with_origin(result.document()),
        lambda: _measured_rows(result),
        ("run", "objective", "policy", "cost", "bound", "ratio"),
    )


def _measured_rows(result: Audit) -> Iterator[dict[str, object]]:
    """A row for what was run, or for a policy in its place, by objective."""
    for audited in result.runs:
        for goal, comparison in audited.comparisons.items():
            for row in comparison.rows:
                yield {"run": audited.name, "objective": str(goal), **row.to_dict()}


def _one(result: Audit, does: str) -> AuditedRun:
    """The only run of a record.

    Raises
    ------
    InputError
        If there are several, or nothing of it was verified.
    """
    if len(result.runs) > 1 or result.runs[0].run.outcome is None:
        raise InputError(f"{result.source}: {does} one verified run, got {len(result.runs)} runs")
    return result.runs[0]


def _show(result: Audit) -> None:
    if len(result.runs) == 1:
        lines = result.runs[0].report()
    else:
        _print_runs(result)
        lines = result.common_lines()
    print_lines(*lines)
    _print_contradictions(result)
    for each in result.runs[:1]:
        print_lines(*(f"cannot be answered: {question}" for question in each.run.record.unanswered))


def _print_runs(result: Audit) -> None:
    from rich.markup import escape

    from shadowprice.instances.grid import TICKS_PER_S as scale

    heads = ("run", "objective", "cost [s]", "bound [s]", "ratio at most", "to the common bound")
    table = table_of(heads, range(2, 6))
    table.columns[0].overflow = "fold"
    for place, audited in enumerate(result.runs):
        if audited.run.outcome is None:
            table.add_row(escape(audited.name), "not verified")
        for goal, comparison in audited.comparisons.items():
            row = comparison.rows[0]
            jobs = len(comparison.outcomes[row.policy].complete) if goal == "flow" else 1
            (cells,) = cost_cells(
                [(row.cost_ticks / scale / jobs, row.proven_by.ticks / scale / jobs)]
            )
            shared = result.common.get(goal)
            other = "" if shared is None else at_most(shared[place].ratio)
            what = "mean JCT (flow)" if goal == "flow" else str(goal)
            table.add_row(escape(audited.name), what, *cells, other)
    console.print(table)


def _print_contradictions(result: Audit) -> None:
    kinds = [(audited, each) for audited in result.runs for each in audited.run.contradictions]
    if not kinds:
        return
    rows = []
    for audited, each in kinds[:MOST_SHOWN]:
        run = f"{audited.name}, " if len(result.runs) > 1 else ""
        first = f"{run}row {each.row[0]}, job {each.job[0]}: {each.detail[0]}"
        rows.append((each.kind, f"{len(each):,}", each.remedy, first))
    heads = ("noticed", "rows", "what is done", "first")
    print_rows(heads, rows, title="contradictions and rows that are no runs")
    if len(kinds) > MOST_SHOWN:
        print_lines(f"{len(kinds) - MOST_SHOWN} more kinds; --contradictions writes all rows")
