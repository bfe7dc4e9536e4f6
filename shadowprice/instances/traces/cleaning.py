"""Common parts of the importers of logs: rows left out with a reason each, and times of runs.

A log says when jobs were submitted, started and ended, and how they ended. A job is replayed for
as long as it ran; what cannot be replayed is left out, and counted by reason. Nothing is guessed: where
a log can be read in two ways, :class:`~shadowprice.instances.traces.log_reading.LogReading` say which.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.cluster import CORES
from shadowprice.instances.columns import ColumnChecks
from shadowprice.instances.entries import shown
from shadowprice.instances.grid import MAX_TIME_S, TICK_S
from shadowprice.instances.traces import Finding, Imported
from shadowprice.instances.traces.log_reading import CpuJobs, Fractions, Keep, LogReading
from shadowprice.instances.traces.table import report_order
from shadowprice.instances.workload import MAX_GANG, WHOLE_GPU, Workload

_OFFSET = re.compile(r"([+-])([01][0-9]|2[0-3]):([0-5][0-9])")

Mask = NDArray[np.bool_]
Seconds = NDArray[np.float64]


@dataclass
class JobLog:
    """Rows of a log that are left, and what has happened to the others.

    Parameters
    ----------
    path : Path
    columns : mapping of str to ndarray
        Text columns by the file's names.
    first_row : int
        Number of the first row, for messages.

    Attributes
    ----------
    rows : ndarray of int
        Positions of the rows that are left.
    on_cores : ndarray of bool
        Rows of the whole log that are kept as jobs on cores.
    """

    path: Path
    columns: Mapping[str, NDArray[np.object_]]
    first_row: int = 1
    report: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    rows: NDArray[np.int64] = field(init=False)
    on_cores: Mask = field(init=False)

    def __post_init__(self) -> None:
        self.rows_read = len(next(iter(self.columns.values())))
        self.rows = np.arange(self.rows_read)
        self.on_cores = np.zeros(self.rows_read, dtype=np.bool_)

    @classmethod
    def of(
        cls,
        path: Path,
        columns: Mapping[str, NDArray[np.object_]],
        needed: tuple[str, ...],
        beside: tuple[str, ...] = (),
    ) -> JobLog:
        """A log of columns by name; those neither needed nor read beside them are listed in a note.

        Raises
        ------
        InputError
            If one is missing.
        """
        missing = [name for name in needed if name not in columns]
        if missing:
            raise InputError(
                f"{path}: column {missing[0]!r} is missing, found {', '.join(columns)}"
            )
        log = cls(path, columns)
        unused = [name for name in columns if name not in needed + beside]
        if unused:
            log.notes.append(f"columns that are not used: {', '.join(unused)}")
        return log

    def text(self, name: str) -> NDArray[np.object_]:
        """Values of a column in the rows that are left."""
        return self.columns[name][self.rows]

    def numbers(self, name: str) -> Seconds:
        """Numbers of a column, NaN for what is none."""
        return ColumnChecks.floats(self.text(name))

    def drop(self, bad: Mask, why: str, action: str = "dropped") -> None:
        """Leave rows out, and say why.

        Raises
        ------
        InputError
            If no row is left.
        """
        self.say(action, bad, why)
        self.rows = self.rows[~bad]
        if not len(self.rows):
            raise InputError(
                f"{self.path}: no usable row is left; {'; '.join(map(str, self.report))}"
            )

    def say(self, action: str, which: Mask, what: str) -> None:
        """Report rows, if there are any, with the first of them."""
        if not which.any():
            return
        row = int(self.rows[which.argmax()])
        values = ", ".join(str(column[row]) for column in self.columns.values())
        example = f"row {row + self.first_row}: {values[:160]}"
        self.report.append(Finding(action, int(which.sum()), what, example))

    def gangs(
        self,
        gpus: Seconds,
        choices: LogReading,
        name: str,
        cores: Callable[[], Seconds] | None = None,
    ) -> Seconds:
        """Gangs of the rows that stay; others are dropped, rounded up or kept as parts of a GPU as chosen.

        Parameters
        ----------
        cores : callable, optional
            Gives the cores that each row that is left asks for, if the log tells: the gang of those that ask
            for no GPU, where these are to be kept.

        Raises
        ------
        InputError
            If some ask for parts of a GPU, and no choice says what to do with them; or jobs that ask for no
            GPU are to be kept, and the log does not tell of cores.
        """
        wrong = ~((gpus >= 0) & (gpus <= MAX_GANG))
        self.drop(wrong, f"{name} is not a number of GPUs")
        gpus, none = gpus[~wrong], gpus[~wrong] == 0
        if choices.cpu_jobs is CpuJobs.KEEP:
            if cores is None:
                raise InputError(
                    f"{self.path}: its format does not tell how many cores jobs without GPUs ask for; "
                    "cpu-jobs=keep cannot be chosen"
                )
            gpus = self._with_cores(gpus, none, cores())
        else:
            self.drop(none, "asks for no GPU")
            gpus = gpus[~none]
        part = gpus != np.floor(gpus)
        if part.any() and choices.fractions is None:
            raise InputError(
                f"{self.path}: {int(part.sum())} of {len(part)} jobs ask for parts of a GPU; "
                "choose fractions keep, drop or round-up"
            )
        if choices.fractions is Fractions.DROP:
            self.drop(part, "asks for part of a GPU")
            return np.asarray(gpus[~part], dtype=np.float64)
        if choices.fractions is Fractions.KEEP:
            milli = gpus * WHOLE_GPU
            finer = part & (gpus < 1) & (np.abs(milli - np.rint(milli)) > 1e-9 * milli)
            self.say("repaired", finer, "asks for less than a thousandth more, rounded up to one")
            gpus = np.where(gpus < 1, np.where(finer, np.ceil(milli), np.rint(milli)), milli)
            gpus = gpus / WHOLE_GPU
            part &= gpus > 1
            self.say("repaired", part, "asks for parts of several GPUs, rounded up to whole ones")
            return np.asarray(np.where(part, np.ceil(gpus), gpus), dtype=np.float64)
        self.say("repaired", part, "asks for part of a GPU, rounded up to whole ones")
        return np.asarray(np.ceil(gpus), dtype=np.float64)

    def _with_cores(self, gpus: Seconds, none: Mask, cores: Seconds) -> Seconds:
        """Gangs of the rows that stay, those without GPUs by their cores."""
        self.on_cores[self.rows[none]] = True
        unknown = none & ~((cores > 0) & (cores <= MAX_GANG))
        self.drop(unknown, "asks for no GPU, and for no number of cores")
        gpus, cores, none = gpus[~unknown], cores[~unknown], none[~unknown]
        part = none & (cores != np.floor(cores))
        self.say("repaired", part, "asks for part of a core, rounded up to whole ones")
        return np.where(none, np.ceil(cores), gpus)

    def keep_ended(self, state: NDArray[np.object_], completed: str, choices: LogReading) -> Mask:
        """Mask of the rows that stay, which the choice says; the others are dropped."""
        other = np.zeros(len(state), dtype=np.bool_)
        if choices.keep is Keep.COMPLETED:
            other = np.asarray(state != completed)
            self.drop(other, f"did not end as {completed}")
        return ~other

    def outcomes(self, state: NDArray[np.object_], ends: Mapping[str, str]) -> NDArray[np.object_]:
        """Outcomes of the rows that are left, by the log's words for them; others are listed in a note."""
        words = set(state.tolist())
        unknown = sorted(word for word in words if word not in ends)
        if unknown:
            told = ", ".join(map(shown, unknown[:8])) + (", ..." if len(unknown) > 8 else "")
            self.notes.append(f"states that are neither completed, failed nor cancelled: {told}")
        return np.array([ends.get(word, "") for word in state.tolist()], dtype=object)

    def without_states(self, choices: LogReading) -> None:
        """Refuse a choice of jobs that ended well where a log does not say how they ended.

        Raises
        ------
        InputError
            If there is such a choice.
        """
        if choices.keep is not Keep.ALL:
            raise InputError(f"{self.path}: does not say how jobs ended; keep all of them")

    def submitted(self, submit_s: Seconds) -> Mask:
        """Mask of the rows that stay: those whose time of submission is known."""
        known = np.isfinite(submit_s)
        self.drop(~known, "time of submission is missing")
        return np.asarray(known)

    def ran_s(self, start: Seconds, end: Seconds) -> tuple[Mask, Seconds]:
        """Rows that ran, and for how long [s]; the others are dropped.

        Parameters
        ----------
        start, end : ndarray
            Of the rows that are left [s]; NaN where a log has none.
        """
        ran = end - start
        left = np.ones(len(ran), dtype=np.bool_)
        for bad, why, action in (
            (np.isnan(start), "never started", "dropped"),
            (np.isnan(end), "still ran when the log ended", "censored"),
            (ran < 0, "ends before it starts", "dropped"),
            (ran < TICK_S, "ran for no time", "dropped"),
            (ran > MAX_TIME_S, "ran for longer than any time here", "dropped"),
        ):
            now = bad & left
            self.drop(now[left], why, action)
            left &= ~now
        return left, ran[left]


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


def known_or(values: Seconds, unknown: float) -> Seconds:
    """Numbers above 0, and this one in place of all others."""
    with np.errstate(invalid="ignore"):
        return np.where(values > 0, values, unknown)


def dates_s(
    values: NDArray[np.object_], form: str | None = None, zone: str | None = None
) -> Seconds:
    """Dates of a column as seconds since 1970; NaN for what is none.

    Parameters
    ----------
    form : str, optional
        As of ``strptime``; ISO 8601 if not given. Dates without a zone are taken as UTC.
    zone : str, optional
        Zone of dates without one; in the hour that a clock shows twice its second time is meant.
    """
    import pandas as pd

    ahead_s = 0.0
    if form is None and zone is None:
        values, ahead_s = _without_offset(values)
    given = pd.Series(values, dtype=object)
    dates = pd.to_datetime(given, errors="coerce", format=form or "ISO8601", utc=zone is None)
    if zone is not None:
        second = np.zeros(len(dates), dtype=np.bool_)
        local = dates.dt.tz_localize(zone, ambiguous=second, nonexistent="shift_forward")
        dates = local.dt.tz_convert("UTC")
    epoch = pd.Timestamp(0, tz="UTC")
    return np.asarray((dates - epoch).dt.total_seconds(), dtype=np.float64) - ahead_s


def _without_offset(values: NDArray[np.object_]) -> tuple[NDArray[np.object_], float]:
    """Dates without the offset that all of them bear, and how far that is ahead of UTC [s].

    Dates without one are read in a third of the time.
    """
    texts = values.tolist()
    if set(map(type, texts)) != {str}:
        return values, 0.0
    given = list(filter(None, texts))
    found = _OFFSET.fullmatch(given[0][19:]) if given else None
    if found is None or not _are_alike(given):
        return values, 0.0
    sign, hours, minutes = found.groups()
    ahead_s = int(f"{sign}1") * (int(hours) * 3600.0 + int(minutes) * 60.0)
    return np.array([text[:-6] for text in texts], dtype=object), ahead_s


def _are_alike(texts: list[str]) -> bool:
    """True if all are dates to the second with the offset of the first: columns of characters are compared."""
    joined = "".join(texts)
    if set(map(len, texts)) != {len("2026-01-31 12:00:00+00:00")} or not joined.isascii():
        return False
    rows = np.frombuffer(joined.encode("ascii"), dtype=np.uint8).reshape(len(texts), -1)
    digits = rows[:, [0, 1, 2, 3, 5, 6, 8, 9, 11, 12, 14, 15, 17, 18]]
    between = {place: ord(mark) for place, mark in ((4, "-"), (7, "-"), (13, ":"), (16, ":"))}
    return (
        bool(((digits >= ord("0")) & (digits <= ord("9"))).all())
        and all(bool((rows[:, place] == mark).all()) for place, mark in between.items())
        and set(np.unique(rows[:, 10]).tolist()) <= set(b" T")
        and bool((rows[:, 19:] == rows[0, 19:]).all())
    )


def replayed(
    log: JobLog,
    *,
    gpus: Seconds,
    submit_s: Seconds,
    start_s: Seconds,
    end_s: Seconds,
    columns: Mapping[str, NDArray[Any]],
    stated_s: Seconds | None = None,
    dated: bool = False,
) -> Imported:
    """The workload of those of the rows left that ran, submissions counted from the first of them.

    Parameters
    ----------
    gpus : ndarray
        GPUs of each job; below 1 the part of one that it holds.
    columns : mapping of str to ndarray
        Further columns of the workload by their names there: id, tenant, outcome, limit_s ...
    stated_s : ndarray, optional
        Column ``duration`` of the log [s]: reported where it is not the time between start and end.
    dated : bool
        Whether times are dates, in seconds since 1970.
    """
    known = log.submitted(submit_s)
    ran, ran_s = log.ran_s(start_s[known], end_s[known])
    if stated_s is not None:
        differs = np.abs(stated_s[known][ran] - ran_s) > 1.0
        log.say(
            "contradicted",
            differs,
            "column 'duration' is not end_time - start_time, which is used",
        )
    submit_s = submit_s[known][ran]
    rows = log.rows + log.first_row
    first = submit_s.min()
    report_order(submit_s, rows, log.report)
    given: dict[str, Any] = {name: column[known][ran] for name, column in columns.items()}
    held, on_cores = gpus[known][ran], log.on_cores[log.rows]
    if on_cores.any():
        types = given.get("allowed_types", np.full(len(held), "", dtype=object))
        given["allowed_types"] = np.where(on_cores, CORES, types)
        log.notes.append(
            f"{int(on_cores.sum())} jobs hold cores and no GPU: they run on nodes of type {CORES}"
        )
    workload = Workload.from_columns(
        **given,
        arrival_s=submit_s - first,
        gpus=np.ceil(held).astype(np.int64),
        gpu_milli=np.rint(np.minimum(held, 1.0) * WHOLE_GPU),
        work=ran_s,
        source=str(log.path),
        rows=rows,
    )
    if dated:
        date = np.datetime_as_string(np.datetime64(int(first), "s"))
        log.notes.append(
            f"time 0 is {str(date).replace('T', ' ')} by the clock that dates are taken by"
        )
    origin_s = float(first) if dated else None
    return Imported(workload, tuple(log.report), log.rows_read, tuple(log.notes), origin_s)
