"""The command line: simulate, compare, demo, verify, generate, policies, fetch."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from shadowprice.analysis.compare import Comparison, compare
from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.run_directory import load as load_run
from shadowprice.analysis.run_directory import save as save_run
from shadowprice.analysis.simulate import Semantics, simulate
from shadowprice.errors import ShadowpriceError
from shadowprice.execution.presets.registry import preset as find_preset
from shadowprice.execution.presets.registry import presets
from shadowprice.instances.fetch import DATASETS, fetch
from shadowprice.instances.generators import generate as generate_workload
from shadowprice.instances.generators import generators
from shadowprice.instances.instance import Overheads
from shadowprice.instances.io import write_workload
from shadowprice.instances.samples import load_samples
from shadowprice.instances.throughputs import load_throughputs
from shadowprice.instances.traces import load_trace
from shadowprice.instances.workload import Workload
from shadowprice.solvers.gittins2d import ServiceDistribution
from shadowprice.solvers.registry import policies as all_policies

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=__doc__)
console = Console()
stderr = Console(stderr=True)

TraceArgument = Annotated[Path, typer.Argument(help="Trace: CSV, Parquet, Philly or Gavel; may be gzip or xz.")]
ClusterOption = Annotated[str, typer.Option("--cluster", help="NODESxGPUS[:TYPE],... or a .toml file.")]
FormatOption = Annotated[str | None, typer.Option("--format", help="Importer by name; sniffed if not given.")]
ThroughputsOption = Annotated[Path | None, typer.Option("--throughputs", help="Throughput table (JSON, may be xz).")]
PresetOption = Annotated[str | None, typer.Option("--preset", help="A published simulator's semantics and names.")]
PlacementOption = Annotated[str | None, typer.Option("--placement", help="count, consolidate, pack, ...")]
RoundOption = Annotated[float | None, typer.Option("--round", help="Seconds between decisions; 0: at every event.")]
FirstRoundOption = Annotated[float | None, typer.Option("--first-round", help="Time of the first round [s].")]
RestartOption = Annotated[float | None, typer.Option("--restart-cost", help="Seconds lost on every resume.")]
MigrationOption = Annotated[float | None, typer.Option("--migration-cost", help="More seconds if it moves.")]
StartOption = Annotated[float | None, typer.Option("--start-cost", help="Seconds lost on every start.")]
SamplesOption = Annotated[Path | None, typer.Option("--service-samples", help="Sample of services [GPU-s].")]
SeedOption = Annotated[int, typer.Option("--seed", help="Seed of random draws.")]
DropOption = Annotated[bool, typer.Option("--drop-infeasible", help="Leave out jobs that can never run.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("simulate")
def simulate_command(
    trace: TraceArgument,
    cluster: ClusterOption,
    policy: Annotated[str, typer.Option("--policy", help="Name[:parameter=value,...]; see `policies`.")],
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
    jobs_out: Annotated[Path | None, typer.Option("--jobs-out", help="Write one row a job (CSV).")] = None,
    run_directory: Annotated[Path | None, typer.Option("-o", "--output", help="Write a run directory.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Run a policy over a trace, verify the schedule, print its metrics."""
    workload = _load(trace, trace_format, throughputs)
    overheads = _overheads(start_s, restart_s, migration_s)
    semantics = Semantics(preset, placement, round_s, first_round_s, overheads, _samples(samples), seed)
    with _progress() as say:
        say(f"simulating {policy} on {len(workload)} jobs")
        outcome = simulate(workload, cluster, policy, semantics, drop_infeasible=drop_infeasible)
    _report_dropped(outcome)
    if jobs_out is not None:
        _write(jobs_out, lambda: outcome.jobs.to_csv(jobs_out, index=False))
    if run_directory is not None:
        save_run(outcome, run_directory)
    _print_summary(outcome, as_json)


@app.command("compare")
def compare_command(
    trace: TraceArgument,
    cluster: ClusterOption,
    policies: Annotated[str, typer.Option("--policies", help="Names, comma-separated.")] = "fifo,srtf,las2d,gittins2d",
    objective: Annotated[str, typer.Option("--objective", help="completion, flow or makespan.")] = "completion",
    budget_s: Annotated[float, typer.Option("--budget", min=0.0, help="Seconds for the bound.")] = 20.0,
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
    plot: Annotated[Path | None, typer.Option("--plot", help="Write a picture (PNG, PDF, SVG).")] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure policies against a certified bound of the offline optimum."""
    workload = _load(trace, trace_format, throughputs)
    overheads = _overheads(start_s, restart_s, migration_s)
    semantics = Semantics(preset, placement, round_s, first_round_s, overheads, _samples(samples), seed)
    names = [name.strip() for name in policies.split(",") if name.strip()]
    with _progress() as say:
        result = compare(
            workload, cluster, names, objective, semantics,
            budget_s=budget_s, drop_infeasible=drop_infeasible, progress=say,
        )  # fmt: skip
    for outcome in result.outcomes.values():
        _report_dropped(outcome)
        break
    _print_comparison(result, as_json)
    if plot is not None:
        _write(plot, lambda: result.plot().savefig(plot, dpi=150))


@app.command()
def demo(
    plot: Annotated[Path | None, typer.Option("--plot", help="Also write the picture there.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare four policies with what was possible, on a generated trace of some hundred jobs."""
    workload = generate_workload("lognormal", jobs=300, seed=1, load=1.3, gpus_total=64)
    names = ("fifo", "srtf", "las2d", "gittins2d")
    with _progress() as say:
        result = compare(workload, "8x8", names, "flow", budget_s=30.0, progress=say)
    if not as_json:
        console.print(f"{len(workload)} generated jobs on 8 nodes of 8 GPUs, load 1.3, total flow time\n")
    _print_comparison(result, as_json)
    if plot is not None:
        _write(plot, lambda: result.plot().savefig(plot, dpi=150))


@app.command()
def verify(
    run_directory: Annotated[Path, typer.Argument(help="Written by `simulate -o`.")],
    as_json: JsonOption = False,
) -> None:
    """Check a run directory again: its schedule against its instance, its metrics against both."""
    _print_summary(load_run(run_directory), as_json)


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
    workload = generate_workload(name, seed=seed, **{key: value for key, value in given.items() if value is not None})
    _write(output, lambda: write_workload(workload, output))
    console.print(f"{len(workload)} jobs to {output}")


@app.command()
def policies(preset: PresetOption = None) -> None:
    """List policies: what they know, whether they preempt, what they do."""
    if preset is not None:
        found = find_preset(preset)
        console.print(f"{found.name}: {found.source}")
        console.print("policies: " + ", ".join(sorted({*found.recipes, *found.needs_samples})))
        console.print("placements: " + ", ".join(found.placements))
        return
    table = Table("policy", "knows", "preempts", "what it does")
    for name, policy in sorted(all_policies().items()):
        knows = ", ".join(sorted(policy.knows)) or "nothing"
        doc = (type(policy).__doc__ or "").strip().splitlines()[0]
        table.add_row(name, knows, "yes" if policy.preemptive else "no", doc)
    console.print(table)
    console.print("generators: " + ", ".join(sorted(generators())) + "; presets: " + ", ".join(sorted(presets())))


data = typer.Typer(no_args_is_help=True, help="Public traces and tables.")
app.add_typer(data, name="data")


@data.command("fetch")
def fetch_command(name: Annotated[str, typer.Argument(help=f"One of {', '.join(sorted(DATASETS))}.")]) -> None:
    """Download a public data set into the cache, checked against its SHA-256, and print its path."""
    print(fetch(name))


def _load(trace: Path, trace_format: str | None, throughputs: Path | None) -> Workload:
    table = None if throughputs is None else load_throughputs(throughputs)
    imported = load_trace(trace, format=trace_format, throughputs=table)
    for finding in imported.report:
        stderr.print(str(finding), style="yellow", markup=False, highlight=False)
    return imported.workload


def _samples(path: Path | None) -> ServiceDistribution | None:
    return None if path is None else ServiceDistribution(load_samples(path))


def _overheads(start_s: float | None, restart_s: float | None, migration_s: float | None) -> Overheads | None:
    given = {"start_s": start_s, "restart_s": restart_s, "migration_s": migration_s}
    values = {name: value for name, value in given.items() if value is not None}
    return Overheads(**values) if values else None


def _report_dropped(outcome: Outcome) -> None:
    dropped: Any = outcome.settings.get("dropped", [])
    if dropped:
        names = ", ".join(dropped[:5]) + (", ..." if len(dropped) > 5 else "")
        stderr.print(f"dropped {len(dropped)} jobs that fit no GPU type: {names}", style="yellow", markup=False)


def _print_summary(outcome: Outcome, as_json: bool) -> None:
    summary = outcome.summary()
    if as_json:
        print(json.dumps(summary))
        return
    table = Table("metric", "value", title=f"{summary['policy']}, verified")
    for key, value in summary.items():
        table.add_row(key, f"{value:,.3f}" if isinstance(value, float) else str(value))
    console.print(table)


def _print_comparison(result: Comparison, as_json: bool) -> None:
    if as_json:
        print(json.dumps(result.to_dict()))
        return
    table = Table("policy", "cost [s]", "bound [s]", "bound kind", "ratio", "certified", title=str(result.objective))
    for column in table.columns[1:3] + table.columns[4:5]:
        column.justify = "right"
    for row in result.rows:
        table.add_row(
            row.policy, f"{row.cost_s:,.0f}", f"{row.bound_s:,.0f}", row.bound_kind, f"{row.ratio:.3f}",
            "yes" if row.certified else "no",
        )  # fmt: skip
    console.print(table)
    for row in result.rows:
        console.print(row.sentence(), highlight=False)


def _write(path: Path, action: Any) -> None:
    try:
        action()
    except (OSError, ValueError) as error:
        raise ShadowpriceError(f"{path}: cannot be written: {error}") from error


@contextmanager
def _progress() -> Iterator[Any]:
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=stderr, transient=True) as progress:
        task = progress.add_task("reading", total=None)
        yield lambda step: progress.update(task, description=step)


def main() -> None:
    """Entry point: errors a user can act on go to stderr with exit code 2, without a traceback."""
    try:
        app()
    except ShadowpriceError as error:
        stderr.print(f"error: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
