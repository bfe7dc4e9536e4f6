"""``shadowprice adversary``: hunt for the instance on which a policy is worst."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from shadowprice.cli.options import POLICY_HELP, JsonOption, SeedOption
from shadowprice.cli.outputs import (
    ForceOption,
    expect_outputs,
    print_record,
    write_file,
    write_picture,
)
from shadowprice.cli.progress import INTERRUPTED, progress_line
from shadowprice.cli.show import console, note

if TYPE_CHECKING:
    from shadowprice.analysis.adversary.search import WorstInstance


POLICY = "srtf"
"""Policy whose worst instance is looked for if none is named."""


def adversary_command(
    policy: Annotated[
        str | None, typer.Option("--policy", help=f"{POLICY_HELP} By default {POLICY}.")
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", help="Most jobs of an instance.")] = 5,
    gpus: Annotated[int, typer.Option("--gpus", help="GPUs of the cluster.")] = 4,
    objective: Annotated[
        str, typer.Option("--objective", help="completion, flow or makespan.")
    ] = "completion",
    method: Annotated[
        str,
        typer.Option(
            "--method", help="hypothesis, evolution, bilevel; the last for list policies."
        ),
    ] = "evolution",
    budget_s: Annotated[float, typer.Option("--budget", help="Seconds for the search.")] = 60.0,
    evaluations: Annotated[
        int, typer.Option("--evaluations", help="Instances to look at, at most.")
    ] = 1_000_000,
    seed: SeedOption = 0,
    max_work: Annotated[int, typer.Option("--max-work", help="Longest job, in units.")] = 10,
    max_arrival: Annotated[
        int, typer.Option("--max-arrival", help="Latest arrival, in units.")
    ] = 10,
    largest_gang: Annotated[
        int, typer.Option("--largest-gang", help="Widest job; 0 for all GPUs.")
    ] = 0,
    max_error: Annotated[
        int, typer.Option("--max-error", help="Predictions off by 2 to this power, either way.")
    ] = 0,
    unit_s: Annotated[float, typer.Option("--unit", help="Seconds in a unit.")] = 1.0,
    recheck_file: Annotated[
        Path | None,
        typer.Option(
            "--recheck",
            help="Check a stored instance instead of searching; with --policy where its policy is a file's.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Write the instance and its witness (JSON)."),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Draw both schedules (PNG, PDF, SVG).")
    ] = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Find the worst small instance of a policy, with a better schedule that proves how bad it is."""
    expect_outputs(force, output, plot)
    from shadowprice.analysis.adversary.family import InstanceFamily
    from shadowprice.analysis.adversary.judge import JudgeEffort
    from shadowprice.analysis.adversary.search import adversary, recheck, renamed
    from shadowprice.instances.hard_instances import HardInstance
    from shadowprice.instances.objective import rounded_up

    stopped = False
    if recheck_file is not None:
        found = recheck(HardInstance.read(recheck_file), str(recheck_file), policy)
    else:
        family = InstanceFamily(jobs, gpus, max_arrival, max_work, largest_gang, max_error, unit_s)
        chosen = policy or POLICY
        with progress_line(stoppable=method != "bilevel") as say:
            say(f"looking for the worst instance of {chosen}")
            found = adversary(
                chosen,
                family,
                objective,
                method=method,
                effort=JudgeEffort(evaluations, budget_s, seed),
                progress=say.retitle,
                watch=say,
            )
            stopped = say.asked_to_stop
    if output is not None:
        found = renamed(found, output.stem)
        write_file(
            output, lambda partial: partial.write_text(found.hard.to_json(), encoding="utf-8")
        )
    if plot is not None:
        write_picture(plot, found.plot())
    if as_json:
        bound = None if found.bound is None else rounded_up(found.bound.factor)
        print_record({**json.loads(found.hard.to_json()), "bound": bound})
    else:
        _print(found)
    if stopped:
        note("stopped by Ctrl-C: the worst instance of those that were looked at until then")
        raise typer.Exit(INTERRUPTED)


def _print(found: WorstInstance) -> None:
    hard = found.hard
    table = Table(
        "job",
        escape("arrival [s]"),
        "GPUs",
        escape("work [s]"),
        escape("ends [s]"),
        escape("could end [s]"),
        title=f"{hard.policy}, verified",
    )
    for column in table.columns[1:]:
        column.justify = "right"
    jobs = hard.instance.workload
    columns = (
        jobs.id,
        jobs.arrival_s,
        jobs.gpus,
        jobs.work,
        found.policy.end_s,
        found.witness.end_s,
    )
    for name, *numbers in zip(*(column.tolist() for column in columns), strict=True):
        table.add_row(str(name), *(f"{number:g}" for number in numbers))
    console.print(table)
    if hard.predictor is not None:
        console.print(f"predictions over truth: {hard.predictor}", markup=False, highlight=False)
    console.print(found.sentence(), markup=False, highlight=False)
