"""``shadowprice generate``: traces drawn by a law, and the laws that there are."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from pathlib import Path
from typing import Annotated, Any

import typer

from shadowprice.cli.options import SeedOption, with_options
from shadowprice.cli.outputs import ForceOption, expect_outputs, with_origin, write_table
from shadowprice.cli.results import ResultForm, print_result
from shadowprice.cli.show import console, print_lines, print_rows
from shadowprice.docstrings import described_parameters, first_line
from shadowprice.errors import InputError

GENERATORS = (
    "automl, gandiva, gandiva-trace, gavel, gavel-published, gpu-time-sample, hadar, lognormal, pollux, recurrent, "
    "synergy, synergy-published, tiresias, tiresias-published, tiresias-trace"
)
"""Names for the help, which waits for no module to be imported."""


@with_options
def generate_command(
    name: Annotated[
        str | None, typer.Argument(help=f"{GENERATORS}; all are listed without.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="CSV or Parquet file to write; without it NAME is described."
        ),
    ] = None,
    jobs: Annotated[int | None, typer.Option("--jobs", help="Number of jobs.")] = None,
    load: Annotated[float | None, typer.Option("--load", help="Offered load.")] = None,
    gpus: Annotated[int | None, typer.Option("--gpus", help="GPUs the load is offered to.")] = None,
    samples: Annotated[
        Path | None,
        typer.Option("--service-samples", help="GPU times to draw services from, one a line."),
    ] = None,
    parameters: Annotated[
        Path | None,
        typer.Option(
            "--parameters", help="Parameters that `trace --fit` wrote; options go before."
        ),
    ] = None,
    seed: SeedOption = 0,
    force: ForceOption = False,
    *,
    form: ResultForm,
) -> None:
    """Write a generated trace.

    Without -o a generator is described: its law, its parameters and their
    defaults. Without a name all are listed.
    """
    flags = {"jobs": jobs, "load": load, "gpus_total": gpus, "samples": samples}
    chosen = {key: value for key, value in flags.items() if value is not None}
    if name is None or output is None:
        if chosen or parameters is not None or output is not None:
            raise InputError("generate: expected NAME and -o FILE, to write a trace")
        if name is None:
            _list(form)
        else:
            _describe(name, form)
        return
    expect_outputs(force, output)
    from shadowprice.instances.generators import generate as generate_workload

    if parameters is not None:
        from shadowprice.analysis.trace.fit import parameters_for

        chosen = parameters_for(name, parameters, chosen)
    workload = generate_workload(name, seed=seed, **chosen)
    write_table(output, workload.to_frame())
    print_result(
        form,
        lambda: console.print(f"{len(workload)} jobs to {output}"),
        lambda: with_origin({"jobs": len(workload), "file": str(output)}),
        lambda: [{"jobs": len(workload), "file": str(output)}],
    )


def _list(form: ResultForm) -> None:
    from shadowprice.instances.generators import generators

    rows = [
        {"generator": each, "law": first_line(module.__doc__)}
        for each, module in sorted(generators().items())
    ]
    heads = ("generator", "law")
    print_result(form, lambda: print_rows(heads, map(dict.values, rows)), lambda: rows)


def _describe(name: str, form: ResultForm) -> None:
    """One generator: its law, and its parameters with their defaults."""
    from shadowprice.instances.generators import generator

    module = generator(name)
    parameters = described_parameters(module.generate.__doc__)
    rows = [
        {
            "name": each.name,
            "default": "" if each.default in (each.empty, None) else str(each.default),
            "says": parameters.get(each.name, ("", ""))[1] or _OF_ALL.get(each.name, ""),
        }
        for each in signature(module.generate).parameters.values()
    ]
    record: dict[str, Any] = {
        "generator": name,
        "law": " ".join((module.__doc__ or "").split()),
        "parameters": rows,
    }
    print_result(form, lambda: _show(record), lambda: record, lambda: rows)


def _show(record: Mapping[str, Any]) -> None:
    print_lines(record["law"], broken=True)
    print_rows(("parameter", "default", "what it is"), map(dict.values, record["parameters"]))


_OF_ALL = {
    "jobs": "Number of jobs.",
    "seed": "Seed of random draws.",
    "load": "Share of the GPUs' time that is asked for.",
    "gpus_total": "GPUs the load is offered to.",
    "jobs_per_hour": "Rate of arrivals [1/h], instead of a load.",
}
"""Parameters that generators share, where one says no more of them."""
