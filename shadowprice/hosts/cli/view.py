"""Terminal view of a real run: nodes and who holds them, jobs and why they wait, events."""

from __future__ import annotations

import math
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from shadowprice.errors import InputError, ShadowpriceError
from shadowprice.hosts.protocol import DiscoveredNode
from shadowprice.hosts.reports.jobs import JobRow, counts, job_rows
from shadowprice.hosts.reports.run import RunReader
from shadowprice.hosts.reports.status import event_words
from shadowprice.hosts.reports.timeline import Hold, Row
from shadowprice.instances.entries import printable

_MIDDLE, _NARROW = 110, 76
"""Widths [characters] below which columns that can be missed are left out."""

_OTHER_LINES = 10
"""Lines of the view beside those of nodes, jobs and events."""

_STYLES = {
    "running": "green",
    "waiting": "yellow",
    "backing-off": "yellow",
    "finished": "dim",
    "failed": "red",
    "cancelled": "dim",
}
_DRIVERS = {
    "running": "the driver runs",
    "ended": "the run is over",
    "stopped": "no driver runs here; the same `shadowprice execute` goes on with it",
}


def view(run: RunReader, width: int, *, height: int | None = None, events: int = 5) -> Group:
    """The whole view, for a terminal of so many columns, and lines if it must not be longer."""
    rows = job_rows(run)
    room = None
    if height is not None:
        room = max(height - len(run.nodes) - events - _OTHER_LINES, 3)
    lines = [event_line(run, event) for event in list(run.last_events)[-events:]]
    blank = Text("")
    return Group(
        header(run, rows),
        blank,
        nodes_table(run, width),
        blank,
        jobs_table(rows, width, room),
        blank,
        *lines,
    )


def header(run: RunReader, rows: list[JobRow]) -> Text:
    """Policy, hosts, the round and when the next begins, jobs by state."""
    facts, driver, now_s = run.facts, run.driver, run.now_s
    round_s = float(facts["round_s"] or 0.0)
    text = Text(no_wrap=False)
    text.append(printable(f"{facts['policy']} on {facts['hosts']}"), style="bold")
    text.append(f"  {clock(now_s)}")
    if (began := run.date(0.0)) is not None:
        text.append(f" since {began:%Y-%m-%d %H:%M:%S}", style="dim")
    if round_s > 0 and driver == "running":
        text.append(
            f"  round {int(now_s // round_s)}, next in {round_s - now_s % round_s:.0f} of {round_s:g} s"
        )
    states = ", ".join(f"{number} {state}" for state, number in counts(rows).items())
    text.append(f"\n{states or 'no jobs'}  ")
    text.append(_DRIVERS[driver], style="yellow" if driver == "stopped" else "dim")
    if run.waits:
        text.append(f"\n{printable(run.waits)}", style="yellow")
    return text


def nodes_table(run: RunReader, width: int) -> Table:
    """A line a node: each device and who holds it."""
    holders = run.timeline.holders()
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("node", no_wrap=True)
    if width >= _NARROW:
        table.add_column("type", no_wrap=True)
    table.add_column("devices")
    for node in run.nodes:
        cells: list[RenderableType] = [_name(node.name)]
        if width >= _NARROW:
            cells.append(_name(node.gpu_type))
        table.add_row(*cells, _devices(run, node, holders))
    return table


def _devices(run: RunReader, node: DiscoveredNode, holders: dict[str, list[Hold]]) -> Text:
    text = Text()
    if node.name in run.timeline.lost_nodes:
        text.append("does not answer  ", style="red")
    for device in node.devices:
        held = " + ".join(printable(hold.job) for hold in holders.get(device.uuid, []))
        text.append(f"{device.index}:", style="dim")
        if device.uuid in run.timeline.quarantined:
            text.append(f"quarantined ({held})" if held else "quarantined", style="red")
        else:
            nobody = "-" if node.name in run.timeline.lost_nodes else "free"
            text.append(held or nobody, style="green" if held else "dim")
        text.append("  ")
    return text


def jobs_table(rows: list[JobRow], width: int, room: int | None = None) -> Table:
    """A line a job; of more than there is room for, those that are over are left out first."""
    shown = rows if room is None or len(rows) <= room else _most_telling(rows, room)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    if len(shown) < len(rows):
        table.caption = f"and {len(rows) - len(shown)} more; `shadowprice status` lists all"
        table.caption_justify = "left"
    for name, least in _COLUMNS:
        if width >= least:
            number = name in ("tries", "it/s", "of predicted")
            table.add_column(
                name,
                justify="right" if number else "left",
                no_wrap=room is not None or name not in ("GPUs", "why"),
                overflow="ellipsis",
                ratio=1 if name == "why" else None,
            )
    table.expand = True
    for row in shown:
        cells = _cells(row)
        table.add_row(*(cells[name] for name, least in _COLUMNS if width >= least))
    return table


_COLUMNS = (
    ("job", 0),
    ("state", 0),
    ("progress", _NARROW),
    ("steps", 60),
    ("GPUs", 0),
    ("shares with", _MIDDLE),
    ("it/s", _NARROW),
    ("of predicted", _MIDDLE),
    ("tries", _MIDDLE),
    ("why", 0),
)
"""Columns of jobs, and the width of the terminal from which each is shown."""


def _cells(row: JobRow) -> dict[str, RenderableType]:
    rate = "" if row.measured is None else f"{row.measured:.3g}"
    part = ""
    if row.measured is not None and row.predicted:
        part = f"{100 * row.measured / row.predicted:.0f} %"
    return {
        "job": _name(row.name),
        "state": Text(row.state, style=_STYLES.get(row.state, "")),
        "progress": ProgressBar(
            1.0, row.done, width=12, complete_style="cyan", finished_style="green"
        ),
        "steps": Text(f"{row.step:,}/{row.iterations:,}"),
        "GPUs": Text(" ".join(map(printable, row.devices)) or f"({row.gpus})"),
        "shares with": Text(", ".join(map(printable, row.shares_with))),
        "it/s": Text(rate),
        "of predicted": Text(part),
        "tries": Text(str(row.tries) if row.tries else ""),
        "why": Text(printable(row.why if row.devices else row.because)[:300]),
    }


def _most_telling(rows: list[JobRow], room: int) -> list[JobRow]:
    order = {"running": 0, "backing-off": 1, "failed": 1, "waiting": 2, "expected": 3}
    chosen = sorted(range(len(rows)), key=lambda k: (order.get(rows[k].state, 4), k))[:room]
    return [rows[k] for k in sorted(chosen)]


def event_line(run: RunReader, event: Row) -> Text:
    """One event with its time, on one line."""
    text = Text(no_wrap=True, overflow="ellipsis")
    time_s = float(event["time_s"])
    date = run.date(time_s)
    day = "" if date is None else f" {date:%H:%M:%S}"
    text.append(f"{clock(time_s):>9}{day}  ", style="dim")
    text.append(event_words(run, event))
    return text


def clock(seconds: float) -> str:
    """Hours, minutes and seconds.

    >>> clock(3725.4)
    '1:02:05'
    """
    whole = int(max(seconds, 0.0))
    return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"


def _name(text: str) -> Text:
    return Text(printable(text), no_wrap=True, overflow="ellipsis")


# A view of a real run that follows it; beside the driver in a thread of its own: the run never waits for it.


REFRESH_S = 0.25
"""Between two looks at the ledger [s]."""

REDRAW_S = 1.0
"""Drawn at least so often [s], and at every event: the view shares its processor with the driver."""


class Following:
    """Shows a run in a thread while it is entered.

    Parameters
    ----------
    directory : Path
        State directory; the ledger may come later.
    console : Console
        Where to show it.
    """

    def __init__(self, directory: Path, console: Console) -> None:
        self._directory, self._console = directory, console
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

    def _run(self) -> None:
        try:
            run = self._opened()
            if run is not None:
                with run:
                    follow(run, self._console, self._done)
        except (ShadowpriceError, OSError) as error:
            # The view is not the run: it ends, the run goes on and the caller may say why.
            self.error = error if isinstance(error, ShadowpriceError) else ShadowpriceError(error)

    def _opened(self) -> RunReader | None:
        """The run, once its driver has made the ledger; None if nobody wants to see it any more."""
        while True:
            with suppress(InputError):
                run = RunReader(self._directory)
                if run.facts["ready"]:
                    return run
                run.close()
            if self._done.wait(REFRESH_S):
                return None


def follow(run: RunReader, console: Console, done: threading.Event | None = None) -> None:
    """Show a run as it goes on: a table in a terminal, a line an event elsewhere.

    Parameters
    ----------
    done : Event, optional
        Ends it; if not given, it ends with the run, or when its driver stops.
    """
    wait = time.sleep if done is None else done.wait

    def is_over() -> bool:
        return run.driver != "running" if done is None else done.is_set()

    if not console.is_terminal:
        events = _of_this_driver(run)
        while True:
            over = is_over()
            for event in (*events, *run.refresh()):
                console.print(event_line(run, event), soft_wrap=True)
            if over:
                return
            events = []
            wait(REFRESH_S)
    with Live(console=console, auto_refresh=False, transient=False) as live:
        drawn_s = -math.inf
        while True:
            over = is_over()
            if run.refresh() or time.monotonic() - drawn_s >= REDRAW_S:
                size = console.size
                live.update(view(run, size.width, height=size.height), refresh=True)
                drawn_s = time.monotonic()
            if over:
                break
            wait(REFRESH_S)
        run.refresh()
        live.update(view(run, console.size.width), refresh=True)


def _of_this_driver(run: RunReader) -> list[Row]:
    """The last events, from where the driver that runs now began."""
    events = list(run.last_events)
    starts = [k for k, event in enumerate(events) if event["kind"] == "driver-started"]
    return events[starts[-1] :] if starts else events
