"""Formats of logs as declarations: columns, clock, states, what is left out and why; one reader reads them all.

A format is a :class:`LogFormat`, in a file of its own in this package as ``FORMAT``, or offered by an installed
package. It names the log's columns for what a job is: :data:`Values` are the name of a column, or a
:class:`Computed` one. A value is read in the rows that are left when it is asked for. Runs as they were recorded are
declared by ``recorded``, a :class:`Recording`, and are read only for ``load_trace(..., recorded=True)``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.cluster import CORES
from shadowprice.instances.files import read_text
from shadowprice.instances.traces import Imported
from shadowprice.instances.traces.clocks import LogClock, Seconds
from shadowprice.instances.traces.job_log import JobLog, Mask, Tables
from shadowprice.instances.traces.log_reading import Keep, LogReading
from shadowprice.instances.traces.recorded_runs import RecordedRuns, tuples
from shadowprice.instances.traces.table import report_order
from shadowprice.instances.workload import WHOLE_GPU, Workload
from shadowprice.instances.workload_files import read_table, split_header


@dataclass(frozen=True)
class Computed:
    """Values that are computed from the columns of a log.

    Parameters
    ----------
    column : str
        Column that they are of, for messages.
    values : callable
        Gives one value for each row that is left.
    """

    column: str
    values: Callable[[JobLog], NDArray[Any]]


Values = str | Computed
"""Values of the rows that are left: those of a column, or computed ones."""


def above_zero(column: str, otherwise: float) -> Computed:
    """Numbers of a column where they are above 0, and another in place of the rest."""

    def values(log: JobLog) -> Seconds:
        return known_or(log.numbers(column), otherwise)

    return Computed(column, values)


def known_or(values: Seconds, unknown: float) -> Seconds:
    """Numbers above 0, and this one in place of all others."""
    with np.errstate(invalid="ignore"):
        return np.where(values > 0, values, unknown)


def zeros(log: JobLog) -> Seconds:
    """A zero for each row that is left."""
    return np.zeros(len(log.rows))


@dataclass(frozen=True)
class HeaderTable:
    """Text with a header line, fields between any of the usual delimiters.

    Parameters
    ----------
    header : str
        Columns that there must be, as ``a,b``; a header is recognised if these are all, in this order.
    optional : str
        Columns that are read where they are there.
    among : str
        Columns by which a header is recognised, among any others, instead.
    """

    header: str
    optional: str = ""
    among: str = ""

    def recognises(self, first_line: str, path: Path) -> bool:
        """True if a header is one of the format."""
        names = split_header(first_line)
        if self.among:
            return set(self.among.split(",")) <= set(names)
        return names == self.header.split(",")

    def read(self, path: Path) -> Tables:
        """Columns of a file as text.

        Raises
        ------
        InputError
            If one is missing.
        """
        needed = self.header.split(",")
        columns = read_table(path, needed=needed)
        unused = [name for name in columns if name not in needed + self.optional.split(",")]
        return Tables(columns, unused=tuple(unused))


@dataclass(frozen=True)
class OtherText:
    """Text that has no header, or is no table.

    Parameters
    ----------
    recognises : callable
        Says from the first line and the path whether a file is of the format.
    read : callable
        Gives the columns of a file.
    """

    recognises: Callable[[str, Path], bool]
    read: Callable[[Path], Tables]


def lines_of_fields(
    path: Path,
    names: list[str],
    delimiter: str | None = None,
    *,
    comment: str = "",
    more: bool = False,
) -> dict[str, NDArray[np.object_]]:
    """Columns of a text without a header, blank lines left out.

    Parameters
    ----------
    delimiter : str, optional
        Any white space if absent.
    comment : str
        Beginning of lines that are none of the table.
    more : bool
        Whether lines may have further fields, which are left out.

    Raises
    ------
    InputError
        If a line has another number of fields, or there is none.
    """
    lines = []
    for number, line in enumerate(read_text(path).splitlines(), 1):
        if not line.strip() or (comment and line.lstrip().startswith(comment)):
            continue
        fields = line.split(delimiter)
        if len(fields) < len(names) or (len(fields) > len(names) and not more):
            raise InputError(
                f"{path}: line {number}: {len(fields)} fields, expected {len(names)}: {', '.join(names)}"
            )
        lines.append(fields[: len(names)])
    if not lines:
        raise InputError(f"{path}: has no jobs")
    return dict(zip(names, np.array(lines, dtype=object).T, strict=True))


@dataclass(frozen=True)
class EndStates:
    """Ends of jobs, by the words of a log.

    Parameters
    ----------
    word : str or Computed
        The word for each job.
    completed : tuple of str
        Words of jobs that ended well, the first for messages.
    ends : mapping of str to str
        Outcomes (completed, failed, cancelled) by the words for them; others are listed in a note.
    """

    word: Values
    completed: tuple[str, ...]
    ends: Mapping[str, str] | None = None


SLURM_ENDS: Mapping[str, str] = {
    "COMPLETED": "completed",
    "CANCELLED": "cancelled",
    "FAILED": "failed",
    "TIMEOUT": "failed",
    "NODE_FAIL": "failed",
    "OUT_OF_MEMORY": "failed",
    "BOOT_FAIL": "failed",
    "DEADLINE": "failed",
    "PREEMPTED": "failed",
}
"""Outcomes of jobs by Slurm's states, which Helios' and Acme's logs have as well."""


@dataclass(frozen=True)
class Remark:
    """Rows that are left out, or said, before gangs are read.

    Parameters
    ----------
    action : str
        ``dropped`` for rows that are left out; another of :data:`~shadowprice.instances.traces.ACTIONS` for rows
        that stay.
    why : str
    which : callable
        Gives a mask of the rows that are left.
    """

    action: str
    why: str
    which: Callable[[JobLog], Mask]


@dataclass(frozen=True)
class Recording:
    """Columns of a log that say when and where each job ran.

    A job has one run, from ``start`` to ``end``.

    Parameters
    ----------
    start, end : str or Computed
        Times of the run: a column, read by the format's clock, or computed seconds of that clock.
    nodes : str or Computed, optional
        Nodes: a column that has the name of one, or computed tuples of names.
    """

    start: Values
    end: Values
    nodes: Values | None = None

    def read(self, log: JobLog, ids: NDArray[np.object_], first_s: float) -> RecordedRuns:
        """Runs of the jobs in the rows that are left, from ``first_s`` on the format's clock."""
        return RecordedRuns(
            id=np.asarray(ids),
            row=log.rows + 1,
            start_s=_times(log, self.start) - first_s,
            end_s=_times(log, self.end) - first_s,
            nodes=self._nodes(log),
        )

    def _nodes(self, log: JobLog) -> NDArray[np.object_] | None:
        """Tuples of names; None where the format has no column for them."""
        if self.nodes is None:
            return None
        if isinstance(self.nodes, str):
            return tuples([(name,) if name else () for name in log.text(self.nodes).tolist()])
        return self.nodes.values(log)


@dataclass(frozen=True, kw_only=True)
class LogFormat:
    """Format of a log.

    Parameters
    ----------
    name : str
        How users ask for it.
    about : str
        Docstring of its module: lists show the first line.
    table : HeaderTable or OtherText
        How its text becomes columns.
    gpus : str or Computed
        GPUs of each job; parts of one, and jobs without any, are dealt with as the reading says.
    cores : str or Computed, optional
        Cores of each job, for those without GPUs.
    submit, start, end : str or Computed
        Times: a column, read by ``clock``, or computed seconds. A job runs from ``start`` to ``end``; without
        ``start`` the column ``end`` is how long it ran.
    clock : LogClock, optional
        Meaning of times that are dates; others are seconds.
    stated_s : str, optional
        Column with the time between start and end [s]: where it is not, that is reported.
    states : EndStates, optional
        How jobs ended; where a log does not say so, jobs that ended well cannot be chosen.
    columns : mapping of str to Values
        Further columns of the workload by their names there: id, which there must be, tenant, limit_s ...
    remarks : tuple of Remark
    notes : tuple of str or callable
        What is taken to be so; one that depends on the reading is computed from it.
    recorded : Recording, optional
        When and where jobs ran, for who asks.
    own_zero : bool
        Whether times are counted from a moment of the log's own, such as the beginning of a simulation, which is
        kept; else from the first submission.
    """

    name: str
    about: str
    table: HeaderTable | OtherText
    gpus: Values
    submit: Values
    end: Values
    columns: Mapping[str, Values]
    start: Values = Computed("", zeros)
    cores: Values | None = None
    clock: LogClock | None = None
    stated_s: str | None = None
    states: EndStates | None = None
    remarks: tuple[Remark, ...] = ()
    notes: tuple[str | Callable[[LogReading], str], ...] = ()
    recorded: Recording | None = None
    own_zero: bool = False

    def sniff(self, first_line: str, path: Path) -> bool:
        """True if a file that begins like this is of the format."""
        return self.table.recognises(first_line, path)

    def load_log(self, path: Path, choices: LogReading) -> Imported:
        """Jobs of a log as chosen, and what was left out.

        Raises
        ------
        InputError
            If the file is not of the format, a choice cannot be made for it, or no job is left.
        """
        self._expect_able(path, choices)
        log = JobLog(path, self.table.read(path), choices, self.clock)
        self._note_unused(log)
        for remark in self.remarks:
            if remark.action == "dropped":
                log.drop(remark.which(log), remark.why)
            else:
                log.say(remark.action, remark.which(log), remark.why)
        cores = None if self.cores is None else partial(_numbers, values=self.cores)
        log.read_gangs(_numbers(log, self.gpus), _column(self.gpus), cores)
        if self.states is not None:
            log.keep_completed(_texts(log, self.states.word), self.states.completed)
        log.notes += [note if isinstance(note, str) else note(choices) for note in self.notes]
        if self.states is not None and self.states.ends:
            log.note_states(_texts(log, self.states.word), self.states.ends)
        return self._replayed(log)

    def _expect_able(self, path: Path, choices: LogReading) -> None:
        """Refuse choices that the format has no columns for."""
        if choices.zone is not None and not (self.clock and self.clock.of_site):
            raise InputError(
                f"{path}: the zone of its times is known, or it has none; zone cannot be chosen"
            )
        if choices.keep is not Keep.ALL and self.states is None:
            raise InputError(f"{path}: does not say how jobs ended; keep all of them")
        if choices.recorded and self.recorded is None:
            raise InputError(
                f"{path}: its format, {self.name}, does not say when jobs started and ended"
            )

    def _note_unused(self, log: JobLog) -> None:
        if log.tables.unused:
            log.notes.append(f"columns that are not used: {', '.join(log.tables.unused)}")

    def _replayed(self, log: JobLog) -> Imported:
        """The workload of those of the rows left that ran, submissions counted from the first of them."""
        submit_s = log.read_submitted(_times(log, self.submit))
        ran, ran_s = log.read_runs(_times(log, self.start), _times(log, self.end))
        submit_s = submit_s[ran]
        if self.stated_s is not None:
            differs = np.abs(log.numbers(self.stated_s) - ran_s) > 1.0
            why = f"column {self.stated_s!r} is not end_time - start_time, which is used"
            log.say("contradicted", differs, why)
        rows, first_s = log.rows + 1, 0.0 if self.own_zero else submit_s.min()
        report_order(submit_s, rows, log.report)
        further: dict[str, Any] = {name: _texts(log, each) for name, each in self.columns.items()}
        if self.states is not None and self.states.ends is not None:
            words = _texts(log, self.states.word).tolist()
            further["outcome"] = [self.states.ends.get(word, "") for word in words]
        gangs, on_cores = log.gangs[log.rows], log.on_cores[log.rows]
        if on_cores.any():
            further["allowed_types"] = np.where(on_cores, CORES, further.get("allowed_types", ""))
            log.notes.append(
                f"{int(on_cores.sum())} jobs hold cores and no GPU: they run on nodes of type {CORES}"
            )
        workload = Workload.from_columns(
            **further,
            arrival_s=submit_s - first_s,
            gpus=np.ceil(gangs).astype(np.int64),
            gpu_milli=np.rint(np.minimum(gangs, 1.0) * WHOLE_GPU),
            work=ran_s,
            source=str(log.path),
            rows=rows,
            names={name: _column(each) for name, each in self.columns.items()},
        )
        dated = self.clock is not None and not self.clock.of_site
        if dated:
            date = np.datetime_as_string(np.datetime64(int(first_s), "s"))
            log.notes.append(
                f"time 0 is {str(date).replace('T', ' ')} by the clock that dates are taken by"
            )
        recorded = None
        if self.recorded is not None and log.choices.recorded:
            recorded = self.recorded.read(log, further["id"], float(first_s))
        origin_s = float(first_s) if dated else None
        notes = tuple(log.notes)
        return Imported(workload, tuple(log.report), log.rows_read, notes, origin_s, recorded)


def _column(values: Values) -> str:
    return values if isinstance(values, str) else values.column


def _numbers(log: JobLog, values: Values) -> Seconds:
    return log.numbers(values) if isinstance(values, str) else values.values(log)


def _texts(log: JobLog, values: Values) -> NDArray[Any]:
    return log.text(values) if isinstance(values, str) else values.values(log)


def _times(log: JobLog, values: Values) -> Seconds:
    return log.times(values) if isinstance(values, str) else values.values(log)
