"""The command line: simulate, compare, demo, allocate, verify, generate, policies, data fetch."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from shadowprice.analysis.compare import compare
from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.run_directory import load as load_run
from shadowprice.analysis.run_directory import save as save_run
from shadowprice.analysis.simulate import Semantics, simulate
from shadowprice.cli.allocate import allocate_command
from shadowprice.cli.options import (
    ClusterOption,
    DropOption,
    FirstRoundOption,
    FormatOption,
    JsonOption,
    MigrationOption,
    PlacementOption,
    PresetOption,
    RestartOption,
    RoundOption,
    SamplesOption,
    SeedOption,
    StartOption,
    ThroughputsOption,
    TraceArgument,
)
from shadowprice.cli.show import console, print_comparison, print_summary, progress_line, stderr
from shadowprice.errors import ShadowpriceError
from shadowprice.execution.presets.registry import preset as find_preset
from shadowprice.execution.presets.registry import presets
from shadowprice.instances.fetch import DATASETS, fetch
from shadowprice.instances.generators import generate as generate_workload
from shadowprice.instances.generators import generators
from shadowprice.instances.instance import Overheads
from shadowprice.instances.io import write_workload
from shadowprice.instances.samples import load_samples
from shadowprice.instances.throughputs import Throughputs, load_throughputs
from shadowprice.instances.traces import load_trace
from shadowprice.instances.workload import Workload
from shadowprice.solvers.gittins2d import ServiceDistribution
from shadowprice.solvers.registry import allocations as all_allocations
from shadowprice.solvers.registry import policies as all_policies

app = typer.Typer(
    no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=__doc__
)


app.command("allocate")(allocate_command)


@app.command("simulate")
def simulate_command(
    trace: TraceArgument,
    cluster: ClusterOption,
    policy: Annotated[
        str, typer.Option("--policy", help="Name[:parameter=value,...]; see `policies`.")
    ],
    preset: PresetOption = None,
    placement: PlacementOption = None,
    round_s: RoundOption = None,
    first_round_s: FirstRoundOption = None,
    start_s: StartOption = None,
    restart_s: RestartOption = None,
    migration_s: MigrationOption = None,
    samples: SamplesOption = None,
    seed: SeedOption = 0,
    throughputs: ThroughputsOption = None,
    trace_format: FormatOption = None,
    drop_infeasible: DropOption = False,
    jobs_out: Annotated[
        Path | None, typer.Option("--jobs-out", help="Write one row a job (CSV).")
    ] = None,
    run_directory: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write a run directory.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run a policy over a trace, verify the schedule, print its metrics."""
    table = None if throughputs is None else load_throughputs(throughputs)
    workload = _load(trace, trace_format, table)
    overheads = _overheads(start_s, restart_s, migration_s)
    semantics = Semantics(
        preset, placement, round_s, first_round_s, overheads, _samples(samples), seed, table
    )
    with progress_line() as say:
        say(f"simulating {policy} on {len(workload)} jobs")
        outcome = simulate(workload, cluster, policy, semantics, drop_infeasible=drop_infeasible)
    _report_dropped(outcome)
    if jobs_out is not None:
        _write(jobs_out, lambda: outcome.jobs.to_csv(jobs_out, index=False))
    if run_directory is not None:
        save_run(outcome, run_directory)
    print_summary(outcome, as_json)


@app.command("compare")
def compare_command(
    trace: TraceArgument,
    cluster: ClusterOption,
    policies: Annotated[
        str, typer.Option("--policies", help="Names, comma-separated.")
    ] = "fifo,srtf,las2d,gittins2d",
    objective: Annotated[
        str, typer.Option("--objective", help="completion, flow or makespan.")
    ] = "completion",
    budget_s: Annotated[
        float, typer.Option("--budget", min=0.0, help="Seconds for the bound.")
    ] = 20.0,
    preset: PresetOption = None,
    placement: PlacementOption = None,
    round_s: RoundOption = None,
    first_round_s: FirstRoundOption = None,
    start_s: StartOption = None,
    restart_s: RestartOption = None,
    migration_s: MigrationOption = None,
    samples: SamplesOption = None,
    seed: SeedOption = 0,
    throughputs: ThroughputsOption = None,
    trace_format: FormatOption = None,
    drop_infeasible: DropOption = False,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Write a picture (PNG, PDF, SVG).")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure policies against a certified bound of the offline optimum."""
    table = None if throughputs is None else load_throughputs(throughputs)
    workload = _load(trace, trace_format, table)
    overheads = _overheads(start_s, restart_s, migration_s)
    semantics = Semantics(
        preset, placement, round_s, first_round_s, overheads, _samples(samples), seed, table
    )
    names = [name.strip() for name in policies.split(",") if name.strip()]
    with progress_line() as say:
        result = compare(
            workload, cluster, names, objective, semantics,
            budget_s=budget_s, drop_infeasible=drop_infeasible, progress=say,
        )  # fmt: skip
    for outcome in result.outcomes.values():
        _report_dropped(outcome)
        break
    print_comparison(result, as_json)
    if plot is not None:
        _write(plot, lambda: result.plot().savefig(plot, dpi=150))


@app.command()
def demo(
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Also write the picture there.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare four policies with what was possible, on a generated trace of some hundred jobs."""
    workload = generate_workload("lognormal", jobs=300, seed=1, load=1.3, gpus_total=64)
    names = ("fifo", "srtf", "las2d", "gittins2d")
    with progress_line() as say:
        result = compare(workload, "8x8", names, "flow", budget_s=30.0, progress=say)
    if not as_json:
        console.print(
            f"{len(workload)} generated jobs on 8 nodes of 8 GPUs, load 1.3, total flow time\n"
        )
    print_comparison(result, as_json)
    if plot is not None:
        _write(plot, lambda: result.plot().savefig(plot, dpi=150))


@app.command()
def verify(
    run_directory: Annotated[Path, typer.Argument(help="Written by `simulate -o`.")],
    as_json: JsonOption = False,
) -> None:
    """Check a run directory again: its schedule against its instance, its metrics against both."""
    print_summary(load_run(run_directory), as_json)


@app.command()
def generate(
    name: Annotated[str, typer.Argument(help="gavel, tiresias or lognormal.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="CSV or Parquet file to write.")],
    jobs: Annotated[int | None, typer.Option("--jobs", help="Number of jobs.")] = None,
    load: Annotated[float | None, typer.Option("--load", help="Offered load.")] = None,
    gpus: Annotated[int | None, typer.Option("--gpus", help="GPUs the load is offered to.")] = None,
    seed: SeedOption = 0,
) -> None:
    """Write a generated trace."""
    given = {"jobs": jobs, "load": load, "gpus_total": gpus}
    chosen = {key: value for key, value in given.items() if value is not None}
    workload = generate_workload(name, seed=seed, **chosen)
    _write(output, lambda: write_workload(workload, output))
    console.print(f"{len(workload)} jobs to {output}")


@app.command()
def policies(preset: PresetOption = None) -> None:
    """List policies: what they know, whether they preempt, what they do."""
    if preset is not None:
        found = find_preset(preset)
        console.print(f"{found.name}: {found.source}")
        console.print("policies: " + ", ".join(found.policies))
        console.print("placements: " + ", ".join(found.placements))
        return
    table = Table("policy", "knows", "preempts", "what it does")
    for name, policy in sorted(all_policies().items()):
        knows = ", ".join(sorted(policy.knows)) or "nothing"
        doc = (type(policy).__doc__ or "").strip().splitlines()[0]
        table.add_row(name, knows, "yes" if policy.preemptive else "no", doc)
    console.print(table)
    console.print("allocation policies: " + ", ".join(sorted(all_allocations())))
    console.print(
        "generators: "
        + ", ".join(sorted(generators()))
        + "; presets: "
        + ", ".join(sorted(presets()))
    )


data = typer.Typer(no_args_is_help=True, help="Public traces and tables.")
app.add_typer(data, name="data")


@data.command("fetch")
def fetch_command(
    name: Annotated[str, typer.Argument(help=f"One of {', '.join(sorted(DATASETS))}.")],
) -> None:
    """Download a public data set, checked against its SHA-256, and print its path."""
    print(fetch(name))


def _load(trace: Path, trace_format: str | None, table: Throughputs | None) -> Workload:
    imported = load_trace(trace, format=trace_format, throughputs=table)
    for finding in imported.report:
        stderr.print(str(finding), style="yellow", markup=False, highlight=False)
    return imported.workload


def _samples(path: Path | None) -> ServiceDistribution | None:
    return None if path is None else ServiceDistribution(load_samples(path))


def _overheads(
    start_s: float | None, restart_s: float | None, migration_s: float | None
) -> Overheads | None:
    if start_s is None and restart_s is None and migration_s is None:
        return None
    return Overheads(
        start_s=start_s or 0.0, restart_s=restart_s or 0.0, migration_s=migration_s or 0.0
    )


def _report_dropped(outcome: Outcome) -> None:
    dropped: Any = outcome.settings.get("dropped", [])
    if dropped:
        names = ", ".join(dropped[:5]) + (", ..." if len(dropped) > 5 else "")
        stderr.print(
            f"dropped {len(dropped)} jobs that fit no GPU type: {names}",
            style="yellow",
            markup=False,
        )


def _write(path: Path, action: Callable[[], object]) -> None:
    try:
        action()
    except (OSError, ValueError) as error:
        raise ShadowpriceError(f"{path}: cannot be written: {error}") from error


def main() -> None:
    """Entry point: errors a user can act on go to stderr with exit code 2, without a traceback."""
    try:
        app()
    except ShadowpriceError as error:
        stderr.print(f"error: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
