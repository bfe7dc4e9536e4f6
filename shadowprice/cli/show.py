"""Output of the commands: results to stdout, everything else to stderr."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from rich.console import Console, ConsoleDimensions, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from shadowprice.analysis.wording import cost_cells, utility_cells
from shadowprice.cli.captions import assumptions, assumptions_by_policy, duration, screenful
from shadowprice.cli.outputs import with_origin
from shadowprice.cli.results import ResultForm, entries, print_result

if TYPE_CHECKING:
    from shadowprice.analysis.bound_history import BoundHistory
    from shadowprice.analysis.compare import Comparison
    from shadowprice.analysis.outcome import VerifiedRun
    from shadowprice.analysis.utility.compare import UtilityComparison

Row = TypeVar("Row")

_WIDEST = 10_000
"""Characters of a line in a file or a pipe."""


class OutputConsole(Console):
    """Console whose tables are plain, and as wide as they are, where its output is no terminal.

    Unless COLUMNS says how wide it is; a terminal's own width counts in one.
    """

    @property
    def unbounded(self) -> bool:
        """True where lines are as long as they are."""
        return not self.is_terminal and "COLUMNS" not in os.environ

    @property
    def size(self) -> ConsoleDimensions:
        """Width and height in characters."""
        screen = super().size
        return ConsoleDimensions(_WIDEST, screen.height) if self.unbounded else screen

    @size.setter
    def size(self, new_size: tuple[int, int]) -> None:
        """Width and height from now on, of a terminal."""
        self.width, self.height = new_size

    def print(self, *objects: Any, **options: Any) -> None:
        """Print as any console does; tables without lines where lines are as long as they are."""
        for each in objects:
            if self.unbounded and isinstance(each, Table):
                each.box, each.title_justify, each.pad_edge = None, "left", False
        super().print(*objects, **options)


# What looks like the code of an emoji, such as ray:x:1, is a name or an address here.
console = OutputConsole(emoji=False)
stderr = Console(stderr=True, emoji=False)


def print_lines(*lines: str, broken: bool = False) -> None:
    """Print lines on stdout as they are; each in one piece, or broken where a screen ends."""
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=not broken)


def note(text: str) -> None:
    """Print a line on stderr that a user should not miss."""
    stderr.print(text, style="yellow", markup=False, highlight=False, soft_wrap=True)


def tell_bounds(
    histories: Iterable[BoundHistory], warned_of: Iterable[str | None], *, explain: bool
) -> None:
    """Print on stderr warnings about bounds, and if somebody wants to know how far they converged."""
    for history in histories if explain else ():
        for line in history.sentences():
            stderr.print(f"bound {line}", markup=False, highlight=False, soft_wrap=True)
    for warning in warned_of:
        if warning is not None:
            note(warning)


def table_of(heads: Iterable[str], numbers: Iterable[int] = (), **options: Any) -> Table:
    """A table without rows, by the heads of its columns and the places of those that have numbers."""
    table = Table(*map(escape, heads), **options)
    for place in numbers:
        table.columns[place].justify = "right"
    return table


def print_rows(
    heads: Iterable[str],
    rows: Iterable[Iterable[object]],
    numbers: Iterable[int] = (),
    **options: Any,
) -> None:
    """Print a table of cells as they are."""
    table = table_of(heads, numbers, **options)
    for row in rows:
        table.add_row(*(Text(str(cell)) for cell in row))
    console.print(table)


def print_table(
    table: Table, rows: Sequence[Row], cells: Callable[[Row], Iterable[RenderableType]]
) -> None:
    """Print a table of as many rows as the screen shows, and how many more there are.

    Parameters
    ----------
    table : Table
        With columns and no rows.
    cells : callable
        Cells of a row.
    """
    few, more = screenful(rows, console)
    for row in few:
        table.add_row(*cells(row))
    console.print(table)
    if more is not None:
        console.print(more, highlight=False)


def print_summary(outcome: VerifiedRun, form: ResultForm, explain: bool = False) -> None:
    """Print the metrics of an outcome; of a partial run also what is missing.

    Parameters
    ----------
    explain : bool
        Whether to say below the table what each of its metrics is.
    """
    missing = outcome.missing()
    if missing is not None:
        note(missing)
    summary = outcome.summary()
    print_result(
        form,
        lambda: _show_summary(outcome, summary, explain),
        lambda: with_origin(summary),
        lambda: entries(summary, "metric"),
    )


def _show_summary(outcome: VerifiedRun, summary: Mapping[str, object], explain: bool) -> None:
    from shadowprice.analysis.run_metrics import METRICS, REPEATS

    partial = outcome.missing() is not None
    title = f"{summary['policy']}, verified{', a partial run' if partial else ''}"
    rows = {key: value for key, value in summary.items() if value is not None or not partial}
    cells = {
        key: f"{value:,.3f}" if isinstance(value, float) else str(value)
        for key, value in rows.items()
    }
    printed = [key for key in cells if key not in REPEATS or cells[key] != cells.get(REPEATS[key])]
    lengths = {
        key: duration(value)
        for key, value in rows.items()
        if isinstance(value, float) and key.endswith("_s")
    }
    heads = ("metric", "value", "about")
    print_rows(heads, ((key, cells[key], lengths.get(key, "")) for key in printed), title=title)
    print_lines(*(f"{key}: {METRICS[key]}" for key in printed if explain))
    print_lines(*filter(None, [assumptions(outcome.settings)]))


def print_comparison(result: Comparison, form: ResultForm) -> None:
    """Print a comparison: a table, and in words what its ratios are to, once for all that have it in common."""
    print_result(
        form,
        lambda: _show_comparison(result),
        lambda: with_origin(result.to_dict()),
        lambda: [row.to_dict() for row in result.rows],
    )


def _show_comparison(result: Comparison) -> None:
    from shadowprice.instances.grid import TICKS_PER_S

    numbers = [
        (row.cost_ticks / TICKS_PER_S, row.proven_by.ticks / TICKS_PER_S) for row in result.rows
    ]
    sentences: dict[str, list[str]] = {}
    rows = []
    for row, (cost, bound, ratio) in zip(result.rows, cost_cells(numbers), strict=True):
        rows.append((row.policy, cost, ratio, row.bound_kind))
        sentences.setdefault(row.optimum_in_words(bound), []).append(row.policy)
    heads = ("policy", "cost [s]", "ratio at most", "bound kind")
    print_rows(heads, rows, (1, 2), title=str(result.objective))
    _say_assumptions(result)
    for optimum, policies in sentences.items():
        print_lines(optimum if len(sentences) == 1 else f"{', '.join(policies)}: {optimum}")


def _say_assumptions(result: Comparison | UtilityComparison) -> None:
    """Below a table, what its numbers are about."""
    by_policy = {name: each.settings for name, each in result.outcomes.items()}
    print_lines(*filter(None, [assumptions_by_policy(by_policy)]))


def print_utilities(result: UtilityComparison, form: ResultForm) -> None:
    """Print total utilities: a table, and the result in words."""
    print_result(
        form,
        lambda: _show_utilities(result),
        lambda: with_origin(result.to_dict()),
        result.row_entries,
    )


def _show_utilities(result: UtilityComparison) -> None:
    title = f"utility {result.utility}, rounds of {result.round_s:g} s"
    columns = ("policy", "utility", "bound", "bound kind", "ratio at most", "certified")
    cells = utility_cells([(row.utility, row.bound, row.ratio) for row in result.rows])
    rows = (
        (row.policy, *numbers, row.bound_kind, ratio, "yes" if row.certified else "no")
        for row, (*numbers, ratio) in zip(result.rows, cells, strict=True)
    )
    print_rows(columns, rows, (1, 2, 4), title=title)
    _say_assumptions(result)
    print_lines(*result.sentences())


@contextmanager
def printed_warnings(category: type[Warning]) -> Iterator[None]:
    """Print warnings of a category on stderr, a line each, as notes are."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", category)
        yield
    for each in caught:
        if issubclass(each.category, category):
            note(str(each.message))
        else:
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
