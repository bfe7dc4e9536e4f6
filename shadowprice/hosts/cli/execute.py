"""``shadowprice execute``: a policy over real jobs on real hosts."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from shadowprice.cli.options import (
    POLICY_HELP,
    RUNS_IT,
    ThroughputsOption,
    record_of_option,
    with_options,
)
from shadowprice.cli.outputs import with_origin
from shadowprice.cli.results import ResultForm, print_result
from shadowprice.cli.show import console, note
from shadowprice.errors import InputError
from shadowprice.hosts.cli.commands import print_results, print_rows, print_text
from shadowprice.hosts.live.limits import Limits
from shadowprice.instances.entries import printable

if TYPE_CHECKING:
    from shadowprice.hosts.live.driver import Summary
    from shadowprice.hosts.live.job_file import Job
    from shadowprice.hosts.live.settings import Settings
    from shadowprice.hosts.protocol import DiscoveredNode
    from shadowprice.hosts.reports.plan import ExecutionPlan


# Output of ``shadowprice execute --dry-run``.


def print_plan(plan: ExecutionPlan, form: ResultForm) -> None:
    """Print nodes, commands, assumptions, the first decision and what simulation predicts."""
    print_result(
        form,
        lambda: _show_plan(plan),
        lambda: with_origin(plan.to_dict()),
        lambda: plan.to_dict()["jobs"],
    )


def _show_plan(plan: ExecutionPlan) -> None:
    _print_nodes(plan)
    _print_commands(plan)
    for sentence in plan.notes:
        console.print(Text(printable(sentence), style="yellow"), soft_wrap=True)
    starts = ", ".join(
        f"{job} on {node} ({gpus} GPU{'s' if gpus > 1 else ''})" for job, node, gpus in plan.first()
    )
    if starts:
        print_text(f"\nfirst decision: {starts}")
    _print_predicted(plan)
    summary = plan.outcome.summary()
    print_text(
        f"predicted by simulation: mean JCT {summary['avg_jct_s']:,.1f} s, "
        f"makespan {summary['makespan_s']:,.1f} s; nothing was started"
    )


def _print_nodes(plan: ExecutionPlan) -> None:
    heads = ("node", "type", "devices", "CPUs", "memory [GB]")

    def cells(node: DiscoveredNode) -> tuple[str, ...]:
        names = " ".join(device.uuid for device in node.devices)
        memory = f"{node.memory_gb:,.0f}" if node.memory_gb else ""
        return (node.name, node.gpu_type, names, f"{node.cpus:g}", memory)

    print_rows(heads, map(cells, plan.nodes), title=plan.settings.hosts)


def _print_commands(plan: ExecutionPlan) -> None:
    def cells(job: Job) -> tuple[str, ...]:
        command = printable(shlex.join(plan.argv(job)))
        variables = f"\nwith {printable(', '.join(sorted(job.env)))}" if job.env else ""
        return (job.name, str(job.gpus), f"{job.iterations:,}", command + variables)

    heads = ("job", "GPUs", "iterations", "command, and names of variables")
    print_rows(heads, map(cells, plan.job_file.jobs))


def _print_predicted(plan: ExecutionPlan) -> None:
    """Print a row a job: when it would run, and how long it would take."""
    heads = ("job", "arrival [s]", "start [s]", "end [s]", "JCT [s]")
    jobs = plan.outcome.jobs[["id", "arrival_s", "first_start_s", "end_s", "jct_s"]]
    rows = [
        (str(name), *(f"{value:,.1f}" for value in numbers))
        for name, *numbers in jobs.itertuples(index=False)
    ]
    print_rows(heads, rows, title=plan.settings.policy_name, numbers=True)


def _words_of(command: str | None) -> tuple[str, ...]:
    """Words of a command line; no shell reads it.

    Raises
    ------
    InputError
        If a quotation does not end.
    """
    try:
        return tuple(shlex.split(command or ""))
    except ValueError as error:
        raise InputError(f"--health-check {command!r}: {error}") from error


NOT_ALL, INTERRUPTED = 1, 130
"""Exit codes: some jobs did not finish; Ctrl-C."""


@with_options
def execute_command(
    policy: Annotated[str, typer.Option("--policy", help=POLICY_HELP)],
    jobs: Annotated[
        Path | None,
        typer.Argument(help="Jobs to run (YAML); none with --queue.", metavar="JOBS"),
    ] = None,
    queued: Annotated[
        bool, typer.Option("--queue", help="Run the jobs that `submit` brings, until Ctrl-C.")
    ] = False,
    hosts: Annotated[
        str,
        typer.Option(
            "--hosts", help="local, local:SLOTS, local:NODESxSLOTS, ray[:ADDRESS], slurm[:JOBID]."
        ),
    ] = "local",
    round_s: Annotated[
        float, typer.Option("--round", help="Seconds between decisions; 0: at every event.")
    ] = 60.0,
    state: Annotated[
        Path | None,
        typer.Option(
            "--state", help="State directory; the same again goes on. JOBS.state if none."
        ),
    ] = None,
    placement: Annotated[
        str, typer.Option("--placement", help=f"count, consolidate, pack or skew; {RUNS_IT}.")
    ] = "count",
    throughputs: ThroughputsOption = None,
    share: Annotated[
        float | None,
        typer.Option(
            "--share", help="Let jobs share GPUs; each is assumed to keep this part of its rate."
        ),
    ] = None,
    limits: Annotated[
        str,
        typer.Option(
            "--limits",
            metavar="key=value,...",
            help="When the run stops waiting: grace_s (30: a stopped job's time for a checkpoint), ttl_s (60: jobs "
            "go on after the driver died), start_s (120: until a started job runs), hang_s (600: without a step), "
            "retries (3: failures in a row until it is given up); all are in docs/execution.md.",
        ),
    ] = "",
    health_check: Annotated[
        str | None,
        typer.Option(
            "--health-check",
            metavar="COMMAND",
            help="Has to end with 0 on a node before a lease begins there; else its devices are drained.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")
    ] = False,
    no_view: Annotated[bool, typer.Option("--no-view", help="Show nothing while it runs.")] = False,
    *,
    form: ResultForm,
) -> None:
    """Run jobs on real hosts under a policy; the same command again goes on where it was.

    Ctrl-C asks running jobs for a last checkpoint and ends; a second one leaves at once. The exit
    code is 0 if all jobs finished, 1 if some did not, 130 after Ctrl-C; 0 then with --queue.
    """
    from shadowprice.hosts.live.driver import execute, execute_queue
    from shadowprice.hosts.live.settings import Settings
    from shadowprice.hosts.reports.plan import plan

    source = state if queued else jobs
    if source is None or (queued and (jobs is not None or dry_run)):
        raise InputError(
            "execute: expected JOBS, or --queue with --state DIR for jobs that come, of which nothing can be "
            "said before: without JOBS and --dry-run"
        )
    settings = Settings(
        jobs=source,
        policy=policy,
        hosts=hosts,
        round_s=round_s,
        state=source.with_suffix(".state") if state is None else state,
        placement=placement,
        throughputs=throughputs,
        share=share,
        limits=record_of_option("--limits", limits, Limits),
        health_check=_words_of(health_check),
    )
    if dry_run:
        print_plan(plan(settings), form)
        return
    run = execute_queue if queued else execute
    summary = _run_with_view(run, settings, shown=not (no_view or form.option))
    _say_how_it_ended(settings, summary, form)
    if summary.interrupted:
        raise typer.Exit(0 if queued else INTERRUPTED)
    raise typer.Exit(0 if summary.all_finished else NOT_ALL)


def _run_with_view(
    run: Callable[[Settings], Summary], settings: Settings, *, shown: bool
) -> Summary:
    from shadowprice.hosts.cli.view import Following

    if not shown:
        return run(settings)
    with Following(settings.state, console) as following:
        summary = run(settings)
    if following.error is not None:
        note(f"the view ended: {following.error}")
    return summary


def _say_how_it_ended(settings: Settings, summary: Summary, form: ResultForm) -> None:
    from shadowprice.hosts.reports.jobs import job_rows
    from shadowprice.hosts.reports.run import RunReader
    from shadowprice.hosts.reports.status import status_record

    with RunReader(settings.state) as run:
        print_result(
            form,
            lambda: _show_how_it_ended(settings, summary),
            lambda: status_record(run, events=0),
            lambda: map(asdict, job_rows(run)),
        )
    if summary.interrupted:
        note(f"stopped: everything is kept in {settings.state}, the same command goes on with it")


def _show_how_it_ended(settings: Settings, summary: Summary) -> None:
    states = ", ".join(
        f"{number} {state}" for state, number in Counter(summary.jobs.values()).items()
    )
    print_text(
        f"{len(summary.jobs)} jobs: {states}; `shadowprice status {settings.state} --page FILE` draws them"
    )
    if not summary.interrupted:
        print_results(settings.state, settings.policy)
