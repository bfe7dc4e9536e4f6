"""The page of a trace: one file, which asks the network for nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence

from shadowprice.analysis.pages.figures import figure_html, plotly_library
from shadowprice.analysis.pages.page import Section, Sheet, page
from shadowprice.analysis.trace.contents import Contents, Part, contents, run_times_s
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.workload import Workload

NO_NUMBER = "none"
"""Stands for numbers that a trace does not have, such as the time between the arrivals of one job."""


def summary_rows(contents: Contents, cluster: Cluster | None) -> list[tuple[str, str]]:
    """Numbers of a whole trace as (name, text)."""
    rows = [
        ("jobs", f"{contents.jobs:,}"),
        ("from first to last arrival [h]", f"{contents.span_s / 3600:,.2f}"),
        ("GPU time [GPU-h]", f"{contents.gpu_h:,.1f}"),
        *(
            [("time of cores without GPUs [core-h]", f"{contents.core_h:,.1f}")]
            if contents.core_h
            else []
        ),
        ("mean time between arrivals [s]", _text(contents.mean_gap_s, ",.2f")),
        ("its coefficient of variation (Poisson: 1)", _text(contents.gap_cv, ",.2f")),
        ("jobs that arrive with the one before", _text(contents.same_moment, ".1%")),
    ]
    rows += [
        (f"run time, {name} [s]", _text(value, ",.1f"))
        for name, value in contents.durations_s.items()
    ]
    if contents.of_limit:
        share = contents.of_limit["p50"]
        rows.append(("run time over submitted limit, median", f"{share:.3f}"))
    if contents.recurrence is not None:
        again = contents.recurrence
        rows.append(("groups of jobs that recur", f"{again.groups:,}"))
        rows.append(("jobs in them", f"{again.jobs:,} ({again.share_of_jobs:.1%})"))
        rows.append(("longest over shortest run in a group, median", f"{again.median_spread:.2f}"))
    else:
        rows.append(("groups of jobs that recur", "not known"))
    if cluster is not None:
        load = "none: all arrive at one moment" if contents.load is None else f"{contents.load:.3f}"
        rows.append((f"load offered to {cluster.physical_gpus:,} GPUs", load))
        rows.append(("jobs that can never run there", f"{contents.infeasible:,}"))
    return rows


def _text(value: float, form: str) -> str:
    return NO_NUMBER if math.isnan(value) else format(value, form)


def parts_of(contents: Contents) -> list[tuple[str, Sequence[Part]]]:
    """Jobs by what the trace tells of them: gang, class, tenant, outcome, GPU types."""
    every = (
        ("GPUs of the gang", contents.by_gang),
        ("class", contents.by_class),
        ("tenant", contents.by_tenant),
        ("outcome", contents.by_outcome),
        ("allowed GPU types", contents.by_type),
    )
    return [(what, parts) for what, parts in every if parts]


def part_row(part: Part) -> tuple[str, str, str, str, str]:
    """A part as texts: name, jobs, share of jobs, share of GPU time, median run time."""
    return (
        part.name,
        f"{part.jobs:,}",
        f"{part.share_of_jobs:.1%}",
        _text(part.share_of_gpu_time, ".1%"),
        "" if math.isnan(part.median_s) else f"{part.median_s:,.0f}",
    )


def trace_page(
    workload: Workload,
    cluster: Cluster | None,
    report: Sequence[str] = (),
    *,
    made_by: str = "",
) -> str:
    """The page as HTML.

    Parameters
    ----------
    report : sequence of str
        Lines on what an importer made of the rows.
    made_by : str
        What made the page, for its foot; this package's version if empty.

    Raises
    ------
    InputError
        If Plotly is not installed.
    """
    library = plotly_library()
    # They cannot be imported without it.
    from shadowprice.analysis.trace.figures import (
        MOST_LINES,
        arrivals_figure,
        demand_figure,
        durations_figure,
        shares_figure,
    )

    numbers, run_s = contents(workload, cluster), run_times_s(workload, cluster)
    gpus = None if cluster is None else cluster.physical_gpus
    rows = Sheet(("", ""), summary_rows(numbers, cluster), words=1)
    hours = "Hours are counted from the first arrival, not by the clock of the log."
    demand = "GPUs that would be held if every job ran from its arrival, on its fastest GPU type."
    lines = f"Up to {MOST_LINES} classes, those with most GPU time." if numbers.by_class else ""
    arrivals = figure_html("arrivals", arrivals_figure(workload, numbers))
    durations = figure_html("durations", durations_figure(workload, numbers, run_s))
    held = figure_html("demand", demand_figure(workload, run_s, gpus))
    sections = [
        Section("In numbers", [rows]),
        Section("Arrivals", [arrivals], hours),
        Section("Run times", [durations], lines),
        Section("Demand", [held], demand),
    ]
    heads = ("jobs", "share of jobs", "share of GPU time", "median run time [s]")
    for place, (what, parts) in enumerate(parts_of(numbers)):
        picture = figure_html(f"parts{place}", shares_figure(parts, what))
        sheet = Sheet((what, *heads), [part_row(part) for part in parts], words=1)
        sections.append(Section(f"By {what}", [picture, sheet]))
    if report:
        cells = [(line,) for line in report]
        sections.append(Section("Rows of the file", [Sheet(("",), cells, words=1)]))
    return page(
        f"Trace {workload.source}",
        _sentence(numbers),
        sections,
        library=library,
        made_by=made_by,
    )


def _sentence(contents: Contents) -> str:
    wide = max(contents.by_gang, key=lambda part: part.share_of_gpu_time)
    return (
        f"{contents.jobs:,} jobs in {contents.span_s / 3600:,.1f} hours with {contents.gpu_h:,.0f} GPU-hours; the gang "
        f"with most of them is {wide.name}: {_text(wide.share_of_gpu_time, '.0%')}."
    )
