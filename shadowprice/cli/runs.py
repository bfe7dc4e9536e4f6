"""``shadowprice simulate`` and ``compare``: policies over a trace."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from shadowprice.analysis.compare import compare
from shadowprice.analysis.guarantees import guarantee
from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.run_directory import save as save_run
from shadowprice.analysis.simulate import Semantics, simulate
from shadowprice.cli.options import (
    ClusterOption,
    DropOption,
    FirstRoundOption,
    FormatOption,
    JsonOption,
    MigrationOption,
    NetworkOption,
    PlacementOption,
    PredictorOption,
    PresetOption,
    RestartOption,
    RoundOption,
    SamplesOption,
    SeedOption,
    StartOption,
    ThroughputsOption,
    TraceArgument,
)
from shadowprice.cli.show import (
    console,
    print_comparison,
    print_summary,
    progress_line,
    stderr,
    write,
)
from shadowprice.errors import InputError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.instance import Overheads
from shadowprice.instances.network import Network
from shadowprice.instances.samples import load_samples
from shadowprice.instances.throughputs import Throughputs, load_throughputs
from shadowprice.instances.traces import load_trace
from shadowprice.instances.workload import Workload
from shadowprice.solvers.gittins2d import ServiceDistribution


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
    predictor: PredictorOption = None,
    network: NetworkOption = None,
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
    where = Cluster.load(cluster)
    semantics = Semantics(
        preset, placement, round_s, first_round_s, _overheads(start_s, restart_s, migration_s),
        _samples(samples), seed, table, predictor, _network(network, where),
    )  # fmt: skip
    with progress_line() as say:
        say(f"simulating {policy} on {len(workload)} jobs")
        outcome = simulate(workload, where, policy, semantics, drop_infeasible=drop_infeasible)
    _report_dropped(outcome)
    if jobs_out is not None:
        write(jobs_out, lambda: outcome.jobs.to_csv(jobs_out, index=False))
    if run_directory is not None:
        save_run(outcome, run_directory)
    print_summary(outcome, as_json)


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
    predictor: PredictorOption = None,
    network: NetworkOption = None,
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
    where = Cluster.load(cluster)
    semantics = Semantics(
        preset, placement, round_s, first_round_s, _overheads(start_s, restart_s, migration_s),
        _samples(samples), seed, table, predictor, _network(network, where),
    )  # fmt: skip
    names = [name.strip() for name in policies.split(",") if name.strip()]
    with progress_line() as say:
        result = compare(
            workload, where, names, objective, semantics,
            budget_s=budget_s, drop_infeasible=drop_infeasible, progress=say,
        )  # fmt: skip
    for outcome in result.outcomes.values():
        _report_dropped(outcome)
        break
    print_comparison(result, as_json)
    if preset is None and not as_json:
        for name, outcome in result.outcomes.items():
            known = guarantee(outcome, semantics.recipe(workload, name).policy)
            if known is not None:
                console.print(known.sentence(name), highlight=False)
    if plot is not None:
        write(plot, lambda: result.plot().savefig(plot, dpi=150))


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


def _network(text: str | None, cluster: Cluster) -> Network | None:
    """Bandwidths as INTRA:NIC[:SHARING] in GB/s."""
    if text is None:
        return None
    words = text.split(":")
    try:
        intra, nic = (float(word) * 1e9 for word in words[:2])
    except ValueError:
        intra = nic = float("nan")
    if len(words) not in (2, 3) or not (intra > 0 and nic > 0):
        raise InputError(
            f"network {text!r}: expected INTRA:NIC[:SHARING], bandwidths in GB/s, such as 300:12.5:per-job"
        )
    largest = max(node.gpus for node in cluster.nodes)
    return Network(intra, nic, largest, words[2] if len(words) == 3 else "per-gpu")
