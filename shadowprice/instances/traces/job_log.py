"""Rows of a log that are left, those left out with a reason each, and what is read of the rest.

A log says when jobs were submitted, started and ended, and how they ended. A job is replayed for
as long as it ran; what cannot be replayed is left out, and counted by reason. Nothing is guessed: where
a log can be read in two ways, :class:`~shadowprice.instances.traces.log_reading.LogReading` say which.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.columns import ColumnChecks
from shadowprice.instances.entries import shown
from shadowprice.instances.grid import MAX_TIME_S, TICK_S
from shadowprice.instances.traces import Finding
from shadowprice.instances.traces.clocks import LogClock, Seconds
from shadowprice.instances.traces.log_reading import CpuJobs, Fractions, Keep, LogReading
from shadowprice.instances.workload import MAX_GANG, WHOLE_GPU

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Tables:
    """Columns of a log, before any row is left out.

    Parameters
    ----------
    columns : mapping of str to ndarray
        Text columns by the file's names; messages show their values.
    computed : mapping of str to ndarray
        Further columns by names of ours, from tables or parts of a record that messages leave out.
    unused : tuple of str
        Columns of the file that are not read.
    """

    columns: Mapping[str, NDArray[np.object_]]
    computed: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    unused: tuple[str, ...] = ()


@dataclass
class JobLog:
    """Rows of a log that are left, and what has happened to the others.

    Parameters
    ----------
    path : Path
    tables : Tables
    choices : LogReading

    Attributes
    ----------
    rows : ndarray of int
        Positions of the rows that are left.
    gangs : ndarray of float
        GPUs, below 1 the part of one, or cores, of the rows of the whole log, once they are read.
    on_cores : ndarray of bool
        Rows of the whole log that are kept as jobs on cores.
    """

    path: Path
    tables: Tables
    choices: LogReading
    clock: LogClock | None
    report: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    rows: NDArray[np.int64] = field(init=False)
    gangs: NDArray[np.float64] = field(init=False)
    on_cores: Mask = field(init=False)

    def __post_init__(self) -> None:
        self.rows_read = len(next(iter(self.tables.columns.values())))
        self.rows = np.arange(self.rows_read)
        self.gangs = np.zeros(self.rows_read)
        self.on_cores = np.zeros(self.rows_read, dtype=np.bool_)

    def __contains__(self, name: str) -> bool:
        return name in self.tables.columns

    def text(self, name: str) -> NDArray[np.object_]:
        """Values of a column in the rows that are left."""
        return self.tables.columns[name][self.rows]

    def numbers(self, name: str) -> Seconds:
        """Numbers of a column, NaN for what is none."""
        return ColumnChecks.floats(self.text(name))

    def times(self, name: str) -> Seconds:
        """Times of a column by the clock of the log [s], NaN for what is none."""
        if self.clock is None:
            return self.numbers(name)
        return self.clock.seconds(self.text(name), self.choices.zone)

    def computed(self, name: str) -> NDArray[Any]:
        """Values of a computed column in the rows that are left."""
        return self.tables.computed[name][self.rows]

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
        values = ", ".join(str(column[row]) for column in self.tables.columns.values())
        example = f"row {row + 1}: {values[:160]}"
        self.report.append(Finding(action, int(which.sum()), what, example))

    def read_gangs(
        self, gpus: Seconds, name: str, cores: Callable[[JobLog], Seconds] | None
    ) -> None:
        """Gangs of the rows that stay; others are dropped, rounded up or kept as parts of a GPU as chosen.

        Parameters
        ----------
        name : str
            Column of the GPUs, for messages.
        cores : callable, optional
            Gives the cores that each row that is left asks for, if the log has them: the gang of those that
            ask for no GPU, where these are to be kept.

        Raises
        ------
        InputError
            If some ask for parts of a GPU, and no choice says what to do with them; or jobs that ask for no
            GPU are to be kept, and the log does not tell of cores.
        """
        wrong = ~((gpus >= 0) & (gpus <= MAX_GANG))
        self.drop(wrong, f"{name} is not a number of GPUs")
        gpus, none = gpus[~wrong], gpus[~wrong] == 0
        if self.choices.cpu_jobs is CpuJobs.KEEP:
            if cores is None:
                raise InputError(
                    f"{self.path}: its format does not tell how many cores jobs without GPUs ask for; "
                    "cpu-jobs=keep cannot be chosen"
                )
            gpus = self._with_cores(gpus, none, cores(self))
        else:
            self.drop(none, "asks for no GPU")
            gpus = gpus[~none]
        self.gangs[self.rows] = gpus
        self._read_parts()

    def _read_parts(self) -> None:
        """Parts of GPUs as chosen."""
        gpus, chosen = self.gangs[self.rows], self.choices.fractions
        part = gpus != np.floor(gpus)
        if part.any() and chosen is None:
            raise InputError(
                f"{self.path}: {int(part.sum())} of {len(part)} jobs ask for parts of a GPU; "
                "choose fractions keep, drop or round-up"
            )
        if chosen is Fractions.DROP:
            self.drop(part, "asks for part of a GPU")
            return
        if chosen is Fractions.KEEP:
            milli = gpus * WHOLE_GPU
            finer = part & (gpus < 1) & (np.abs(milli - np.rint(milli)) > 1e-9 * milli)
            self.say("repaired", finer, "asks for less than a thousandth more, rounded up to one")
            gpus = np.where(gpus < 1, np.where(finer, np.ceil(milli), np.rint(milli)), milli)
            gpus = gpus / WHOLE_GPU
            part &= gpus > 1
            self.say("repaired", part, "asks for parts of several GPUs, rounded up to whole ones")
            self.gangs[self.rows] = np.where(part, np.ceil(gpus), gpus)
            return
        self.say("repaired", part, "asks for part of a GPU, rounded up to whole ones")
        self.gangs[self.rows] = np.ceil(gpus)

    def _with_cores(self, gpus: Seconds, none: Mask, cores: Seconds) -> Seconds:
        """Gangs of the rows that stay, those without GPUs by their cores."""
        self.on_cores[self.rows[none]] = True
        unknown = none & ~((cores > 0) & (cores <= MAX_GANG))
        self.drop(unknown, "asks for no GPU, and for no number of cores")
        gpus, cores, none = gpus[~unknown], cores[~unknown], none[~unknown]
        part = none & (cores != np.floor(cores))
        self.say("repaired", part, "asks for part of a core, rounded up to whole ones")
        return np.where(none, np.ceil(cores), gpus)

    def keep_completed(self, state: NDArray[np.object_], completed: tuple[str, ...]) -> None:
        """Drop jobs that did not end well, where the choice says so."""
        if self.choices.keep is Keep.COMPLETED:
            self.drop(~np.isin(state, completed), f"did not end as {completed[0]}")

    def note_states(self, state: NDArray[np.object_], ends: Mapping[str, str]) -> None:
        """Note words of a log that are no outcomes."""
        unknown = sorted(set(state.tolist()).difference(ends))
        if unknown:
            words = ", ".join(map(shown, unknown[:8])) + (", ..." if len(unknown) > 8 else "")
            self.notes.append(f"states that are neither completed, failed nor cancelled: {words}")

    def read_submitted(self, submit_s: Seconds) -> Seconds:
        """Times of submission of the rows that stay; those without one are dropped."""
        known = np.isfinite(submit_s)
        self.drop(~known, "time of submission is missing")
        return np.asarray(submit_s[known])

    def read_runs(self, start: Seconds, end: Seconds) -> tuple[Mask, Seconds]:
        """Mask of the rows that ran, and for how long [s]; the others are dropped.

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
