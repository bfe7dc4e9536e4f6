"""Names in legends: wrapped where they are long, shortened in the middle where wrapping is not enough."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

CHARACTERS_PER_IN = 13.0
"""Of text of 8 pt, in the widest of the fonts of pages."""
_HANDLE_IN = 0.45
"""Width of a legend's sample of a line, with the space around it [in]."""
_LINE_IN = 0.17
"""Height of a line of a legend [in]."""
_MOST_LINES = 3
_PARTS = re.compile(r"[^\s:,;=/_.+-]*[\s:,;=/_.+-]?")


def wrapped(name: str, width: int) -> list[str]:
    """Lines of a name, broken after a separator where there is one and anywhere else where there is none.

    >>> wrapped("gavel:max_sum_throughput", 12)
    ['gavel:max_', 'sum_', 'throughput']
    >>> wrapped("verylongname", 5)
    ['veryl', 'ongna', 'me']
    """
    lines = [""]
    for part in _PARTS.findall(name):
        pieces = [part[at : at + width] for at in range(0, len(part), width)]
        for piece in pieces:
            if lines[-1] and len((lines[-1] + piece).rstrip()) > width:
                lines.append("")
            lines[-1] += piece
    return [line.strip() for line in lines]


def legend_labels(names: Sequence[str], width: int) -> list[str]:
    r"""Text for each name in lines of at most ``width`` characters, no two alike.

    A name that takes more than three lines loses those in the middle; names that would look the same then have a
    number.

    >>> legend_labels(["fifo", "gavel:max_sum_throughput"], 16)
    ['fifo', 'gavel:max_sum_\nthroughput']
    >>> legend_labels(["a" * 40 + "x" + "b" * 9, "a" * 40 + "y" + "b" * 9], 8)
    ['aaaaaaaa\n...\nbb (1)', 'aaaaaaaa\n...\nbb (2)']
    """
    shown = []
    for name in names:
        lines = wrapped(name, width)
        if len(lines) > _MOST_LINES:
            lines = [lines[0], "...", lines[-1]]
        shown.append("\n".join(lines))
    counts, seen = Counter(shown), Counter[str]()
    for place, text in enumerate(shown):
        if counts[text] > 1:
            seen[text] += 1
            shown[place] = f"{text} ({seen[text]})"
    return shown


def legend_below(
    figure: Figure, handles: Sequence[Any], names: Sequence[str], width_in: float
) -> None:
    """A legend below a picture whose columns fit in its width; the picture grows by what long names take.

    Parameters
    ----------
    width_in : float
        Width of the picture [in].
    """
    most = columns = max(2, int(width_in))
    longest = max(map(len, names), default=0)
    while columns > 1 and longest > _fits(width_in, columns):
        columns -= 1
    labels = legend_labels(names, _fits(width_in, columns))
    heights = [1 + label.count("\n") for label in labels]
    # A legend fills its columns one after the other.
    rows = -(-len(labels) // columns)
    lines = max(
        (sum(heights[at : at + rows]) for at in range(0, len(labels), rows or 1)), default=0
    )
    more = lines - -(-len(labels) // most)
    figure.set_figheight(figure.get_figheight() + _LINE_IN * more)
    figure.legend(handles, labels, loc="outside lower center", ncols=columns)


def _fits(width_in: float, columns: int) -> int:
    """Characters that a label in one of several columns has room for."""
    return max(6, int((width_in / columns - _HANDLE_IN) * CHARACTERS_PER_IN))
