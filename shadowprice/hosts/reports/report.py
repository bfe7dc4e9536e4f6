"""The report of a real run: one page about who ran where and when, and how fast."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path

from shadowprice.analysis.pages.figures import figure_html, plotly_library
from shadowprice.analysis.pages.page import Note, Section, Sheet, Text, page
from shadowprice.analysis.wording import counted
from shadowprice.errors import InputError
from shadowprice.hosts.reports.jobs import JobRow, counts, job_rows
from shadowprice.hosts.reports.results import COLUMNS, DRIFT, MEASURED, REMARKS
from shadowprice.hosts.reports.run import RunReader
from shadowprice.hosts.reports.status import shortened
from shadowprice.hosts.reports.timeline import MAX_BARS, MAX_PANELS
from shadowprice.hosts.reports.unsimulated import unsimulated

BARS = (
    "One bar a lease; half height where two jobs share a device. Hatched: from the grant until the command ran. "
    "Crossed: given up, but its processes not confirmed gone. Grey: the node did not answer. Of more than "
    f"{MAX_BARS:,} bars the latest are drawn."
)
RATES = (
    "Measured at decisions (line) against what was assumed when the job last got devices (dashed), for the "
    f"{MAX_PANELS} jobs measured most often."
)
UNWRITTEN = (
    "Other remarks on this simulation, such as rates that were assumed, were not written; earlier versions wrote none. "
    "To measure again: shadowprice.hosts.reports.results.results(STATE)."
)


def report(run: RunReader, *, made_by: str = "") -> str:
    """The page as HTML.

    Parameters
    ----------
    made_by : str
        What made the page, for its foot; this package's version if empty.

    Raises
    ------
    InputError
        If the run has measured a drift, but its table or its remarks cannot be read, or Plotly is not installed.
    """
    library = plotly_library()
    # They cannot be imported without it.
    from shadowprice.hosts.reports.figures import gantt_figure, load_figure, throughput_figure

    rows = job_rows(run)
    rates = throughput_figure(run)
    measured = run.directory / MEASURED
    incidents = _incidents_table(run)
    sections = [
        Section("Devices over time", [figure_html("gantt", gantt_figure(run))], BARS),
        Section("Jobs", [_jobs_table(rows)], "Times in seconds."),
        Section("Load", [figure_html("load", load_figure(run))]),
    ]
    if rates is not None:
        sections.append(Section("Throughput", [figure_html("throughput", rates)], RATES))
    if (measured / DRIFT).is_file():
        note = "The same jobs simulated with the measured throughputs."
        remarks = _drift_remarks(run)
        table = _drift_table(measured / DRIFT)
        sections.append(Section("Simulated against real", [table, *remarks], note))
    if incidents.rows:
        sections.append(Section("What went wrong", [incidents]))
    return page(
        f"{run.facts['policy']} on {run.facts['hosts']}",
        _sentence(run, rows),
        sections,
        library=library,
        made_by=made_by,
    )


def _sentence(run: RunReader, rows: Sequence[JobRow]) -> str:
    """Outcome of the run, in one line."""
    finished = [row.jct_s for row in rows if row.state == "finished" and row.jct_s is not None]
    states = ", ".join(f"{number} {state}" for state, number in counts(list(rows)).items())
    round_s = float(run.facts["round_s"] or 0.0)
    where = f"{counted(len(run.devices), 'device')} on {counted(len(run.nodes), 'node')}"
    words = [
        f"{counted(len(rows), 'job')} with {where}, rounds of {round_s:g} s: {states}",
        f"{run.now_s:,.1f} s in all",
    ]
    if finished:
        words.append(f"mean JCT {sum(finished) / len(finished):,.1f} s")
    if run.driver != "ended":
        words.append("the run is not over")
    return "; ".join(words) + "."


def _jobs_table(rows: Sequence[JobRow]) -> Sheet:
    heads = (
        "job",
        "state",
        "GPUs",
        "steps",
        "JCT [s]",
        "waited [s]",
        "leases",
        "tries",
        "steps lost",
        "measured [it/s]",
        "assumed [it/s]",
    )
    cells = [
        (
            row.name,
            _state(row),
            row.gpus,
            f"{row.step:,} / {row.iterations:,}",
            _number(row.jct_s, 1),
            _number(row.waited_s, 1),
            row.leases,
            row.tries,
            f"{row.lost_steps:,}",
            _number(row.measured),
            _number(row.predicted),
        )
        for row in rows
    ]
    return Sheet(heads, cells, words=2)


def _state(row: JobRow) -> str:
    if not row.why or row.why.startswith(row.state):
        return shortened(row.why) or row.state
    return f"{row.state}: {shortened(row.why)}"


def _incidents_table(run: RunReader) -> Sheet:
    cells = [
        (
            f"{incident.time_s:,.1f}",
            incident.kind,
            run.device_label(incident.device) if incident.device else incident.job or incident.node,
            shortened(incident.text),
        )
        for incident in run.timeline.incidents
    ]
    return Sheet(("time [s]", "what", "of", "because"), cells, words=4)


def _drift_table(path: Path) -> Sheet:
    """Rows of a file of :class:`~shadowprice.hosts.reports.results.Drift`, errors in per cent."""
    try:
        with path.open(newline="", encoding="utf-8") as sheet:
            lines = list(csv.reader(sheet))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
    heads, cells = (lines[0], lines[1:]) if lines else ([], [])
    odd = next((row for row in cells if len(row) != len(heads)), None)
    if odd is not None:
        raise InputError(f"{path}: a row has {len(odd)} cells, expected {len(heads)}: {odd}")
    shown = [list(map(_shorter, heads, row)) for row in cells]
    return Sheet([COLUMNS.get(head, head) for head in heads], shown, words=1)


def _drift_remarks(run: RunReader) -> list[Text]:
    """Remarks on the simulation as they were written; those that the log tells where none were."""
    path = run.directory / MEASURED / REMARKS
    if not path.is_file():
        return [*map(Text, unsimulated(run.events())), Note(UNWRITTEN)]
    try:
        # Of all ends of a line only this one is never within a remark.
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
    return [Text(line) for line in lines if line]


def _shorter(head: str, cell: str) -> str:
    """A number with four digits, an error in per cent; anything else as it is."""
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        return cell
    if head == "relative_error":
        return f"{100 * value:+.1f} %"
    return f"{value:,.0f}" if value == int(value) else f"{value:,.4g}"


def _number(value: float | None, digits: int | None = None) -> str:
    if value is None:
        return "-"
    return f"{value:,.4g}" if digits is None else f"{value:,.{digits}f}"
