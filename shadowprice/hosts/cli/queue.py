"""``shadowprice submit`` and ``queue``: jobs that come while `execute --queue` runs others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from shadowprice.cli.options import JsonOption
from shadowprice.cli.outputs import print_record
from shadowprice.cli.show import console, print_table
from shadowprice.errors import InputError
from shadowprice.hosts.cli.commands import StateArgument

if TYPE_CHECKING:
    from shadowprice.hosts.reports.jobs import JobRow

EARLIER_WORDS = {
    "add": "submit STATE JOBS",
    "cancel": "cancel STATE JOB ...",
    "list": "queue STATE",
    "why": "queue STATE JOB",
}
"""Earlier subcommands, and what is written in their place."""


def submit_command(
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


def queue_command(
    state: StateArgument,
    job: Annotated[
        str | None, typer.Argument(metavar="[JOB]", help="Name of a job; all without one.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List jobs of a run, all or one: where each runs, or why it waits."""
    if str(state) in EARLIER_WORDS and not state.exists():
        raise InputError(f"queue {state}: is written `shadowprice {EARLIER_WORDS[str(state)]}` now")
    rows = _rows(state)
    if job is not None:
        names = [row.name for row in rows]
        if job not in names:
            raise InputError(f"{state}: has no job {job!r}, expected one of {', '.join(names)}")
        rows = [rows[names.index(job)]]
    if as_json:
        print_record(
            {"jobs": [{"name": row.name, "state": row.state, "why": row.because} for row in rows]}
        )
    elif job is not None:
        _print_job(rows[0])
    else:
        _print_jobs(rows)


def _print_job(row: JobRow) -> None:
    from shadowprice.hosts.reports.status import printable

    words = f"{row.name} is {row.state}: {row.because or 'nothing more is known'}"
    console.print(printable(words), markup=False, highlight=False, soft_wrap=True)


def _print_jobs(rows: list[JobRow]) -> None:
    from shadowprice.hosts.reports.status import printable

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


def _rows(state: Path) -> list[JobRow]:
    from shadowprice.hosts.reports.jobs import job_rows
    from shadowprice.hosts.reports.run import RunReader

    with RunReader(state) as run:
        return job_rows(run)
