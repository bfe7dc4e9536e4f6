"""``shadowprice adversary``: hunt for the instance on which a policy is worst."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shadowprice.cli.options import POLICY_HELP, SeedOption, record_of_option, with_options
from shadowprice.cli.outputs import (
    ForceOption,
    expect_outputs,
    with_origin,
    write_file,
    write_picture,
)
from shadowprice.cli.progress import INTERRUPTED, progress_line
from shadowprice.cli.results import ResultForm, print_result
from shadowprice.cli.show import note, print_lines, print_rows

if TYPE_CHECKING:
    from shadowprice.analysis.adversary.search import WorstInstance


@with_options
def adversary_command(
    policy: Annotated[str, typer.Option("--policy", help=POLICY_HELP)] = "srtf",
    family: Annotated[
        str,
        typer.Option(
            "--family",
            metavar="key=value,...",
            help="Instances to choose from: jobs (5 at most), gpus (4), max_arrival (10 units), max_work (10), "
            "largest_gang (0: all GPUs), max_error (0: predictions off by 2 to this power), unit_s (1).",
        ),
    ] = "",
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
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Write the instance and its witness (JSON)."),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Draw both schedules (PNG, PDF, SVG).")
    ] = None,
    force: ForceOption = False,
    *,
    form: ResultForm,
) -> None:
    """Find the worst small instance of a policy, with a better schedule that proves how bad it is.

    `verify` checks a written one again.
    """
    expect_outputs(force, output, plot)
    from shadowprice.analysis.adversary.family import InstanceFamily
    from shadowprice.analysis.adversary.judge import JudgeEffort
    from shadowprice.analysis.adversary.search import adversary, renamed

    chosen = record_of_option("--family", family, InstanceFamily)
    with progress_line(stoppable=method != "bilevel") as say:
        say(f"looking for the worst instance of {policy}")
        worst = adversary(
            policy,
            chosen,
            objective,
            method=method,
            effort=JudgeEffort(evaluations, budget_s, seed),
            progress=say.retitle,
            watch=say,
        )
        stopped = say.asked_to_stop
    if output is not None:
        worst = renamed(worst, output.stem)
        write_file(
            output, lambda partial: partial.write_text(worst.hard.to_json(), encoding="utf-8")
        )
    _print(worst, plot, form)
    if stopped:
        note("stopped by Ctrl-C: the worst instance of those that were looked at until then")
        raise typer.Exit(INTERRUPTED)


def print_rechecked(file: Path, policy: str | None, plot: Path | None, form: ResultForm) -> None:
    """Check a hard instance again: the policy's schedule, the witness, their ratio.

    Parameters
    ----------
    policy : str or None
        Its policy where that is of a file, which is not run unasked.

    Raises
    ------
    InputError
        If it is none, or its policy is of a file that is not named.
    VerificationError
        If it does not show what it claims.
    """
    from shadowprice.analysis.adversary.search import recheck
    from shadowprice.instances.hard_instances import HardInstance

    _print(recheck(HardInstance.read(file), str(file), policy), plot, form)


def _print(worst: WorstInstance, plot: Path | None, form: ResultForm) -> None:
    from shadowprice.instances.objective import rounded_up

    if plot is not None:
        write_picture(plot, worst.plot())
    bound = None if worst.bound is None else rounded_up(worst.bound.factor)
    print_result(
        form,
        lambda: _show(worst),
        lambda: with_origin({**json.loads(worst.hard.to_json()), "bound": bound}),
        lambda: _rows(worst),
    )


def _rows(worst: WorstInstance) -> list[dict[str, object]]:
    """A row a job: what it is, and when it ends under the policy and in the witness."""
    jobs = worst.hard.instance.workload
    columns = {
        "job": jobs.id,
        "arrival_s": jobs.arrival_s,
        "gpus": jobs.gpus,
        "work_s": jobs.work,
        "end_s": worst.policy.end_s,
        "could_end_s": worst.witness.end_s,
    }
    cells = zip(*(column.tolist() for column in columns.values()), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in cells]


def _show(worst: WorstInstance) -> None:
    hard = worst.hard
    heads = ("job", "arrival [s]", "GPUs", "work [s]", "ends [s]", "could end [s]")
    rows = (
        (name, *(f"{each:g}" for each in numbers))
        for name, *numbers in map(dict.values, _rows(worst))
    )
    print_rows(heads, rows, range(1, 6), title=f"{hard.policy}, verified")
    if hard.predictor is not None:
        print_lines(f"predictions over truth: {hard.predictor}", broken=True)
    print_lines(worst.sentence(), broken=True)
