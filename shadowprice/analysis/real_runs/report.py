"""The report of a real run: one page about who ran where and when, and how fast."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from shadowprice.analysis.real_runs.bars import MAX_BARS, gantt_figure
from shadowprice.analysis.real_runs.figures import MAX_PANELS, load_figure, throughput_figure
from shadowprice.analysis.real_runs.jobs import JobRow, counts, job_rows
from shadowprice.analysis.real_runs.page import page, place_of, section, table, text
from shadowprice.analysis.real_runs.run import RunReader
from shadowprice.analysis.real_runs.status import shortened
from shadowprice.errors import InputError


def report(run: RunReader) -> str:
    """The page as HTML.

    Raises
    ------
    InputError
        If the run has measured a drift, but its table cannot be read.
    """
    rows = job_rows(run)
    parts = [
        f"<h1>{text(_title(run))}</h1>",
        f'<p class="lead">{text(_sentence(run, rows))}</p>',
        section("Devices over time", _GANTT_NOTE, place_of("gantt", gantt_figure(run))),
        section("Jobs", "Times in seconds.", _jobs_table(rows)),
        section("Load", "", place_of("load", load_figure(run))),
    ]
    rates = throughput_figure(run)
    if rates is not None:
        parts.append(section("Throughput", _RATES_NOTE, place_of("throughput", rates)))
    drift = run.directory / "measured" / "drift.csv"
    if drift.is_file():
        parts.append(section("Simulated against real", _DRIFT_NOTE, _csv_table(drift)))
    if run.timeline.incidents:
        parts.append(section("What went wrong", "", _incidents_table(run)))
    return page(_title(run), "\n".join(parts))


_GANTT_NOTE = (
    "One bar a lease; half height where two jobs share a device. Hatched: from the grant until the "
    "command ran. Crossed: given up, but its processes not confirmed gone. Grey: the node did not "
    f"answer. Of more than {MAX_BARS:,} bars the latest are drawn."
)
_RATES_NOTE = (
    "Measured at decisions (line) against what was assumed when the job last got devices (dashed), for the "
    f"{MAX_PANELS} jobs measured most often."
)
_DRIFT_NOTE = "The same jobs simulated with the measured throughputs."


def _title(run: RunReader) -> str:
    return f"{run.facts['policy']} on {run.facts['hosts']}"


def _sentence(run: RunReader, rows: Sequence[JobRow]) -> str:
    """Outcome of the run, in one line."""
    finished = [row.jct_s for row in rows if row.state == "finished" and row.jct_s is not None]
    states = ", ".join(f"{number} {state}" for state, number in counts(list(rows)).items())
    round_s = float(run.facts["round_s"] or 0.0)
    where = f"{_count(len(run.devices), 'device')} on {_count(len(run.nodes), 'node')}"
    words = [
        f"{_count(len(rows), 'job')} with {where}, rounds of {round_s:g} s: {states}",
        f"{run.now_s:,.1f} s in all",
    ]
    if finished:
        words.append(f"mean JCT {sum(finished) / len(finished):,.1f} s")
    if run.driver != "ended":
        words.append("the run is not over")
    return "; ".join(words) + "."


def _jobs_table(rows: Sequence[JobRow]) -> str:
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
        "predicted [it/s]",
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
    return table(heads, cells, words=2)


def _state(row: JobRow) -> str:
    if not row.why or row.why.startswith(row.state):
        return shortened(row.why) or row.state
    return f"{row.state}: {shortened(row.why)}"


def _incidents_table(run: RunReader) -> str:
    cells = [
        (
            f"{incident.time_s:,.1f}",
            incident.kind,
            run.device_label(incident.device) if incident.device else incident.job or incident.node,
            shortened(incident.text),
        )
        for incident in run.timeline.incidents
    ]
    return table(("time [s]", "what", "of", "because"), cells, words=4)


def _csv_table(path: Path) -> str:
    try:
        with path.open(newline="", encoding="utf-8") as sheet:
            lines = list(csv.reader(sheet))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
    heads, cells = (lines[0], lines[1:]) if lines else ([], [])
    return table(heads, [[_shorter(cell) for cell in row] for row in cells], words=1)


def _shorter(cell: str) -> str:
    """A number with four digits; anything else as it is."""
    try:
        value = float(cell)
    except ValueError:
        return cell
    return f"{value:,.0f}" if value == int(value) else f"{value:,.4g}"


def _number(value: float | None, digits: int | None = None) -> str:
    if value is None:
        return "-"
    return f"{value:,.4g}" if digits is None else f"{value:,.{digits}f}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
