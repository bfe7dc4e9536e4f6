"""``shadowprice simulate`` and ``compare``: policies over a trace."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shadowprice.cli.options import (
    JOBS_PANEL,
    OUTPUTS_PANEL,
    POLICY_HELP,
    RUNS_IT,
    UTILITY,
    UTILITY_PANEL,
    ClusterOption,
    CommandOptions,
    ExplainBoundsOption,
    ObjectiveOption,
    OptionalTraceArgument,
    TraceArgument,
    UtilityOption,
    with_options,
)
from shadowprice.cli.origin import origin
from shadowprice.cli.outputs import (
    ForceOption,
    expect_outputs,
    expect_run_directory,
    write_picture,
    write_table,
)
from shadowprice.cli.progress import INTERRUPTED, progress_line
from shadowprice.cli.results import ResultForm
from shadowprice.cli.run_inputs import (
    RunInputs,
    read_endless,
    read_inputs,
    report_dropped,
    report_sealed,
    require_policies,
    split_names,
)
from shadowprice.cli.show import (
    note,
    print_comparison,
    print_lines,
    print_summary,
    print_utilities,
    tell_bounds,
)
from shadowprice.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from shadowprice.analysis.compare import Comparison
    from shadowprice.analysis.outcome import VerifiedRun
    from shadowprice.instances.steady_state.endless import EndlessWorkload
    from shadowprice.instances.workload import Workload


@with_options
def simulate_command(
    trace: OptionalTraceArgument = None,
    *,
    cluster: ClusterOption,
    policy: Annotated[str, typer.Option("--policy", help=POLICY_HELP)],
    options: CommandOptions,
    endless: Annotated[
        str | None,
        typer.Option(
            "--endless",
            metavar="GENERATOR[:parameter=value,...]",
            help="Instead of a trace, jobs that never stop to arrive, with a window: gavel-published.",
            rich_help_panel=JOBS_PANEL,
        ),
    ] = None,
    jobs_out: Annotated[
        Path | None,
        typer.Option(
            "--jobs-out",
            help="Write one row a job (.parquet, .csv).",
            rich_help_panel=OUTPUTS_PANEL,
        ),
    ] = None,
    prices: Annotated[
        list[Path] | None,
        typer.Option(
            "--prices",
            help="Write prices over time (.parquet, .csv), or draw them (.png, .pdf, .svg); may be repeated.",
            rich_help_panel=OUTPUTS_PANEL,
        ),
    ] = None,
    run_directory: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write a run directory.")
    ] = None,
    force: ForceOption = False,
    explain: Annotated[bool, typer.Option("--explain", help="Say what each metric is.")] = False,
    form: ResultForm,
) -> None:
    """Run a policy over a trace, verify the schedule, print its metrics."""
    require_policies([policy], options)
    expect_outputs(force, jobs_out, *(prices or ()))
    expect_run_directory(force, run_directory)
    _expect_prices(prices or ())
    inputs: RunInputs[Workload] | RunInputs[EndlessWorkload]
    if trace is not None and endless is None:
        inputs = read_inputs(trace, cluster, options, prices=bool(prices))
        jobs = f"{len(inputs.workload)} jobs"
    elif endless is not None and trace is None:
        inputs = read_endless(endless, cluster, options, prices=bool(prices))
        jobs = inputs.workload.source
    else:
        raise InputError("expected either a trace or --endless GENERATOR")
    outcome = _simulated(inputs, f"simulating {policy} on {jobs}", policy, run_directory)
    report_dropped(outcome)
    report_sealed(outcome)
    if jobs_out is not None:
        write_table(jobs_out, outcome.jobs)
    _write_prices(outcome, prices or ())
    print_summary(outcome, form, explain)
    if outcome.instance.stopped_s is not None:
        raise typer.Exit(INTERRUPTED)


def _simulated(
    inputs: RunInputs[Workload] | RunInputs[EndlessWorkload],
    step: str,
    policy: str,
    directory: Path | None,
) -> VerifiedRun:
    """The outcome, of a partial run if Ctrl-C stopped it; written to a run directory if there is one."""
    from shadowprice.analysis.simulate import simulate
    from shadowprice.instances.workload import Workload

    workload, cluster, run_options = inputs.workload, inputs.cluster, inputs.options
    dropped = inputs.drop_infeasible
    with progress_line(stoppable=True) as say:
        say(step)
        if directory is None:
            return simulate(
                workload, cluster, policy, run_options, drop_infeasible=dropped, watch=say
            )
        # Parquet is loaded for who writes it.
        from shadowprice.analysis.run_directory.directory import save
        from shadowprice.analysis.run_directory.files import Provenance
        from shadowprice.analysis.run_directory.streamed import simulate_into

        made_by = origin().record()
        if isinstance(workload, Workload):
            return simulate_into(
                directory,
                workload,
                cluster,
                policy,
                run_options,
                drop_infeasible=dropped,
                watch=say,
                provenance=Provenance(made_by, inputs.cleaning),
            )
        outcome = simulate(workload, cluster, policy, run_options, drop_infeasible=dropped)
        save(outcome, directory, provenance=Provenance(made_by))
        return outcome


_TABLES, _PICTURES = (".parquet", ".csv"), (".png", ".pdf", ".svg")
"""Endings of what prices are written to."""


def _expect_prices(files: Sequence[Path]) -> None:
    """Refuse a file that prices cannot be written to, before anything is run.

    Raises
    ------
    InputError
        Naming it and the endings that there are.
    """
    for file in files:
        if file.suffix.lower() not in (*_TABLES, *_PICTURES):
            raise InputError(
                f"{file}: expected a name that ends with {', '.join(_TABLES)} for a table, "
                f"{', '.join(_PICTURES)} for a picture"
            )


def _write_prices(outcome: VerifiedRun, files: Sequence[Path]) -> None:
    if not files:
        return
    from shadowprice.analysis.outcome import Outcome
    from shadowprice.analysis.plots.prices import plot_prices, prices_frame

    assert isinstance(outcome, Outcome)  # A run that keeps prices is not streamed.
    for file in files:
        if file.suffix.lower() in _TABLES:
            write_table(file, prices_frame(outcome))
        else:
            write_picture(file, plot_prices(outcome))


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
    objective: ObjectiveOption = "flow",
    utility: UtilityOption = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            rich_help_panel=UTILITY_PANEL,
            metavar="MODEL",
            help="Hadar's offline programme edited, with --objective utility: a name that an installed "
            f"package offers, {RUNS_IT}.",
        ),
    ] = None,
    budget_s: Annotated[
        float, typer.Option("--budget", min=0.0, help="Seconds for the bound, at most.")
    ] = 20.0,
    options: CommandOptions,
    explain: ExplainBoundsOption = False,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Write a picture (PNG, PDF, SVG).")
    ] = None,
    force: ForceOption = False,
    form: ResultForm,
) -> None:
    """Measure policies against a certified bound of the offline optimum."""
    expect_outputs(force, plot)
    names = split_names(policies)
    require_policies(names, options)
    inputs = read_inputs(trace, cluster, options)
    missing: Sequence[str] = ()
    if objective == UTILITY:
        picture = _by_utility(inputs, names, utility, model, budget_s, form)
    elif utility is None and model is None:
        picture, missing = _by_cost(inputs, names, objective, budget_s, form, explain)
    else:
        option = f"--model {model}" if utility is None else f"--utility {utility}"
        raise InputError(f"{option}: goes with --objective {UTILITY}, got --objective {objective}")
    if plot is not None:
        write_picture(plot, picture())
    if missing:
        raise typer.Exit(INTERRUPTED)


def _by_cost(
    inputs: RunInputs[Workload],
    names: list[str],
    objective: str,
    budget_s: float,
    form: ResultForm,
    explain: bool,
) -> tuple[Callable[[], Figure], Sequence[str]]:
    """Compare costs in seconds, print them; what draws them, and policies that were not compared."""
    from shadowprice.analysis.compare import compare

    with progress_line() as say:
        result = compare(
            inputs.workload,
            inputs.cluster,
            names,
            objective,
            inputs.options,
            budget_s=budget_s,
            drop_infeasible=inputs.drop_infeasible,
            progress=say,
            watch=say,
            keep_finished=True,
        )
    first = next(iter(result.outcomes.values()))
    report_dropped(first)
    report_sealed(first)
    print_comparison(result, form)
    tell_bounds(result.histories, result.warnings, explain=explain)
    if result.missing:
        note(f"stopped by Ctrl-C: not compared are {', '.join(result.missing)}")
    if inputs.options.preset is None and not form.option:
        _print_guarantees(result)
    return result.plot, result.missing


def _by_utility(
    inputs: RunInputs[Workload],
    names: list[str],
    utility: str | None,
    model: str | None,
    budget_s: float,
    form: ResultForm,
) -> Callable[[], Figure]:
    """Compare total utilities, print them, and return what draws them."""
    from shadowprice.analysis.utility.compare import compare_utility
    from shadowprice.solvers.programs.compile import SolverWarning

    with progress_line() as say, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SolverWarning)
        result = compare_utility(
            inputs.workload,
            inputs.cluster,
            names,
            utility or "effective_throughput",
            inputs.options,
            model=model,
            budget_s=budget_s,
            drop_infeasible=inputs.drop_infeasible,
            progress=say,
        )
    for warning in caught:
        note(str(warning.message))
    first = next(iter(result.outcomes.values()))
    report_dropped(first)
    report_sealed(first)
    print_utilities(result, form)
    return result.plot


def _print_guarantees(result: Comparison) -> None:
    from shadowprice.analysis.guarantees.any_order import any_order_ticks
    from shadowprice.analysis.guarantees.lookup import compare_with_certificate, describe, guarantee

    for row in result.rows:
        outcome = result.outcomes[row.policy]
        run = describe(result.runs[row.policy], result.objective)
        known = None if run is None else guarantee(outcome, run)
        if known is None:
            continue
        any_order = any_order_ticks(outcome.instance, result.objective)
        bound = row.proven_by.ticks if row.certified else 0
        most = None if any_order is None or not bound else any_order / bound
        words = compare_with_certificate(
            known, row.policy, row.factor if row.certified else None, most
        )
        if words is not None:
            print_lines(words)
