"""``shadowprice trace``: what is in a trace, a law that fits it, the same jobs with other arrivals; its formats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shadowprice.cli.options import FormatOption, OptionalTraceArgument, SeedOption, with_options
from shadowprice.cli.origin import origin
from shadowprice.cli.outputs import ForceOption, expect_outputs, write_file, write_table
from shadowprice.cli.results import ResultForm, entries, print_result
from shadowprice.cli.show import note, print_lines, print_rows, printed_warnings, stderr
from shadowprice.docstrings import first_line
from shadowprice.entry_points import TRACES, offers
from shadowprice.errors import InputError

if TYPE_CHECKING:
    from shadowprice.analysis.trace.contents import Contents
    from shadowprice.analysis.trace.demand import TypeLoad
    from shadowprice.analysis.trace.fit import Fit
    from shadowprice.instances.cluster import Cluster
    from shadowprice.instances.traces import Imported
    from shadowprice.instances.workload import Workload

OURS = "shadowprice"
"""Origin of importers that come with this package."""


@dataclass(frozen=True)
class _Rearrangement:
    """Other arrivals of the same jobs, as options have them."""

    load: float | None
    shuffle: bool
    arrivals: str | None
    seed: int

    def __bool__(self) -> bool:
        return self.load is not None or self.shuffle or self.arrivals is not None


@with_options
def trace_command(
    file: OptionalTraceArgument = None,
    cluster: Annotated[
        str | None,
        typer.Option("--cluster", help="Cluster to which the load is offered, as of `simulate`."),
    ] = None,
    trace_format: FormatOption = None,
    load: Annotated[
        float | None,
        typer.Option("--load", help="Let the jobs come at this load of the cluster."),
    ] = None,
    shuffle: Annotated[
        bool, typer.Option("--shuffle", help="Let the jobs come in another order, by the seed.")
    ] = False,
    arrivals: Annotated[
        str | None, typer.Option("--arrivals", help="poisson: exponential gaps, by the seed.")
    ] = None,
    seed: SeedOption = 0,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the jobs (.csv, .parquet).")
    ] = None,
    law: Annotated[
        Path | None,
        typer.Option(
            "--fit", help="Fit the generator lognormal, write its law (JSON) for `generate`."
        ),
    ] = None,
    page: Annotated[
        Path | None, typer.Option("--page", help="Write a page of pictures (HTML, one file).")
    ] = None,
    force: ForceOption = False,
    *,
    form: ResultForm,
) -> None:
    """Tell what is in a trace: arrivals, gangs, run times, GPU time by class and tenant, load, recurrences.

    With --load, --shuffle or --arrivals it is about the same jobs with other
    arrivals, which -o writes. A load multiplies all gaps by one number, so that
    it is exactly offered; with Poisson arrivals it sets their mean. Without a
    trace the formats of traces are listed.
    """
    change = _Rearrangement(load, shuffle, arrivals, seed)
    if file is None:
        if change or cluster or trace_format or output or law or page:
            raise InputError(
                "trace: expected a trace; without one there are no options but --json and --csv"
            )
        _list_formats(form)
        return
    if arrivals not in (None, "poisson"):
        raise InputError(f"--arrivals {arrivals}: expected poisson")
    if load is not None and cluster is None:
        raise InputError("--load: goes with --cluster, a load is offered to GPUs")
    expect_outputs(force, output, law, page)
    imported = _read(file, trace_format)
    from shadowprice.analysis.trace.contents import contents
    from shadowprice.instances.cluster import Cluster

    where = None if cluster is None else Cluster.load(cluster)
    jobs = _rearranged(imported.workload, where, change) if change else imported.workload
    if output is not None:
        write_table(output, jobs.to_frame())
    fitted = None if law is None else _fit(jobs, law)
    if page is not None:
        from shadowprice.analysis.trace.page import trace_page

        text = trace_page(jobs, where, imported.lines(), made_by=origin().sentence())
        write_file(page, lambda partial: partial.write_text(text, encoding="utf-8"))
    numbers = contents(jobs, where)
    loads, ran, questions = _against(None if change else file, jobs, where)
    record = {
        **numbers.document(),
        "loads": [asdict(each) for each in loads],
        "recorded": ran,
        "cannot_answer": questions,
        **({} if fitted is None else {"fit": asdict(fitted)}),
    }

    def show() -> None:
        _print_tables(numbers, where)
        _print_loads(loads)
        lines = [*ran, *(f"cannot be answered: {each}" for each in questions)]
        if fitted is not None and law is not None:
            lines += _fit_lines(fitted, law)
        if output is not None:
            lines.append(f"{len(jobs)} jobs to {output}")
        print_lines(*lines)

    print_result(form, show, lambda: record, lambda: entries(record))


def _fit(jobs: Workload, law: Path) -> Fit:
    """Fit the generator by maximum likelihood, with intervals of 95 %, and write it."""
    from shadowprice.analysis.trace.fit import fit, write_fit

    fitted = fit(jobs)
    write_file(law, lambda partial: write_fit(fitted, jobs.source, partial))
    return fitted


def _fit_lines(fitted: Fit, law: Path) -> list[str]:
    from shadowprice.analysis.trace.fit import GENERATOR

    each = {name: getattr(fitted, name) for name in ("median_s", "sigma", "jobs_per_hour")}
    return [
        *(
            f"{name} {one.value:.6g} (95 %: {one.low:.6g} to {one.high:.6g})"
            for name, one in each.items()
        ),
        f"run times differ from the law's by at most {fitted.distance:.3f} in distribution; gaps vary "
        f"{fitted.gap_cv:.2f} times as much as their mean (1 in the law)",
        f"generate {GENERATOR} --parameters {law} -o jobs.csv",
    ]


def _rearranged(jobs: Workload, where: Cluster | None, change: _Rearrangement) -> Workload:
    """The same jobs with other arrivals; of a load, those that can run on the cluster."""
    from shadowprice.analysis.trace.contents import run_times_s
    from shadowprice.instances.generators.rescaling import at_load, poisson_arrivals_of, shuffled

    load = change.load
    # Without a load the gaps are those of the jobs, whatever a cluster is.
    at = None if load is None else where
    gpus = 0 if at is None else at.physical_gpus
    if at is not None:
        jobs = _feasible(jobs, at)
    run_s = run_times_s(jobs, at)
    if change.shuffle:
        jobs = shuffled(jobs, change.seed)
        run_s = run_times_s(jobs, at)
    if change.arrivals is not None:
        return poisson_arrivals_of(
            jobs, change.seed, load=load, gpus_total=gpus or None, run_s=run_s
        )
    return jobs if load is None else at_load(jobs, load, gpus, run_s)


def _against(
    file: Path | None, jobs: Workload, where: Cluster | None
) -> tuple[tuple[TypeLoad, ...], list[str], list[str]]:
    """Loads by type, what was run, and questions that the trace cannot answer; without a file nothing was run."""
    from shadowprice.analysis.audit.recorded_use import recorded_use
    from shadowprice.analysis.trace.contents import run_times_s
    from shadowprice.analysis.trace.demand import racks_in_words, type_loads, unanswered

    questions = unanswered(jobs, where)
    if where is None:
        return (), [], questions
    ran, more = ([], []) if file is None else recorded_use(file, where)
    racks = racks_in_words(where)
    ran = ran if racks is None else [racks, *ran]
    loads = type_loads(jobs, where, run_times_s(jobs, where))
    return loads, ran, list(dict.fromkeys((*questions, *more)))


def _print_loads(loads: Sequence[TypeLoad]) -> None:
    if not loads:
        return
    spans = len(loads[0].by_span)
    over = f"in each {spans}th of the time"
    rows = (
        (
            each.types,
            f"{each.gpus:,}",
            f"{each.jobs:,}",
            f"{each.load:.3f}",
            " ".join(f"{value:.2f}" for value in each.by_span),
        )
        for each in loads
    )
    print_rows(("GPU types", "GPUs", "jobs that run nowhere else", "load", over), rows, (1, 2, 3))


def _print_tables(contents: Contents, where: Cluster | None) -> None:
    from shadowprice.analysis.trace.page import part_row, parts_of, summary_rows

    print_rows(("trace", "value"), summary_rows(contents, where))
    for what, parts in parts_of(contents):
        heads = (what, "jobs", "share of jobs", "share of GPU time", "median run time [s]")
        print_rows(heads, map(part_row, parts), range(1, 5))


def _feasible(jobs: Workload, where: Cluster) -> Workload:
    """The jobs that can run on a cluster; those left out are said."""
    import numpy as np

    from shadowprice.analysis.trace.contents import run_times_s

    able = np.isfinite(run_times_s(jobs, where))
    if not able.all():
        left_out = f"{int((~able).sum())} jobs can never run on {where} and are left out"
        note(left_out)
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


def _list_formats(form: ResultForm) -> None:
    """Formats of traces: what each is, and where its importer is from.

    Importers of installed packages are among them, and are imported; one that is broken is a line on stderr.
    """
    from shadowprice.instances.traces import about, importers, installed_importer

    known = importers()
    rows = [
        {"format": name, "is": first_line(about(importer)), "from": OURS}
        for name, importer in sorted(known.items())
    ]
    for offer in offers(TRACES):
        try:
            if offer.name in known:
                raise InputError(f"{offer}: hidden by ours of that name")
            importer = installed_importer(offer)
        except InputError as error:
            note(str(error))
        else:
            contents = first_line(about(importer))
            rows.append({"format": offer.name, "is": contents, "from": offer.distribution})

    heads = ("format", "what it is", "from")
    print_result(form, lambda: print_rows(heads, map(dict.values, rows)), lambda: rows)
