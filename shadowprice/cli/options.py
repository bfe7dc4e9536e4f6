"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from shadowprice.analysis.switches import WrittenSwitches

RUNS_IT = "or FILE.py:NAME, which runs that file with all your rights"
"""Part of the help of every option that runs code of the user's own."""
POLICY_HELP = f"Name[:parameter=value,...], see `policies`; {RUNS_IT}."

TraceArgument = Annotated[
    Path, typer.Argument(help="Trace: CSV, Parquet, Philly or Gavel; may be gzip or xz.")
]
OptionalTraceArgument = Annotated[
    Path | None, typer.Argument(help="Trace: CSV, Parquet, Philly or Gavel; may be gzip or xz.")
]
ClusterOption = Annotated[
    str,
    typer.Option(
        "--cluster",
        help="NODESxGPUS[:TYPE][+CPUScpu][+MEMORYgb],... or a .toml file, or a list of nodes (.csv).",
    ),
]
FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        help="Importer, see `traces`, with choices: helios:keep=completed; sniffed if not given.",
    ),
]
ThroughputsOption = Annotated[
    Path | None, typer.Option("--throughputs", help="Throughput table (JSON, may be xz).")
]
PresetOption = Annotated[
    str | None, typer.Option("--preset", help="A published simulator's semantics and names.")
]
SeedOption = Annotated[int, typer.Option("--seed", help="Seed of random draws.")]
DropOption = Annotated[
    bool, typer.Option("--drop-infeasible", help="Leave out jobs that can never run.")
]
QuotasOption = Annotated[
    str | None,
    typer.Option(
        "--quotas",
        metavar="FILE[@DATE]",
        help="GPUs that each tenant may hold by day (Helios' cluster_gpu_number.csv), and the date of time 0, "
        "2020-04-01T00:00:00, where the trace does not say it.",
    ),
]
UTILITY = "utility"
"""Objective that is maximised; the others are costs."""
ObjectiveOption = Annotated[
    str, typer.Option("--objective", help="flow, completion, makespan or utility.")
]
UtilityOption = Annotated[
    str | None,
    typer.Option(
        "--utility",
        help="effective_throughput (default), completion_time, fairness or deadline, "
        "with --objective utility; in rounds of --round, or 360 s.",
    ),
]
IntraOption = Annotated[
    float | None, typer.Option("--intra", help="GB/s between the GPUs of a node.")
]
NicOption = Annotated[float | None, typer.Option("--nic", help="GB/s of a node's NIC.")]
NicSharingOption = Annotated[
    str, typer.Option("--sharing", help="How replicas share a NIC: per-gpu or per-job.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]

OPTION_OF = {
    "placement": "--placement",
    "round_s": "--round",
    "first_round_s": "--first-round",
    "overheads": "--start-cost, --restart-cost, --migration-cost",
    "network": "--network",
    "graphs": "--job-graphs",
    "profiles": "--profiles",
    "skews": "--spread",
    "growth": "--grow",
    "interference": "--interference",
    "until_complete": "--until-complete",
    "failures": "--failures",
    "preemption": "--preemption",
    "predictor": "--predictor",
    "graph_placement": "--placement of job graphs",
    "prices": "--prices-out, --prices-plot",
    "local_sgd": "--local-sgd",
    "samples": "--service-samples",
    "seed": "--seed",
}
"""Options that set the switches of a run, by the names of these."""


# The options that ``simulate`` and ``compare`` share: one record, and what turns it into options.
#
# A command with a parameter ``options: RunOptions`` gets an option for each field of it in its place, by
# :func:`with_options`, so that a new switch of a run is one line here.


@dataclass(frozen=True)
class RunOptions:
    """Options about the jobs and the switches of a run, as they were written."""

    preset: PresetOption = None
    placement: Annotated[
        str | None,
        typer.Option(
            "--placement",
            help="count, consolidate, pack, skew; heavy-edge, first-fit, exact, ... with --network; "
            f"{RUNS_IT}.",
        ),
    ] = None
    round_s: Annotated[
        float | None, typer.Option("--round", help="Seconds between decisions; 0: at every event.")
    ] = None
    first_round_s: Annotated[
        float | None, typer.Option("--first-round", help="Time of the first round, in seconds.")
    ] = None
    start_s: Annotated[
        float | None, typer.Option("--start-cost", help="Seconds lost on every start.")
    ] = None
    restart_s: Annotated[
        float | None, typer.Option("--restart-cost", help="Seconds lost on every resume.")
    ] = None
    migration_s: Annotated[
        float | None, typer.Option("--migration-cost", help="More seconds if it moves.")
    ] = None
    samples: Annotated[
        Path | None, typer.Option("--service-samples", help="Sample of services, in GPU-seconds.")
    ] = None
    seed: SeedOption = 0
    throughputs: ThroughputsOption = None
    predictor: Annotated[
        str | None,
        typer.Option(
            "--predictor",
            help=f"forest, median, last, oracle, noisy:MU, ... for policies that predict; {RUNS_IT}.",
        ),
    ] = None
    network: Annotated[
        str | None,
        typer.Option(
            "--network",
            help="INTRA:NIC[:SHARING] in GB/s: jobs get the graphs of their models, work counts iterations.",
        ),
    ] = None
    job_graphs: Annotated[
        Path | None,
        typer.Option(
            "--job-graphs",
            help="Graphs of jobs by their names, a file (YAML, JSON); with --network.",
        ),
    ] = None
    profiles: Annotated[
        str | None,
        typer.Option(
            "--profiles", help="Speeds by CPUs and memory: published, or a JSON file of models."
        ),
    ] = None
    spread: Annotated[
        str | None,
        typer.Option(
            "--spread", help="Slowdown of spread gangs by model: published, or a JSON or TOML file."
        ),
    ] = None
    grow: Annotated[
        str | None,
        typer.Option(
            "--grow",
            help="WIDEST[:EFFICIENCY]: GPUs up to which jobs may grow in a node; or a JSON or TOML file of models.",
        ),
    ] = None
    interference: Annotated[
        str | None,
        typer.Option(
            "--interference",
            help="Let jobs share GPUs, slowed by the utilisation of their models: published, or JSON.",
        ),
    ] = None
    quotas: QuotasOption = None
    failures: Annotated[
        str | None,
        typer.Option(
            "--failures",
            help="Nodes that fail: exponential:mtbf_s=S,repair_s=S,seed=N; weibull:... with shape=K; a CSV of "
            "downtimes; FAULTS.json:nodes=N[,seed=N]; none.",
        ),
    ] = None
    checkpoint_interval_s: Annotated[
        float | None,
        typer.Option(
            "--checkpoint-interval",
            help="Seconds of progress between checkpoints, with --failures.",
        ),
    ] = None
    checkpoint_cost_s: Annotated[
        float | None,
        typer.Option("--checkpoint-cost", help="Seconds that a checkpoint takes."),
    ] = None
    preemption: Annotated[
        str,
        typer.Option(
            "--preemption",
            help="resume: a preempted job keeps its work; restart: it starts from nothing.",
        ),
    ] = "resume"
    trace_format: FormatOption = None
    drop_infeasible: DropOption = False

    @property
    def written(self) -> WrittenSwitches:
        """The switches among them."""
        names = (each.name for each in fields(WrittenSwitches))
        return WrittenSwitches(**{name: getattr(self, name) for name in names})


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose parameters that are records are options of their own, one a field.

    >>> def run(trace: str, *, options: RunOptions) -> None:
    ...     print(trace, options.seed)
    >>> list(signature(with_options(run)).parameters)[:3]
    ['trace', 'preset', 'placement']
    >>> with_options(run)("jobs.csv", seed=3)
    jobs.csv 3
    """
    hints = get_type_hints(command, include_extras=True)
    records: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    parameters: list[Parameter] = []
    for name, parameter in signature(command).parameters.items():
        if name in records:
            parameters += _options(records[name])
        else:
            parameters.append(parameter.replace(annotation=hints[name]))

    @wraps(command)
    def expanded(*args: Any, **given: Any) -> None:
        made = {
            name: record(
                **{each.name: given.pop(each.name) for each in fields(record) if each.name in given}
            )
            for name, record in records.items()
        }
        command(*args, **given, **made)

    # What typer reads: the signature, and the hints where it resolves names.
    expanded.__signature__ = signature(command).replace(parameters=parameters)  # type: ignore[attr-defined]
    expanded.__annotations__ = {each.name: each.annotation for each in parameters}
    return expanded


def _options(record: Any) -> list[Parameter]:
    hints = get_type_hints(record, include_extras=True)
    return [
        Parameter(
            each.name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if each.default is MISSING else each.default,
            annotation=hints[each.name],
        )
        for each in fields(record)
    ]
