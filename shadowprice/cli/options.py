"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

import typer
from typer.models import OptionInfo

T = TypeVar("T")

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
        help="NODESxGPUS,... such as 4x8, each with :TYPE, +Ncpu and +Ngb where these matter: "
        "4x8:v100+24cpu+500gb,2x4:k80; or a .toml file, or a list of nodes (.csv).",
    ),
]
FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        help="Importer, see `trace`, with choices: helios:keep=completed; sniffed if not given.",
    ),
]
ThroughputsOption = Annotated[
    Path | None, typer.Option("--throughputs", help="Throughput table (JSON, may be xz).")
]
PresetOption = Annotated[
    str | None, typer.Option("--preset", help="A published simulator's semantics and names.")
]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="Seed of random draws.")]
DropOption = Annotated[
    bool, typer.Option("--drop-infeasible", help="Leave out jobs that can never run.")
]
TermsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--with",
        metavar="NAME[:key=value,...]",
        help="A term, as often as there are terms: charges, quotas, failures, ...; see `terms`.",
    ),
]
UTILITY = "utility"
"""Objective that is maximised; the others are costs."""
ObjectiveOption = Annotated[
    str, typer.Option("--objective", help="flow, completion, makespan or utility.")
]
UTILITY_PANEL = "Total utility"
UtilityOption = Annotated[
    str | None,
    typer.Option(
        "--utility",
        rich_help_panel=UTILITY_PANEL,
        help="effective_throughput (default), completion_time, fairness or deadline, "
        "with --objective utility; in rounds of --round, or 360 s.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
ExplainBoundsOption = Annotated[
    bool, typer.Option("--explain", help="Say on stderr how far the search of each bound came.")
]

OPTION_OF = {
    "placement": "--placement",
    "round_s": "--round",
    "first_round_s": "--first-round",
    "predictor": "--predictor",
    "graph_placement": "--placement of job graphs",
    "prices": "--prices",
    "samples": "--service-samples",
    "seed": "--seed",
    "sealed": "--sealed",
}
"""Flags of the options of a run, by the names of these; others are set by terms (``--with``)."""


def record_of_option(option: str, text: str, kind: type[T]) -> T:
    """A record that an option says in one line, ``key=value,...``: the defaults of its fields, but for these.

    Raises
    ------
    InputError
        If there is no such key, a value is not as expected, or one is missing.

    Examples
    --------
    >>> from shadowprice.analysis.adversary.family import InstanceFamily
    >>> record_of_option("--family", "jobs=3,max_work=4", InstanceFamily).max_work
    4
    """
    from shadowprice.instances.documents.named_settings import read_settings
    from shadowprice.instances.documents.schema import decode

    return decode(kind, read_settings(text, option), option, numbers_as_text=True)


# The options that ``simulate`` and ``compare`` share: one record, and what turns it into options.
#
# A command with a parameter ``options: CommandOptions`` gets an option for each field of it in its place, by
# :func:`with_options`, so that a new option of a run is one line here.

JOBS_PANEL = "Jobs"
POLICIES_PANEL = "Some policies, and published simulators"
OUTPUTS_PANEL = "Further outputs"
_PANEL = "panel"
_ON_JOBS: Mapping[str, str] = MappingProxyType({_PANEL: JOBS_PANEL})
_ON_POLICIES: Mapping[str, str] = MappingProxyType({_PANEL: POLICIES_PANEL})


@dataclass(frozen=True)
class CommandOptions:
    """Flags about jobs and a run, as they were written; those that few runs need have panels."""

    terms: TermsOption = None
    run: Annotated[
        Path | None,
        typer.Option(
            "--run",
            help="File (TOML, YAML, JSON) that says what these options do, in the words of a study's conditions.",
        ),
    ] = None
    placement: Annotated[
        str | None,
        typer.Option(
            "--placement",
            help="count, consolidate, pack, skew; heavy-edge, first-fit, exact, ... with job graphs; "
            f"{RUNS_IT}.",
        ),
    ] = None
    round_s: Annotated[
        float | None, typer.Option("--round", help="Seconds between decisions; 0: at every event.")
    ] = None
    seed: SeedOption = 0
    sealed: Annotated[
        bool,
        typer.Option(
            "--sealed",
            help="Run the policy in a process of its own, without files and network, that holds no job to come.",
        ),
    ] = False
    trace_format: FormatOption = field(default=None, metadata=_ON_JOBS)
    throughputs: ThroughputsOption = field(default=None, metadata=_ON_JOBS)
    drop_infeasible: DropOption = field(default=False, metadata=_ON_JOBS)
    preset: PresetOption = field(default=None, metadata=_ON_POLICIES)
    first_round_s: Annotated[
        float | None, typer.Option("--first-round", help="Time of the first round, in seconds.")
    ] = field(default=None, metadata=_ON_POLICIES)
    samples: Annotated[
        Path | None, typer.Option("--service-samples", help="Sample of services, in GPU-seconds.")
    ] = field(default=None, metadata=_ON_POLICIES)
    predictor: Annotated[
        str | None,
        typer.Option(
            "--predictor",
            help=f"forest, median, last, oracle, noisy:MU, ... for policies that predict; {RUNS_IT}.",
        ),
    ] = field(default=None, metadata=_ON_POLICIES)


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose parameters that are records are options of their own, one a field.

    >>> def run(trace: str, *, options: CommandOptions) -> None:
    ...     print(trace, options.seed)
    >>> list(signature(with_options(run)).parameters)[:3]
    ['trace', 'terms', 'run']
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
    def expanded(*args: Any, **arguments: Any) -> None:
        made = {
            name: record(
                **{
                    each.name: arguments.pop(each.name)
                    for each in fields(record)
                    if each.name in arguments
                }
            )
            for name, record in records.items()
        }
        command(*args, **arguments, **made)

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
            annotation=_in_panel(hints[each.name], each),
        )
        for each in fields(record)
    ]


def _in_panel(hint: Any, of: Field[Any]) -> Any:
    """The annotation of an option that is shown in the panel of its field, if that has one."""
    if _PANEL not in of.metadata:
        return hint
    kind, option = get_args(hint)
    assert isinstance(option, OptionInfo)
    shown = copy(option)
    shown.rich_help_panel = of.metadata[_PANEL]
    return Annotated[kind, shown]
