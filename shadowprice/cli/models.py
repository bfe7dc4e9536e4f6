"""``shadowprice models``: the programmes of the package, and one of them for an instance."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from shadowprice.cli.options import FormatOption, JsonOption, ThroughputsOption
from shadowprice.cli.outputs import ForceOption, expect_outputs, write_file
from shadowprice.cli.show import console
from shadowprice.errors import InputError
from shadowprice.models.catalogue import OF_INSTANCE, ModelFile, model_file, model_files

if TYPE_CHECKING:
    from shadowprice.instances.instance import Instance

ALL_ROWS = 60
"""Rows up to which a model is printed whole."""

_FIRST_ROWS = 2
"""Rows of every constraint that are printed of a larger one."""


def models_command(
    name: Annotated[str | None, typer.Argument(help="A model; all are listed without one.")] = None,
    jobs: Annotated[
        Path | None, typer.Option("--jobs", help="Trace that the model is built from.")
    ] = None,
    cluster: Annotated[
        str | None, typer.Option("--cluster", help="Cluster of it, such as 2x4 or a .toml file.")
    ] = None,
    trace_format: FormatOption = None,
    throughputs: ThroughputsOption = None,
    output: Annotated[
        Path | None, typer.Option("--write", help="Write the model (.lp, .mps).")
    ] = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """List models: paper, kind, what solves and tests them. With a name: its programme, rows and size."""
    if name is None:
        if (jobs, cluster, output) != (None, None, None):
            raise InputError(
                "models: --jobs, --cluster and --write are of one model, expected a NAME"
            )
        _list(as_json)
        return
    found = model_file(name)
    expect_outputs(force, output)
    if (jobs is None) != (cluster is None):
        raise InputError("models: --jobs and --cluster go together, expected both or none")
    instance = None
    if jobs is not None and cluster is not None:
        instance = _instance(jobs, cluster, trace_format, throughputs)
    if instance is None and found.displayed_by == OF_INSTANCE and output is None:
        _describe(found, as_json)
        return
    _show(found, instance, output, as_json)


def _list(as_json: bool) -> None:
    listed = [_entry(each) for each in model_files().values()]
    if as_json:
        print(json.dumps(listed))
        return
    table = Table("model", "kind", "what it is; source; solved by; tested in", show_lines=True)
    table.columns[0].no_wrap = True
    for each in listed:
        told = (each["title"], each["source"], each["solved_by"], each["tested_in"])
        table.add_row(each["model"], each["kind"], "\n".join(filter(None, told)))
    console.print(table)


def _entry(found: ModelFile) -> dict[str, Any]:
    return {
        "model": found.name,
        "title": found.title,
        "source": found.source,
        "kind": found.kind,
        "builders": list(found.builders),
        "solved_by": found.runs_in,
        "tested_in": found.reference,
        "built_from": "jobs and a cluster" if found.displayed_by == OF_INSTANCE else "an example",
    }


def _instance(
    trace: Path, cluster: str, trace_format: str | None, throughputs: Path | None
) -> Instance:
    from shadowprice.instances.cluster import Cluster
    from shadowprice.instances.instance import Instance
    from shadowprice.instances.speeds.throughputs import load_throughputs
    from shadowprice.instances.traces import load_trace

    table = None if throughputs is None else load_throughputs(throughputs)
    imported = load_trace(trace, format=trace_format, throughputs=table)
    return Instance(Cluster.load(cluster), imported.workload)


def _describe(found: ModelFile, as_json: bool) -> None:
    """The model without an instance: its docstring, and who solves it."""
    if as_json:
        print(json.dumps(_entry(found)))
        return
    for line in (found.text, "", *_places(found)):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    console.print("its rows and size for an instance: --jobs TRACE --cluster CLUSTER")


def _places(found: ModelFile) -> list[str]:
    """Lines on what solves and what tests a model."""
    told = [f"built by {', '.join(found.builders)} in shadowprice.models.{found.name}"]
    if found.runs_in:
        told.append(f"solved by {found.runs_in}")
    if found.reference:
        told.append(f"compared with an oracle in {found.reference}")
    return told


def _show(found: ModelFile, instance: Instance | None, output: Path | None, as_json: bool) -> None:
    """The model of an instance or of its example: size, rows by name, and a file if asked."""
    from shadowprice.solvers.programs.compile import compile_model
    from shadowprice.solvers.programs.model_text import (
        objective_of,
        rows_of,
        size_of,
        write_model,
    )

    model = found.build(instance)
    compiled = compile_model(model)
    size = size_of(compiled)
    if output is not None:
        write_file(output, lambda partial: write_model(model, compiled, partial))
    if as_json:
        print(json.dumps({**_entry(found), **asdict(size)}))
        return
    small = size.rows <= ALL_ROWS
    rows = [objective_of(model, compiled), *rows_of(compiled, None if small else _FIRST_ROWS)]
    console.print(found.text, markup=False, highlight=False, soft_wrap=True)
    about = "the instance" if instance is not None else "the example of its file"
    table = Table("row", "programme", "says", title=f"{model.name}, {about}")
    for row in rows:
        table.add_row(row.name, row.text, row.says)
    console.print(table, markup=False, highlight=False)
    told = (
        f"{size.rows} rows, {size.columns} columns ({size.whole} whole), {size.nonzeros} nonzeros"
    )
    if not small:
        told += f"; the first {_FIRST_ROWS} rows of each constraint are shown"
    for line in (told, *_places(found)):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    if output is not None:
        console.print(f"written to {output}", markup=False, highlight=False, soft_wrap=True)
