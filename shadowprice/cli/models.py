"""``shadowprice models``: the programmes of the package, and one of them for an instance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from shadowprice.cli.options import FormatOption, ThroughputsOption, with_options
from shadowprice.cli.outputs import ForceOption, expect_outputs, write_file
from shadowprice.cli.results import ResultForm, print_result
from shadowprice.cli.show import console, print_lines
from shadowprice.errors import InputError
from shadowprice.solvers.programs.catalogue import OF_INSTANCE, ModelFile, model_file, model_files

if TYPE_CHECKING:
    from shadowprice.instances.instance import Instance
    from shadowprice.solvers.programs.model_text import ModelRow

ALL_ROWS = 60
"""Rows up to which a model is printed whole."""

_FIRST_ROWS = 2
"""Rows of every constraint that are printed of a larger one."""


@with_options
def models_command(
    name: Annotated[str | None, typer.Argument(help="A model; all are listed without one.")] = None,
    trace: Annotated[
        Path | None, typer.Argument(help="Trace that the model is built from, with --cluster.")
    ] = None,
    cluster: Annotated[
        str | None, typer.Option("--cluster", help="Cluster of it, such as 2x4 or a .toml file.")
    ] = None,
    trace_format: FormatOption = None,
    throughputs: ThroughputsOption = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the model (.lp, .mps).")
    ] = None,
    force: ForceOption = False,
    *,
    form: ResultForm,
) -> None:
    """List models: paper, kind, what solves and tests them. With a name: its programme, rows and size."""
    if name is None:
        if (cluster, output) != (None, None):
            raise InputError("models: --cluster and -o are of one model, expected a NAME")
        listed = [_entry(each) for each in model_files().values()]
        print_result(form, lambda: _show_list(listed), lambda: listed)
        return
    model = model_file(name)
    expect_outputs(force, output)
    if (trace is None) != (cluster is None):
        raise InputError("models: TRACE and --cluster go together, expected both or none")
    instance = None
    if trace is not None and cluster is not None:
        instance = _instance(trace, cluster, trace_format, throughputs)
    if instance is None and model.displayed_by == OF_INSTANCE and output is None:
        print_result(form, lambda: _describe(model), lambda: _entry(model))
        return
    _print(model, instance, output, form)


def _show_list(listed: Sequence[Mapping[str, Any]]) -> None:
    table = Table("model", "kind", "what it is; source; solved by; tested in", show_lines=True)
    table.columns[0].no_wrap = True
    for each in listed:
        cells = (each["title"], each["source"], each["solved_by"], each["tested_in"])
        table.add_row(each["model"], each["kind"], "\n".join(filter(None, cells)))
    console.print(table)


def _entry(model_file: ModelFile) -> dict[str, Any]:
    return {
        "model": model_file.name,
        "title": model_file.title,
        "source": model_file.source,
        "kind": model_file.kind,
        "builders": list(model_file.builders),
        "solved_by": model_file.runs_in,
        "tested_in": model_file.reference,
        "built_from": "jobs and a cluster"
        if model_file.displayed_by == OF_INSTANCE
        else "an example",
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


def _describe(model_file: ModelFile) -> None:
    """The model without an instance: its docstring, and who solves it."""
    print_lines(model_file.text, "", *_places(model_file))
    console.print("its rows and size for an instance: TRACE --cluster CLUSTER")


def _places(model_file: ModelFile) -> list[str]:
    """Lines on what solves and what tests a model."""
    lines = [f"built by {', '.join(model_file.builders)} in shadowprice.models.{model_file.name}"]
    if model_file.runs_in:
        lines.append(f"solved by {model_file.runs_in}")
    if model_file.reference:
        lines.append(f"compared with an oracle in {model_file.reference}")
    return lines


def _print(
    model_file: ModelFile, instance: Instance | None, output: Path | None, form: ResultForm
) -> None:
    """The model of an instance or of its example: size, rows by name, and a file if asked."""
    from shadowprice.solvers.programs.compile import compile_model
    from shadowprice.solvers.programs.model_text import (
        objective_of,
        rows_of,
        size_of,
        write_model,
    )

    model = model_file.build(instance)
    compiled = compile_model(model)
    size = size_of(compiled)
    if output is not None:
        write_file(output, lambda partial: write_model(model, compiled, partial))

    def rows(of_each: int | None) -> Iterator[ModelRow]:
        yield objective_of(model, compiled)
        yield from rows_of(compiled, of_each)

    def show() -> None:
        small = size.rows <= ALL_ROWS
        print_lines(model_file.text)
        about = "the instance" if instance is not None else "the example of its file"
        table = Table("row", "programme", "says", title=f"{model.name}, {about}")
        table.columns[0].overflow = "fold"  # No name is cut.
        for row in rows(None if small else _FIRST_ROWS):
            table.add_row(row.name, row.text, row.says)
        console.print(table, markup=False, highlight=False)
        sentence = f"{size.rows} rows, {size.columns} columns ({size.whole} whole), {size.nonzeros} nonzeros"
        if not small:
            sentence += (
                f"; the first {_FIRST_ROWS} rows of each constraint are shown, --csv prints all"
            )
        print_lines(
            sentence, *_places(model_file), *(() if output is None else (f"written to {output}",))
        )

    print_result(
        form,
        show,
        lambda: {**_entry(model_file), **asdict(size)},
        lambda: ({"row": row.name, "programme": row.text, "says": row.says} for row in rows(None)),
    )
