"""``shadowprice trace``: what is in a trace, a law that fits it, and the same jobs with other arrivals."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from shadowprice.cli.options import FormatOption, JsonOption, SeedOption, TraceArgument
from shadowprice.cli.origin import origin
from shadowprice.cli.outputs import ForceOption, expect_outputs, write_file, write_table
from shadowprice.cli.panels import shown
from shadowprice.cli.show import console, printed_warnings, stderr
from shadowprice.errors import InputError

if TYPE_CHECKING:
    from shadowprice.analysis.trace.demand import TypeLoad
    from shadowprice.instances.cluster import Cluster
    from shadowprice.instances.traces import Imported
    from shadowprice.instances.workload import Workload

_SHOW = "show"


class _FileOrCommand(TyperGroup):
    """A group whose first word may be the file that ``show`` is about."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Words of the command, ``show`` put before a file."""
        if args and args[0] not in (*self.commands, "--help"):
            args = [_SHOW, *args]
        return super().parse_args(ctx, args)


trace = typer.Typer(
    cls=_FileOrCommand,
    no_args_is_help=True,
    help="What is in a trace (`trace FILE`), laws that fit it, the same jobs with other arrivals.",
)

OptionalClusterOption = Annotated[
    str | None,
    typer.Option("--cluster", help="Cluster to which the load is offered, as of `simulate`."),
]


@trace.command(_SHOW, **shown("trace show"))
def show_command(
    file: TraceArgument,
    cluster: OptionalClusterOption = None,
    trace_format: FormatOption = None,
    page: Annotated[
        Path | None, typer.Option("--page", help="Write a page of pictures (HTML, one file)")
    ] = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Tell what is in a trace: arrivals, gangs, run times, GPU time by class and tenant, load, recurrences."""
    expect_outputs(force, page)
    imported = _read(file, trace_format)
    from shadowprice.analysis.trace.contents import contents
    from shadowprice.analysis.trace.page import trace_page
    from shadowprice.instances.cluster import Cluster

    jobs, where = imported.workload, None if cluster is None else Cluster.load(cluster)
    if page is not None:
        text = trace_page(jobs, where, imported.lines(), made_by=origin().sentence())
        write_file(page, lambda partial: partial.write_text(text, encoding="utf-8"))
    found = contents(jobs, where)
    loads, ran, questions = _against(file, jobs, where)
    if as_json:
        told = {
            "loads": [asdict(each) for each in loads],
            "recorded": ran,
            "cannot_answer": questions,
        }
        print(json.dumps({**found.document(), **told}))
        return
    _print_tables(found, where)
    _print_loads(loads)
    for line in (*ran, *(f"cannot be answered: {each}" for each in questions)):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _against(
    file: Path, jobs: Workload, where: Cluster | None
) -> tuple[tuple[TypeLoad, ...], list[str], list[str]]:
    """Loads by type, what was run, and questions that the trace cannot answer."""
    from shadowprice.analysis.audit.recorded_use import recorded_use
    from shadowprice.analysis.trace.contents import run_times_s
    from shadowprice.analysis.trace.demand import racks_in_words, type_loads, unanswered

    questions = unanswered(jobs, where)
    if where is None:
        return (), [], questions
    ran, more = recorded_use(file, where)
    racks = racks_in_words(where)
    ran = ran if racks is None else [racks, *ran]
    loads = type_loads(jobs, where, run_times_s(jobs, where))
    return loads, ran, list(dict.fromkeys((*questions, *more)))


def _print_loads(loads: Sequence[TypeLoad]) -> None:
    from rich.table import Table

    if not loads:
        return
    spans = len(loads[0].by_span)
    table = Table(
        "GPU types", "GPUs", "jobs that run nowhere else", "load", f"in each {spans}th of the time"
    )
    for column in table.columns[1:4]:
        column.justify = "right"
    for each in loads:
        over = " ".join(f"{value:.2f}" for value in each.by_span)
        table.add_row(each.types, f"{each.gpus:,}", f"{each.jobs:,}", f"{each.load:.3f}", over)
    console.print(table)


def _print_tables(found: Any, where: Any) -> None:
    from rich.markup import escape
    from rich.table import Table

    from shadowprice.analysis.trace.page import part_row, parts_of, summary_rows

    table = Table("trace", "value")
    for row in summary_rows(found, where):
        table.add_row(*map(escape, row))
    console.print(table)
    for what, parts in parts_of(found):
        heads = (what, "jobs", "share of jobs", "share of GPU time", "median run time [s]")
        table = Table(*map(escape, heads))
        for column in table.columns[1:]:
            column.justify = "right"
        for part in parts:
            table.add_row(*map(escape, part_row(part)))
        console.print(table)


@trace.command("fit", **shown("trace fit"))
def fit_command(
    file: TraceArgument,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="JSON file for `generate --parameters`.")
    ],
    trace_format: FormatOption = None,
    force: ForceOption = False,
) -> None:
    """Fit the generator lognormal to a trace by maximum likelihood, with intervals of 95 %."""
    expect_outputs(force, output)
    imported = _read(file, trace_format)
    from shadowprice.analysis.trace.fit import GENERATOR, fit, write_fit

    found = fit(imported.workload)
    write_file(output, lambda partial: write_fit(found, imported.workload.source, partial))
    for name in ("median_s", "sigma", "jobs_per_hour"):
        each = getattr(found, name)
        console.print(f"{name} {each.value:.6g} (95 %: {each.low:.6g} to {each.high:.6g})")
    console.print(
        f"run times differ from the law's by at most {found.distance:.3f} in distribution; gaps vary "
        f"{found.gap_cv:.2f} times as much as their mean (1 in the law)\n"
        f"generate {GENERATOR} --parameters {output} -o jobs.csv",
        soft_wrap=True,
    )


@trace.command("scale", **shown("trace scale"))
def scale_command(
    file: TraceArgument,
    output: Annotated[Path, typer.Option("-o", "--output", help="CSV or Parquet file to write.")],
    cluster: OptionalClusterOption = None,
    load: Annotated[
        float | None, typer.Option("--load", help="Load to be offered to the cluster.")
    ] = None,
    shuffle: Annotated[
        bool, typer.Option("--shuffle", help="Let the jobs come in another order, by the seed.")
    ] = False,
    arrivals: Annotated[
        str | None, typer.Option("--arrivals", help="poisson: exponential gaps, by the seed.")
    ] = None,
    trace_format: FormatOption = None,
    seed: SeedOption = 0,
    force: ForceOption = False,
) -> None:
    """Write the same jobs at another load, in another order, or with Poisson arrivals.

    A load multiplies all gaps by one number, so that it is exactly offered; with Poisson arrivals it sets their mean.
    """
    if arrivals not in (None, "poisson"):
        raise InputError(f"--arrivals {arrivals}: expected poisson")
    if (load is None) != (cluster is None):
        raise InputError("--load and --cluster go together: a load is offered to GPUs")
    if load is None and arrivals is None and not shuffle:
        raise InputError("expected --load and --cluster, --shuffle or --arrivals poisson")
    expect_outputs(force, output)
    jobs = _read(file, trace_format).workload
    from shadowprice.analysis.trace.contents import run_times_s
    from shadowprice.instances.cluster import Cluster
    from shadowprice.instances.generators.rescaling import at_load, poisson_arrivals_of, shuffled

    where = None if cluster is None else Cluster.load(cluster)
    gpus = 0 if where is None else where.physical_gpus
    if where is not None and load is not None:
        jobs = _feasible(jobs, where)
    run_s = run_times_s(jobs, where)
    if shuffle:
        jobs = shuffled(jobs, seed)
        run_s = run_times_s(jobs, where)
    if arrivals is not None:
        jobs = poisson_arrivals_of(jobs, seed, load=load, gpus_total=gpus or None, run_s=run_s)
    elif load is not None:
        jobs = at_load(jobs, load, gpus, run_s)
    write_table(output, jobs.to_frame())
    console.print(f"{len(jobs)} jobs to {output}", soft_wrap=True)


def _feasible(jobs: Any, where: Any) -> Any:
    """The jobs that can run on a cluster; those left out are said."""
    import numpy as np

    from shadowprice.analysis.trace.contents import run_times_s

    able = np.isfinite(run_times_s(jobs, where))
    if not able.all():
        left_out = f"{int((~able).sum())} jobs can never run on {where} and are left out"
        stderr.print(left_out, style="yellow", markup=False, highlight=False, soft_wrap=True)
    return jobs.select(able)


def _read(file: Path, trace_format: str | None) -> Imported:
    """The jobs of a file; what was made of its rows is said on stderr."""
    from shadowprice.instances.traces import BrokenImporter, load_trace

    with printed_warnings(BrokenImporter):
        imported = load_trace(file, format=trace_format)
    if imported.report or imported.notes:
        for line in imported.lines():
            stderr.print(line, style="yellow", markup=False, highlight=False)
    return imported
