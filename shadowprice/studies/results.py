"""Results of a study on disk: rows of every run as it ends, and tables of them.

========================  ============================================================================
``study.json``            the study, digests of code and files, versions, how to repeat it
``points.jsonl``          rows of every run and bound, as each ended; what is there is not run again
``runs.parquet``          a row a run: axes, verified summary, certified ratios
``groups.parquet``        a row a run and group of jobs: statistics of JCT, slowdown, queueing, fairness
``distributions.parquet`` a row a run, metric and percentile
========================  ============================================================================

Tables are written in the order of the plan: the same bytes whoever computed the rows, and when. CPU times are in
``points.jsonl`` alone.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from html import escape
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from shadowprice.brief import SHOWN_COLUMNS, SHOWN_ROWS, Brief, cut
from shadowprice.errors import InputError
from shadowprice.instances.documents.schema import decode
from shadowprice.instances.files import parse_json, read_text
from shadowprice.instances.objective import rounded_up
from shadowprice.studies.plan import StudyPlan
from shadowprice.studies.points.point_rows import PointRows
from shadowprice.studies.run_rows import LEVELS
from shadowprice.studies.study_file import StudyFile, study_of
from shadowprice.version import __version__

STUDY, POINTS = "study.json", "points.jsonl"
TABLES = ("runs", "groups", "distributions")
LIBRARIES = ("numpy", "scipy", "pandas", "pyarrow", "highspy", "numba")
FORMAT = 1


class StudyRecord(Brief, msgspec.Struct, frozen=True, kw_only=True):
    """``study.json``.

    Parameters
    ----------
    format : int
    study : mapping
        The study file as it was decoded.
    command : str
        Command that goes on with it or repeats it.
    code, shadowprice, python : str
        Digest and version of the package, version of Python.
    libraries, files : mapping of str to str
        Versions by name; digests by path of the files that runs read.
    notes : tuple of str
        As of :class:`StudyPlan`.
    runs : int
        Runs of the plan.
    failed : mapping of str to str
        Runs without rows, and why.
    """

    format: int
    study: dict[str, Any]
    command: str
    code: str
    shadowprice: str
    python: str
    libraries: dict[str, str]
    files: dict[str, str]
    notes: tuple[str, ...]
    runs: int
    failed: dict[str, str]


@dataclass(frozen=True, eq=False)
class StudyResults:
    """Tidy frames of a study's runs, a row an observation, with a column for every axis.

    Parameters
    ----------
    record : StudyRecord
    study : StudyFile
        The study of the record.
    runs : DataFrame
        A row a run: :attr:`StudyFile.columns`, the verified summary, ``bound_GOAL_s`` and
        ``ratio_GOAL`` of the objectives that are bounded.
    groups : DataFrame
        A row a run and group: axes, ``by`` (``all``, ``gang``, ``tenant`` ...), ``group``, ``jobs``, ``growth`` and
        ``METRIC_STATISTIC`` (``jct_s_mean``, ``slowdown_p99`` ...).
    distributions : DataFrame
        A row a run, metric and percentile: axes, ``metric``, ``percentile``, ``value``.
    """

    record: StudyRecord
    study: StudyFile
    runs: pd.DataFrame
    groups: pd.DataFrame
    distributions: pd.DataFrame

    def __repr__(self) -> str:
        name = cut(self.study.study, 60)
        return f"StudyResults({name}: {len(self.runs)} of {self.record.runs} runs)"

    def _repr_html_(self) -> str:
        """Show the first runs as a table in a notebook."""
        some = self.runs.head(SHOWN_ROWS)
        return f"<p>{escape(repr(self))}</p>{some.to_html(index=False, max_cols=SHOWN_COLUMNS)}"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep others from computing the same study in the same folder.

    Raises
    ------
    InputError
        If somebody does already, or the folder cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise InputError(f"{folder}: cannot be written: {error.strerror or error}") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise InputError(f"{folder}: another command is computing this study") from None
    finally:
        os.close(descriptor)


def collect(
    plan: StudyPlan,
    rows: Mapping[str, PointRows | None],
    *,
    command: str,
    failed: Mapping[str, str],
) -> StudyResults:
    """Frames of the runs that have rows, in the order of the plan.

    Parameters
    ----------
    rows : mapping of str to PointRows or None
        Rows by the keys of tasks; None of those that failed.
    failed : mapping of str to str
        Reasons by the keys of tasks.
    """
    tables: dict[str, list[dict[str, Any]]] = {name: [] for name in TABLES}
    for run in plan.runs:
        of_run = rows[run.task.key]
        if of_run is None:
            continue
        bounds = rows[run.bounds.key] if run.bounds is not None else None
        for row in of_run.rows:
            values = {name: value for name, value in row.items() if name != "table"}
            if row["table"] == "distributions":
                tables["distributions"] += (
                    {**run.axes, "metric": values["metric"], "percentile": level, "value": value}
                    for level, value in zip(LEVELS, values["values"], strict=True)
                )
            elif row["table"] == "runs":
                tables["runs"].append({**run.axes, **_with_ratios(values, bounds)})
            else:
                tables["groups"].append({**run.axes, **values})
    frames = {name: _frame(each, plan.study.columns) for name, each in tables.items()}
    return StudyResults(_record(plan, command, failed), plan.study, **frames)


def _frame(rows: list[dict[str, Any]], axes: Sequence[str]) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=list(dict.fromkeys(name for row in rows for name in row)))
    if frame.empty:
        frame = pd.DataFrame(columns=list(axes))
    frame["load"] = frame["load"].astype("float64")
    return frame


def _with_ratios(values: dict[str, Any], bounds: PointRows | None) -> dict[str, Any]:
    """A run's row with bounds of its instance, if they are of its instance: costs over bounds, rounded up."""
    found = {name: value for name, value in values.items() if not name.endswith("_ticks")}
    for bound in () if bounds is None else bounds.rows:
        goal = bound["objective"]
        cost = values[f"total_{goal}_ticks"]
        same = bound["instance"] == values["instance"] and cost is not None
        least = Fraction(bound["bound_ticks"])
        known = same and least > 0
        found[f"bound_{goal}_s"] = bound["bound_s"] if same else None
        found[f"bound_{goal}_kind"] = bound["bound_kind"] if same else None
        found[f"bound_{goal}_class"] = bound["bound_class"] if same else None
        found[f"ratio_{goal}"] = rounded_up(Fraction(cost) / least) if known else None
    return found


def _record(plan: StudyPlan, command: str, failed: Mapping[str, str]) -> StudyRecord:
    return StudyRecord(
        format=FORMAT,
        study=plan.study.to_plain(),
        command=command,
        code=plan.code,
        shadowprice=__version__,
        python=platform.python_version(),
        libraries=dict(_versions()),
        files=plan.files,
        notes=plan.notes,
        runs=len(plan.runs),
        failed=dict(failed),
    )


def _versions() -> Iterator[tuple[str, str]]:
    for name in LIBRARIES:
        try:
            yield name, version(name)
        except PackageNotFoundError:
            continue


def write_results(results: StudyResults, folder: Path) -> None:
    """Write the tables and ``study.json``; each file is replaced whole."""
    for name in TABLES:
        table = pa.Table.from_pandas(getattr(results, name), preserve_index=False)
        _replaced(folder / f"{name}.parquet", lambda path, table=table: pq.write_table(table, path))
    text = json.dumps(msgspec.to_builtins(results.record), indent=1, sort_keys=True) + "\n"
    _replaced(folder / STUDY, lambda path: path.write_text(text, encoding="utf-8"))


def _replaced(path: Path, write: Any) -> None:
    unfinished = path.with_name(f".{path.name}")
    write(unfinished)
    unfinished.replace(path)


def read_results(folder: str | Path) -> StudyResults:
    """Read the results of a study.

    Raises
    ------
    InputError
        If the folder has none, or a file is not as expected; or if the study has keys that were, naming those that are
        in their place.
    """
    folder = Path(folder)
    if not (folder / STUDY).is_file():
        raise InputError(
            f"{folder}: has no {STUDY}, expected the folder that `study run` wrote its results to"
        )
    record = decode(
        StudyRecord, parse_json(read_text(folder / STUDY), str(folder / STUDY)), str(folder / STUDY)
    )
    if record.format != FORMAT:
        raise InputError(f"{folder / STUDY}: format is {record.format}, expected {FORMAT}")
    study = study_of(record.study, str(folder / STUDY))
    tables = {name: _read(folder / f"{name}.parquet") for name in TABLES}
    return StudyResults(record, study, **tables)


def _read(path: Path) -> pd.DataFrame:
    try:
        return pd.read_parquet(path)
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path}: cannot be read: {' '.join(str(error).split())}") from None
