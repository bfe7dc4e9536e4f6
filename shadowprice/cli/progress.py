"""Progress of commands on stderr: a bar on a terminal, a line now and then elsewhere; and Ctrl-C."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn

from shadowprice.cli.show import note, stderr

FIRST_LINE_S = 2.0
"""Time after which a command that writes to no terminal says how far it is [s]."""

_LATER_LINES_S = (8.0, 20.0, 30.0)
"""Time between further lines [s]; the last one goes on."""

_REFRESH_S = 0.25

INTERRUPTED = 130
"""Exit code of a command that Ctrl-C stopped, as shells have it."""


class StepProgress:
    """Step that a command is at, how much of it is done, and whether it is to stop.

    It is what the library calls with the name of each step, and a :class:`shadowprice.execution.watch.Watch`.

    Parameters
    ----------
    stoppable : bool
        Whether Ctrl-C asks for what is done to be kept, once, in a step that looks whether it is to stop;
        else it ends the command at once.

    Attributes
    ----------
    asked_to_stop : bool
        Whether the user has asked for that.
    watched : bool
        Whether the present step looks.
    """

    def __init__(self, stoppable: bool) -> None:
        self.stoppable = stoppable
        self.asked_to_stop = False
        self.watched = False
        self._step, self._done, self._total = "", 0, 0
        self._began = time.monotonic()

    def __call__(self, step: str) -> None:
        """Take note of what is done next."""
        self._done = self._total = 0
        self.watched = False
        self._step, self._began = step, time.monotonic()

    def begins(self, step: str) -> None:
        """Take note of what is done next."""
        self(step)

    def retitle(self, step: str) -> None:
        """Say otherwise what the present step is, which goes on."""
        self._step = step

    def reaches(self, done: int, total: int) -> None:
        """Take note of how much of a step is done that cannot be stopped."""
        self._done, self._total = done, total

    def stops(self, done: int, total: int) -> bool:
        """Take note of how much of the step is done; True if the user wants it stopped."""
        self._done, self._total, self.watched = done, total, True
        return self.asked_to_stop

    @property
    def step(self) -> str:
        """Name of what is being done."""
        return self._step

    @property
    def share(self) -> tuple[int, int]:
        """Amount of it that is done, and all of it; 0 of 0 where nobody knows."""
        return self._done, self._total

    def summary(self) -> str:
        """Share, time so far and time left, as far as they are known."""
        spent_s = time.monotonic() - self._began
        done, total = self.share
        if not total:
            return f"{in_words(spent_s)} so far"
        text = f"{done / total:4.0%}, {in_words(spent_s)} so far"
        if 0 < done < total and spent_s >= 1.0:
            text += f", about {in_words(spent_s * (total - done) / done)} left"
        return text


def in_words(time_s: float) -> str:
    """A length of time as people say it.

    >>> in_words(7.2), in_words(190), in_words(8000)
    ('7 s', '3 min 10 s', '2 h 13 min')
    """
    whole = round(time_s)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


@contextmanager
def progress_line(*, stoppable: bool = False) -> Iterator[StepProgress]:
    """Say on stderr what is being done, how far it is and how long it takes; stdout stays clean.

    On a terminal that is a bar, gone when all is done; elsewhere a line after two seconds and every half
    minute or so.

    Parameters
    ----------
    stoppable : bool
        As of :class:`StepProgress`; the second Ctrl-C ends the command in any case.
    """
    state = StepProgress(stoppable)
    over = threading.Event()
    shown = _bar if stderr.is_terminal else _lines
    thread = threading.Thread(target=shown, args=(state, over, stderr), daemon=True)
    thread.start()
    try:
        with _interrupts(state):
            yield state
    except KeyboardInterrupt:
        note(f"stopped by Ctrl-C: {state.step or 'nothing had begun'}; nothing of it is kept")
        raise
    finally:
        over.set()
        thread.join()


def _bar(state: StepProgress, over: threading.Event, console: Console) -> None:
    """Show a bar until all is over."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[summary]}", markup=False),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=None, summary="")
        while not over.wait(_REFRESH_S):
            _refresh(progress, task, state)


def _refresh(progress: Progress, task: TaskID, state: StepProgress) -> None:
    done, total = state.share
    fields: dict[str, Any] = {"total": total or None, "completed": done, "summary": state.summary()}
    progress.update(task, description=state.step, **fields)


def _lines(state: StepProgress, over: threading.Event, console: Console) -> None:
    """Print a line now and then until all is over."""
    pauses = iter((FIRST_LINE_S, *_LATER_LINES_S))
    pause_s = next(pauses)
    while not over.wait(pause_s):
        pause_s = next(pauses, pause_s)
        if state.step:
            text = f"{state.step}: {state.summary()}"
            console.print(text, markup=False, highlight=False, soft_wrap=True)


@contextmanager
def _interrupts(state: StepProgress) -> Iterator[None]:
    """Take the first Ctrl-C as the wish to stop, the second one as always."""
    main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT)
    if not (state.stoppable and main and before is signal.default_int_handler):
        yield
        return

    def ask(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if not state.watched:
            raise KeyboardInterrupt
        state.asked_to_stop = True
        note("stopping, and keeping what is done; Ctrl-C again gives it up")

    signal.signal(signal.SIGINT, ask)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
