"""``shadowprice queue``: what users ask of a service."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from shadowprice.cli.options import JsonOption
from shadowprice.cli.outputs import print_record
from shadowprice.cli.panels import shown
from shadowprice.cli.show import console, print_table

if TYPE_CHECKING:
    from shadowprice.execution.service.client import ServiceClient

queue = typer.Typer(
    no_args_is_help=True, help="Submit jobs to a service, and see what becomes of them."
)

SocketArgument = Annotated[
    Path,
    typer.Argument(metavar="SOCKET", help="Socket of the service, or its state directory."),
]
JobArgument = Annotated[str, typer.Argument(metavar="JOB", help="Name that `submit` told.")]


def _client(socket: Path) -> ServiceClient:
    from shadowprice.execution.service.client import ServiceClient

    return ServiceClient(socket)


@queue.command("submit", **shown("queue submit"))
def submit_command(
    socket: SocketArgument,
    jobs: Annotated[Path, typer.Argument(metavar="JOBS", help="Jobs to run (YAML).")],
    request: Annotated[
        str | None,
        typer.Option("--request", help="The same again submits nothing a second time."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Queue all jobs of a job file, or none; what is printed is on the service's disk."""
    names = _client(socket).submit(jobs, request)
    if as_json:
        print_record({"jobs": names})
    else:
        console.print("\n".join(names), markup=False, highlight=False, soft_wrap=True)


@queue.command("list", **shown("queue list"))
def list_command(
    socket: SocketArgument,
    mine: Annotated[bool, typer.Option("--mine", help="Only your own jobs.")] = False,
    as_json: JsonOption = False,
) -> None:
    """List jobs of all users: where each runs, or why it waits."""
    now = _client(socket).state()
    if mine:
        now["jobs"] = [job for job in now["jobs"] if job["user"] == now["you"]["user"]]
    if as_json:
        print_record(now)
        return
    table = Table("job", "user", "state", "GPUs", "steps", "why, or where")
    print_table(table, now["jobs"], _cells)
    console.print(_devices(now), markup=False, highlight=False, soft_wrap=True)


def _cells(job: Mapping[str, Any]) -> list[Text]:
    steps = f"{job['step']:,} / {job['iterations']:,}"
    cells = (job["name"], job["user"], job["state"], str(job["gpus"]), steps, job["because"])
    return [Text(_line(cell)) for cell in cells]


def _devices(now: dict[str, Any]) -> str:
    devices = [device for node in now["nodes"] for device in node["devices"]]
    held = sum(bool(device["held_by"]) for device in devices)
    return (
        f"{held} of {len(devices)} devices are held; policy {now['policy']}, driver {now['driver']}"
    )


def _line(text: object) -> str:
    from shadowprice.analysis.real_runs.status import printable

    return printable(text)


@queue.command("why", **shown("queue why"))
def why_command(socket: SocketArgument, job: JobArgument, as_json: JsonOption = False) -> None:
    """Say of one of your jobs why it waits, or where it runs."""
    found = _client(socket).job(job)
    if as_json:
        print_record(found)
        return
    console.print(_line(f"{found['name']} {found['because']}"), markup=False, highlight=False)


@queue.command("output", **shown("queue output"))
def output_command(socket: SocketArgument, job: JobArgument) -> None:
    """Print the last lines that one of your jobs wrote, since it was started last."""
    print(_client(socket).output(job))


@queue.command("cancel", **shown("queue cancel"))
def cancel_command(
    socket: SocketArgument,
    jobs: Annotated[list[str], typer.Argument(metavar="JOB...", help="Names of your jobs.")],
) -> None:
    """Cancel jobs of yours: all of them, or none."""
    _client(socket).cancel(jobs)
    console.print(f"to be cancelled: {', '.join(jobs)}", markup=False, highlight=False)


@queue.command("token", **shown("queue token"))
def token_command(
    socket: SocketArgument,
    drop: Annotated[
        bool, typer.Option("--drop", help="Let none of your tokens mean anything.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Make a token for the service's port, for the page in a browser and for Prometheus."""
    client = _client(socket)
    if drop:
        client.drop_tokens()
        console.print("your tokens are dropped")
        return
    made = client.make_token()
    if as_json:
        print_record(made)
    else:
        console.print(made["page"], markup=False, highlight=False, soft_wrap=True)
