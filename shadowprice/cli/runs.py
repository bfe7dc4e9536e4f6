"""``shadowprice simulate`` and ``compare``: policies over a trace."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shadowprice.cli.given import (
    RunInputs,
    read_endless,
    read_given,
    report_dropped,
    require_policies,
    split_names,
)
from shadowprice.cli.options import (
    POLICY_HELP,
    RUNS_IT,
    ClusterOption,
    JsonOption,
    OptionalTraceArgument,
    RunOptions,
    TraceArgument,
    with_options,
)
from shadowprice.cli.show import (
    console,
    print_comparison,
    print_losses,
    print_summary,
    print_utilities,
    progress_line,
    stderr,
    write,
)
from shadowprice.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from shadowprice.analysis.compare import Comparison
    from shadowprice.analysis.outcome import Outcome
    from shadowprice.instances.steady_state.endless import EndlessWorkload
    from shadowprice.instances.workload import Workload


UTILITY = "utility"
"""Objective that is maximised; the others are costs."""


@with_options
def simulate_command(
    trace: OptionalTraceArgument = None,
    *,
    cluster: ClusterOption,
    policy: Annotated[str, typer.Option("--policy", help=POLICY_HELP)],
    options: RunOptions,
    endless: Annotated[
        str | None,
        typer.Option(
            "--endless",
            metavar="GENERATOR[:parameter=value,...]",
            help="Instead of a trace, jobs that never stop to arrive, with --until-complete: gavel-published.",
        ),
    ] = None,
    until_complete: Annotated[
        str | None,
        typer.Option(
            "--until-complete",
            metavar="FIRST:LAST[:LATEST]",
            help="End when these jobs, in order of arrival from 0, are complete (4000:5000), and measure them "
            "alone; give up at LATEST seconds.",
        ),
    ] = None,
    local_sgd: Annotated[
        bool,
        typer.Option(
            "--local-sgd", help="With hadare: train a small model a job as its copies do."
        ),
    ] = False,
    jobs_out: Annotated[
        Path | None, typer.Option("--jobs-out", help="Write one row a job (CSV).")
    ] = None,
    prices_out: Annotated[
        Path | None,
        typer.Option("--prices-out", help="Write prices over time (.parquet, .csv)."),
    ] = None,
    prices_plot: Annotated[
        Path | None, typer.Option("--prices-plot", help="Draw prices over time (PNG, PDF, SVG).")
    ] = None,
    run_directory: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write a run directory.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run a policy over a trace, verify the schedule, print its metrics."""
    require_policies([policy], options.preset)
    priced = prices_out is not None or prices_plot is not None
    switches: dict[str, object] = {"local_sgd": local_sgd, "prices": priced}
    if until_complete is not None:
        from shadowprice.instances.steady_state.job_window import JobWindow

        switches["until_complete"] = JobWindow.parse(until_complete)
    given: RunInputs[Workload] | RunInputs[EndlessWorkload]
    if trace is not None and endless is None:
        given = read_given(trace, cluster, options, **switches)
        jobs = f"{len(given.workload)} jobs"
    elif endless is not None and trace is None:
        given = read_endless(endless, cluster, options, **switches)
        jobs = given.workload.source
    else:
        raise InputError("expected either a trace or --endless GENERATOR")
    from shadowprice.analysis.simulate import simulate

    with progress_line() as say:
        say(f"simulating {policy} on {jobs}")
        outcome = simulate(
            given.workload,
            given.cluster,
            policy,
            given.semantics,
            drop_infeasible=given.drop_infeasible,
        )
    report_dropped(outcome)
    if jobs_out is not None:
        write(jobs_out, lambda: outcome.jobs.to_csv(jobs_out, index=False))
    _write_prices(outcome, prices_out, prices_plot)
    if run_directory is not None:
        from shadowprice.analysis.run_directory.directory import save

        save(outcome, run_directory, cleaning=given.cleaning)
    if outcome.losses is None:
        print_summary(outcome, as_json)
    else:
        print_losses(outcome, outcome.losses, as_json)


def _write_prices(outcome: Outcome, table: Path | None, picture: Path | None) -> None:
    if table is None and picture is None:
        return
    from shadowprice.analysis.plots.prices import plot_prices, write_prices

    if table is not None:
        write(table, lambda: write_prices(outcome, table))
    if picture is not None:
        write(picture, lambda: plot_prices(outcome).savefig(picture, dpi=150))


@with_options
def compare_command(
    trace: TraceArgument,
    cluster: ClusterOption,
    *,
    policies: Annotated[
        str,
        typer.Option(
            "--policies",
            help="Names, comma-separated, parameters after a colon; "
            f"{RUNS_IT}, and may be a list of policies.",
        ),
    ] = "fifo,srtf,las2d,gittins2d",
    objective: Annotated[
        str, typer.Option("--objective", help="completion, flow, makespan or utility.")
    ] = "completion",
    utility: Annotated[
        str | None,
        typer.Option(
            "--utility",
            help="effective_throughput (default), completion_time, fairness or deadline, "
            "with --objective utility; its round is --round, or 360 s.",
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="MODEL",
            help="Hadar's offline programme edited, with --objective utility: a name that an installed "
            f"package offers, {RUNS_IT}.",
        ),
    ] = None,
    budget_s: Annotated[
        float, typer.Option("--budget", min=0.0, help="Seconds for the bound.")
    ] = 20.0,
    options: RunOptions,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Write a picture (PNG, PDF, SVG).")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure policies against a certified bound of the offline optimum."""
    names = split_names(policies)
    require_policies(names, options.preset)
    given = read_given(trace, cluster, options)
    if objective == UTILITY:
        picture = _by_utility(given, names, utility, model, budget_s, as_json)
    elif utility is None and model is None:
        picture = _by_cost(given, names, objective, budget_s, as_json)
    else:
        option = f"--model {model}" if utility is None else f"--utility {utility}"
        raise InputError(f"{option}: goes with --objective {UTILITY}, got --objective {objective}")
    if plot is not None:
        write(plot, lambda: picture().savefig(plot, dpi=150))


def _by_cost(
    given: RunInputs[Workload],
    names: list[str],
    objective: str,
    budget_s: float,
    as_json: bool,
) -> Callable[[], Figure]:
    """Compare costs in seconds, print them, and return what draws them."""
    from shadowprice.analysis.compare import compare

    with progress_line() as say:
        result = compare(
            given.workload,
            given.cluster,
            names,
            objective,
            given.semantics,
            budget_s=budget_s,
            drop_infeasible=given.drop_infeasible,
            progress=say,
        )
    report_dropped(next(iter(result.outcomes.values())))
    print_comparison(result, as_json)
    for history in result.histories:
        for line in history.sentences():
            stderr.print(f"bound {line}", markup=False, highlight=False, soft_wrap=True)
    for warning in result.warnings:
        stderr.print(warning, style="yellow", markup=False, highlight=False, soft_wrap=True)
    if given.semantics.preset is None and not as_json:
        _print_guarantees(result)
    return result.plot


def _by_utility(
    given: RunInputs[Workload],
    names: list[str],
    utility: str | None,
    model: str | None,
    budget_s: float,
    as_json: bool,
) -> Callable[[], Figure]:
    """Compare total utilities, print them, and return what draws them."""
    from shadowprice.analysis.utility.compare import compare_utility
    from shadowprice.solvers.programs.compile import SolverWarning

    with progress_line() as say, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SolverWarning)
        result = compare_utility(
            given.workload,
            given.cluster,
            names,
            utility or "effective_throughput",
            given.semantics,
            model=model,
            budget_s=budget_s,
            drop_infeasible=given.drop_infeasible,
            progress=say,
        )
    for warning in caught:
        stderr.print(
            str(warning.message), style="yellow", markup=False, highlight=False, soft_wrap=True
        )
    report_dropped(next(iter(result.outcomes.values())))
    print_utilities(result, as_json)
    return result.plot


def _print_guarantees(result: Comparison) -> None:
    from shadowprice.analysis.guarantees.lookup import described, guarantee

    for name, outcome in result.outcomes.items():
        run = described(result.runs[name], result.objective)
        known = None if run is None else guarantee(outcome, run)
        if known is not None:
            console.print(known.sentence(name), markup=False, highlight=False, soft_wrap=True)
