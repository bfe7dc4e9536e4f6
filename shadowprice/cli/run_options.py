"""The options that ``simulate`` and ``compare`` share: one record, and what turns it into options.

A command with a parameter ``options: RunOptions`` gets an option for each field of it in its place, by
:func:`with_options`, so that a new switch of a run is one line here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from inspect import Parameter, signature
from typing import Any, get_type_hints

from shadowprice.cli.options import (
    DropOption,
    FirstRoundOption,
    FormatOption,
    GrowthOption,
    InterferenceOption,
    MigrationOption,
    NetworkOption,
    PlacementOption,
    PredictorOption,
    PresetOption,
    ProfilesOption,
    RestartOption,
    RoundOption,
    SamplesOption,
    SeedOption,
    SkewsOption,
    StartOption,
    ThroughputsOption,
)


@dataclass(frozen=True)
class RunOptions:
    """Options about the jobs and the switches of a run, as they were written."""

    preset: PresetOption = None
    placement: PlacementOption = None
    round_s: RoundOption = None
    first_round_s: FirstRoundOption = None
    start_s: StartOption = None
    restart_s: RestartOption = None
    migration_s: MigrationOption = None
    samples: SamplesOption = None
    seed: SeedOption = 0
    throughputs: ThroughputsOption = None
    predictor: PredictorOption = None
    network: NetworkOption = None
    profiles: ProfilesOption = None
    spread: SkewsOption = None
    grow: GrowthOption = None
    interference: InterferenceOption = None
    trace_format: FormatOption = None
    drop_infeasible: DropOption = False

    @property
    def charges_s(self) -> dict[str, Any]:
        """Overheads that were given, by their names in :class:`Overheads` [s]."""
        given = {
            "start_s": self.start_s,
            "restart_s": self.restart_s,
            "migration_s": self.migration_s,
        }
        return {name: seconds for name, seconds in given.items() if seconds is not None}


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
