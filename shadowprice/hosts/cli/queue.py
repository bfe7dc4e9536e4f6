"""``shadowprice queue``: jobs that come while `execute --queue` runs others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from shadowprice.cli.options import JsonOption
from shadowprice.cli.outputs import print_record
from shadowprice.cli.panels import shown
from shadowprice.cli.show import console, print_table
from shadowprice.errors import InputError
from shadowprice.hosts.cli.commands import StateArgument, cancel_command

if TYPE_CHECKING:
    from shadowprice.hosts.reports.jobs import JobRow

queue = typer.Typer(
    no_args_is_help=True,
    help="Add jobs to a run of `execute --queue`, and see what becomes of them.",
)
queue.command("cancel", **shown("queue cancel"))(cancel_command)


@queue.command("add", **shown("queue add"))
def add_command(
    state: StateArgument,
    jobs: Annotated[Path, typer.Argument(help="Jobs to run (YAML).", metavar="JOBS")],
    as_json: JsonOption = False,
) -> None:
    """Queue all jobs of a job file, or none; those whose names are printed are on the disk."""
    from shadowprice.hosts.live.queue.job_queue import JobQueue
    from shadowprice.instances.documents.plain_yaml import parse, read_small

    document = parse(read_small(jobs), str(jobs))
    held = JobQueue(state)
    try:
        names = held.add(document, str(jobs), jobs.parent)
    finally:
        held.close()
    if as_json:
        print_record({"jobs": names})
    else:
        console.print("\n".join(names), markup=False, highlight=False, soft_wrap=True)


@queue.command("list", **shown("queue list"))
def list_command(state: StateArgument, as_json: JsonOption = False) -> None:
    """List all jobs of a run: where each runs, or why it waits."""
    from shadowprice.hosts.reports.status import printable

    rows = _rows(state)
    if as_json:
        print_record(
            {"jobs": [{"name": row.name, "state": row.state, "why": row.because} for row in rows]}
        )
        return
    table = Table("job", "state", "GPUs", "steps", "why, or where")
    print_table(
        table,
        rows,
        lambda row: [
            Text(printable(cell))
            for cell in (
                row.name,
                row.state,
                row.gpus,
                f"{row.step:,} / {row.iterations:,}",
                row.because,
            )
        ],
    )


@queue.command("why", **shown("queue why"))
def why_command(
    state: StateArgument,
    job: Annotated[str, typer.Argument(metavar="JOB", help="Name of a job.")],
) -> None:
    """Say of a job why it waits, or where it runs."""
    from shadowprice.hosts.reports.status import printable

    rows = {row.name: row for row in _rows(state)}
    if job not in rows:
        raise InputError(
            f"{state}: has no job {job!r}, expected one of {', '.join(rows) or 'none'}"
        )
    row = rows[job]
    words = f"{row.name} is {row.state}: {row.because or 'nothing more is known'}"
    console.print(printable(words), markup=False, highlight=False, soft_wrap=True)


def _rows(state: Path) -> list[JobRow]:
    from shadowprice.hosts.reports.jobs import job_rows
    from shadowprice.hosts.reports.run import RunReader

    with RunReader(state) as run:
        return job_rows(run)
