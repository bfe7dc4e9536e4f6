"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

RUNS_IT = "or FILE.py:NAME, which runs that file with all your rights"
"""Part of the help of every option that runs code of the user's own."""
POLICY_HELP = f"Name[:parameter=value,...], see `policies`; {RUNS_IT}."

TraceArgument = Annotated[
    Path, typer.Argument(help="Trace: CSV, Parquet, Philly or Gavel; may be gzip or xz.")
]
ClusterOption = Annotated[
    str,
    typer.Option("--cluster", help="NODESxGPUS[:TYPE][+CPUScpu][+MEMORYgb],... or a .toml file."),
]
FormatOption = Annotated[
    str | None,
    typer.Option("--format", help="Importer by name, see `traces`; sniffed if not given."),
]
ThroughputsOption = Annotated[
    Path | None, typer.Option("--throughputs", help="Throughput table (JSON, may be xz).")
]
PresetOption = Annotated[
    str | None, typer.Option("--preset", help="A published simulator's semantics and names.")
]
PlacementOption = Annotated[
    str | None,
    typer.Option(
        "--placement",
        help="count, consolidate, pack, skew; heavy-edge, first-fit, exact, ... with --network; "
        f"{RUNS_IT}.",
    ),
]
RoundOption = Annotated[
    float | None, typer.Option("--round", help="Seconds between decisions; 0: at every event.")
]
FirstRoundOption = Annotated[
    float | None, typer.Option("--first-round", help="Time of the first round, in seconds.")
]
RestartOption = Annotated[
    float | None, typer.Option("--restart-cost", help="Seconds lost on every resume.")
]
MigrationOption = Annotated[
    float | None, typer.Option("--migration-cost", help="More seconds if it moves.")
]
StartOption = Annotated[
    float | None, typer.Option("--start-cost", help="Seconds lost on every start.")
]
SamplesOption = Annotated[
    Path | None, typer.Option("--service-samples", help="Sample of services, in GPU-seconds.")
]
SeedOption = Annotated[int, typer.Option("--seed", help="Seed of random draws.")]
DropOption = Annotated[
    bool, typer.Option("--drop-infeasible", help="Leave out jobs that can never run.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
PredictorOption = Annotated[
    str | None,
    typer.Option(
        "--predictor",
        help=f"forest, median, last, oracle, noisy:MU, ... for policies that predict; {RUNS_IT}.",
    ),
]
ProfilesOption = Annotated[
    str | None,
    typer.Option(
        "--profiles", help="Speeds by CPUs and memory: published, or a JSON file of models."
    ),
]
SkewsOption = Annotated[
    str | None,
    typer.Option(
        "--spread", help="Slowdown of spread gangs by model: published, or a JSON or TOML file."
    ),
]
GrowthOption = Annotated[
    str | None,
    typer.Option("--grow", help="WIDEST[:EFFICIENCY]: GPUs up to which jobs may grow in a node."),
]
InterferenceOption = Annotated[
    str | None,
    typer.Option(
        "--interference",
        help="Let jobs share GPUs, slowed by the utilisation of their models: published, or JSON.",
    ),
]
NetworkOption = Annotated[
    str | None,
    typer.Option(
        "--network",
        help="INTRA:NIC[:SHARING] in GB/s: jobs get the graphs of their models, work counts iterations.",
    ),
]

OPTION_OF = {
    "placement": "--placement",
    "round_s": "--round",
    "first_round_s": "--first-round",
    "overheads": "--start-cost, --restart-cost, --migration-cost",
    "network": "--network",
    "profiles": "--profiles",
    "skews": "--spread",
    "growth": "--grow",
    "interference": "--interference",
    "predictor": "--predictor",
    "graph_placement": "--placement of job graphs",
    "prices": "--prices-out, --prices-plot",
    "local_sgd": "--local-sgd",
    "samples": "--service-samples",
    "seed": "--seed",
}
"""Options that set the switches of a run, by the names of these."""
