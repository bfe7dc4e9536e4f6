"""A view of a real run that follows it, in a thread of its own: the run never waits for it."""

from __future__ import annotations

import math
import threading
import time
from pathlib import Path
from types import TracebackType

from rich.console import Console
from rich.live import Live

from shadowprice.analysis.real_runs.run import RunReader
from shadowprice.analysis.real_runs.timeline import Row
from shadowprice.cli.real.view import event_line, view
from shadowprice.errors import InputError, ShadowpriceError

REFRESH_S = 0.25
"""Between two looks at the ledger [s]."""

REDRAW_S = 1.0
"""Drawn at least so often [s], and at every event: the view shares its processor with the driver."""


class Following:
    """Shows a run while it is entered; a table in a terminal, a line an event elsewhere.

    Parameters
    ----------
    directory : Path
        State directory; the ledger may come later.
    console : Console
        Where to show it.
    until_over : bool
        Whether to end by itself when the driver does; see :meth:`wait`.
    """

    def __init__(self, directory: Path, console: Console, *, until_over: bool = False) -> None:
        self._directory = directory
        self._console = console
        self._until_over = until_over
        self._done = threading.Event()
        # SQLite's connections stay in the thread that opened them: the reader lives in this one.
        self._thread = threading.Thread(target=self._run, name="view", daemon=True)
        self.error: ShadowpriceError | None = None

    def __enter__(self) -> Following:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self._done.set()
        self._thread.join(timeout=5.0)

    def wait(self) -> None:
        """Until the run is over or its driver stopped, or the view failed."""
        while self._thread.is_alive():
            self._thread.join(timeout=0.2)

    def _run(self) -> None:
        try:
            run = self._opened()
            if run is None:
                return
            with run:
                if self._console.is_terminal:
                    self._show(run)
                else:
                    self._tell(run)
        except (ShadowpriceError, OSError) as error:
            # The view is not the run: it ends, the run goes on and the caller may say why.
            self.error = error if isinstance(error, ShadowpriceError) else ShadowpriceError(error)

    def _opened(self) -> RunReader | None:
        """The run, once its driver has made the ledger; None if nobody wants to see it any more."""
        while True:
            try:
                run = RunReader(self._directory)
                if run.facts["ready"] or self._until_over:
                    return run
                run.close()
            except InputError:
                if self._until_over:
                    raise
            if self._done.wait(REFRESH_S):
                return None

    def _show(self, run: RunReader) -> None:
        with Live(console=self._console, auto_refresh=False, transient=False) as live:
            drawn_s = -math.inf
            while True:
                over = self._over(run)
                news = run.refresh()
                if news or time.monotonic() - drawn_s >= REDRAW_S:
                    size = self._console.size
                    live.update(view(run, size.width, height=size.height), refresh=True)
                    drawn_s = time.monotonic()
                if over or self._done.wait(REFRESH_S):
                    break
            run.refresh()
            live.update(view(run, self._console.size.width), refresh=True)

    def _tell(self, run: RunReader) -> None:
        for event in _of_this_driver(run):
            self._console.print(event_line(run, event), soft_wrap=True)
        while True:
            over = self._over(run) or self._done.wait(REFRESH_S)
            for event in run.refresh():
                self._console.print(event_line(run, event), soft_wrap=True)
            if over:
                return

    def _over(self, run: RunReader) -> bool:
        return self._until_over and run.driver != "running"


def _of_this_driver(run: RunReader) -> list[Row]:
    """The last events, from where the driver that runs now began."""
    events = list(run.last_events)
    starts = [k for k, event in enumerate(events) if event["kind"] == "driver-started"]
    return events[starts[-1] :] if starts else events
