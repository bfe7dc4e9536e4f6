"""Commands about a real run: ``status``, ``submit``, ``cancel``, ``retry``, ``drain`` and ``undrain``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from shadowprice.cli.options import with_options
from shadowprice.cli.origin import origin
from shadowprice.cli.outputs import ForceOption, expect_outputs, with_origin
from shadowprice.cli.results import ResultForm, entries, print_result
from shadowprice.cli.show import console, print_table
from shadowprice.errors import InputError
from shadowprice.hosts.reports.jobs import JobRow, job_rows
from shadowprice.instances.entries import printable

if TYPE_CHECKING:
    from shadowprice.hosts.live.ledger import RunLedger
    from shadowprice.hosts.protocol import DiscoveredNode
    from shadowprice.hosts.reports.run import RunReader
    from shadowprice.solvers.policy import Policy


def print_text(text: str) -> None:
    """Print text as it is: its lines are as long as they are, and nothing in it is markup."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def print_rows(
    heads: Sequence[str], rows: Iterable[Sequence[str]], *, title: str = "", numbers: bool = False
) -> None:
    """Print rows under their heads; ``numbers`` are in all columns but the first."""
    table = Table(*map(escape, heads), title=escape(printable(title)) or None)
    for column in table.columns[1:] if numbers else ():
        column.justify = "right"
    print_table(table, list(rows), lambda row: map(Text, row))


def print_results(state: Path, policy: str | Policy | None = None) -> None:
    """Print the verifier's counts, simulated against real, and how to simulate it again."""
    from shadowprice.hosts.reports.results import results

    found = results(state, policy)
    lines = [checked_line(found.checked)]
    if found.drift is not None:
        lines.append(found.drift.table())
    elif found.why:
        lines.append(f"nothing to simulate: {found.why}")
    if found.command:
        lines.append(f"simulate what was measured: {found.command}")
    print_text("\n".join(lines))


def print_verified(state: Path, form: ResultForm) -> None:
    """Print the verifier's counts for the log of a real run."""
    from shadowprice.hosts.reports.results import verify_run

    checked = dict(verify_run(state))
    print_result(
        form,
        lambda: print_text(checked_line(checked)),
        lambda: with_origin(checked),
        lambda: entries(checked),
    )


def checked_line(checked: Mapping[str, int]) -> str:
    """The counts in words."""
    from shadowprice.analysis.wording import counted

    leases, jobs = counted(checked["leases"], "lease"), counted(checked["jobs"], "job")
    return (
        f"log verified: {leases} of {jobs}, no device held twice, no job "
        f"lost; {counted(checked['steps_lost'], 'step')} lost, at most {checked['most_lost']} at once; "
        f"drivers: {checked['drivers']}"
    )


StateArgument = Annotated[
    Path, typer.Argument(help="State directory: what `execute --state` was given.", metavar="DIR")
]

DevicesArgument = Annotated[
    list[str],
    typer.Argument(help="Nodes, or devices as NODE:INDEX.", metavar="NODE[:INDEX]..."),
]

_EVENTS = 10


@with_options
def status_command(
    state: StateArgument,
    jobs: Annotated[
        list[str] | None,
        typer.Argument(help="Names of jobs; all of the run without.", metavar="[JOB]..."),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Go on until the run is over or Ctrl-C.")
    ] = False,
    page: Annotated[
        Path | None,
        typer.Option(
            "--page",
            help="Write a page (HTML, one file): devices over time, jobs, load, throughput, drift.",
        ),
    ] = None,
    force: ForceOption = False,
    *,
    form: ResultForm,
) -> None:
    """Show where a real run stands: jobs, who holds which GPU, why each waits, last events."""
    from shadowprice.hosts.cli.view import follow as follow_run
    from shadowprice.hosts.cli.view import view
    from shadowprice.hosts.reports.run import RunReader
    from shadowprice.hosts.reports.status import status_record

    if follow and (form.option or page or jobs):
        raise InputError("--follow: shows a view, expected no other option")
    if follow:
        with RunReader(state) as run:
            follow_run(run, console)
        return
    expect_outputs(force, page)
    with RunReader(state) as run:
        rows = _rows_named(run, jobs or ())
        if page is not None:
            _write_page(run, page)

        def show() -> None:
            if jobs:
                _show_jobs(rows)
            else:
                console.print(view(run, console.size.width, events=_EVENTS))
            if page is not None:
                print_text(str(page))

        print_result(
            form,
            show,
            lambda: {"jobs": list(map(asdict, rows))} if jobs else status_record(run),
            lambda: map(asdict, rows),
            tuple(field.name for field in fields(JobRow)),
        )


def _rows_named(run: RunReader, names: Sequence[str]) -> list[JobRow]:
    """Rows of some jobs, or of all.

    Raises
    ------
    InputError
        If the run has no job of a name.
    """
    rows = {row.name: row for row in job_rows(run)}
    for name in names:
        if name not in rows:
            known = ", ".join(rows) or "none"
            raise InputError(f"{run.directory}: has no job {name!r}, expected one of {known}")
    return [rows[name] for name in dict.fromkeys(names or rows)]


def _show_jobs(rows: Sequence[JobRow]) -> None:
    """Print where each job runs, or why it waits, a line each."""
    for row in rows:
        words = f"{row.name} is {row.state}: {row.because or 'nothing more is known'}"
        print_text(printable(words))


def _write_page(run: RunReader, page: Path) -> None:
    from shadowprice.hosts.reports.report import report
    from shadowprice.hosts.supervision.files import write_text

    text = report(run, made_by=origin().sentence())
    try:
        # In the place of whatever a job left there, a link for instance: jobs write into the state directory.
        write_text(str(page), text)
    except OSError as error:
        raise InputError(f"{page}: cannot be written: {error.strerror}") from error


@with_options
def submit_command(
    state: StateArgument,
    jobs: Annotated[Path, typer.Argument(help="Jobs to run (YAML).", metavar="JOBS")],
    *,
    form: ResultForm,
) -> None:
    """Queue all jobs of a job file, or none; those whose names are printed are on the disk."""
    from shadowprice.hosts.live.queue.job_queue import JobQueue
    from shadowprice.instances.documents.plain_yaml import parse, read_small

    document = parse(read_small(jobs), str(jobs))
    queue = JobQueue(state)
    try:
        names = queue.add(document, str(jobs), jobs.parent)
    finally:
        queue.close()
    print_result(
        form,
        lambda: print_text("\n".join(names)),
        lambda: with_origin({"jobs": names}),
        lambda: ({"job": name} for name in names),
        ("job",),
    )


@contextmanager
def _changing(state: Path) -> Iterator[RunLedger]:
    """The ledger of a run, changed from another terminal: all that is written, or nothing."""
    from shadowprice.hosts.live.ledger import RunLedger
    from shadowprice.hosts.live.state_directory import LEDGER

    ledger = RunLedger.open(state / LEDGER)
    try:
        with ledger.transaction():
            yield ledger
    finally:
        ledger.close()


def _say_when(
    state: Path,
    what: str,
    names: Iterable[str],
    later: str = "the driver will act when it is started again",
) -> None:
    """Say what was changed, and when the driver acts: at once if it runs."""
    from shadowprice.hosts.reports.run import RunReader

    with RunReader(state) as run:
        when = "the driver acts at once" if run.driver == "running" else later
    print_text(f"{what}: {', '.join(names)}; {when}")


def cancel_command(
    state: StateArgument,
    jobs: Annotated[list[str], typer.Argument(help="Names of jobs.", metavar="JOB...")],
) -> None:
    """Cancel jobs of a real run; those that run are asked to stop. All of them, or none."""
    from shadowprice.hosts.reports.run import OVER

    with _changing(state) as ledger:
        states = {str(row["name"]): str(row["state"]) for row in ledger.jobs()}
        for job in dict.fromkeys(jobs):
            if job not in states:
                raise InputError(
                    f"{state}: has no job {job!r}, expected one of {', '.join(states) or 'none'}; "
                    "nothing was cancelled"
                )
            if states[job] in OVER:
                raise InputError(
                    f"{state}: job {job!r} is {states[job]} already; nothing was cancelled"
                )
            ledger.update_job(job, cancel=1)
    _say_when(state, "to be cancelled", jobs)


def retry_command(
    state: StateArgument,
    jobs: Annotated[
        list[str] | None,
        typer.Argument(help="Names of jobs; all that were given up if none.", metavar="[JOB]..."),
    ] = None,
) -> None:
    """Take up jobs of a real run again that were given up, from their last checkpoints. All of them, or none."""
    with _changing(state) as ledger:
        states = {str(row["name"]): str(row["state"]) for row in ledger.jobs()}
        failed = [name for name, how in states.items() if how == "failed"]
        for job in jobs or ():
            if job not in failed:
                raise InputError(
                    f"{state}: job {job!r} is {states.get(job, 'none of the run')}, expected one that was given "
                    f"up: {', '.join(failed) or 'there is none'}; nothing was changed"
                )
        chosen = list(dict.fromkeys(jobs or failed))
        if not chosen:
            raise InputError(f"{state}: no job was given up; nothing was changed")
        for job in chosen:
            ledger.update_job(job, retry=1)
        ledger.set("ended", False)
    later = "the same `shadowprice execute` goes on with them"
    _say_when(state, "to be taken up again", chosen, later)


def drain_command(
    state: StateArgument,
    names: DevicesArgument,
    reason: Annotated[str, typer.Option("--reason", help="For people who look.")] = "by a person",
    now: Annotated[
        bool,
        typer.Option("--now", help="Ask jobs there for a checkpoint, to go on elsewhere."),
    ] = False,
) -> None:
    """Give devices of a real run to nobody any more; jobs there go on until they end or move."""
    from shadowprice.hosts.live.devices import Drains

    with _changing(state) as ledger:
        Drains(ledger).drain(devices_named(ledger.nodes(), names), reason, now=now)
    _say_when(state, "drained", names)


def undrain_command(state: StateArgument, names: DevicesArgument) -> None:
    """Give devices of a real run that were drained out again."""
    from shadowprice.hosts.live.devices import Drains

    with _changing(state) as ledger:
        Drains(ledger).undrain(devices_named(ledger.nodes(), names))
    _say_when(state, "to be given out again", names)


def devices_named(nodes: Sequence[DiscoveredNode], names: Sequence[str]) -> list[str]:
    """Uuids of all devices of nodes, or of one as ``NODE:INDEX``.

    Raises
    ------
    InputError
        If there is no such node or device.
    """
    known = {node.name: [device.uuid for device in node.devices] for node in nodes}
    known |= {
        f"{node.name}:{device.index}": [device.uuid] for node in nodes for device in node.devices
    }
    for name in names:
        if name not in known:
            raise InputError(
                f"there is no node or device {name!r}, expected one of {', '.join(known)}; nothing was changed"
            )
    return [uuid for name in names for uuid in known[name]]
