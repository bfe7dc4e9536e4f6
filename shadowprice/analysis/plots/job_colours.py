"""Colours of jobs in pictures of schedules: each its own while there are few, else by what they have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.patches import Patch

from shadowprice.analysis.plots.style import COLOURS, GREY, colour_of
from shadowprice.errors import InputError
from shadowprice.instances.workload import Workload

_WORDS = {"gang": "gang [GPUs]", "tenant": "tenant", "job_class": "class", "model": "model"}
COLOURED_BY = ("job", *_WORDS)
"""What a colour may stand for."""

_MOST_GANGS = 7
"""Gang sizes that have a colour of their own; more of them are put together by powers of two."""


@dataclass(frozen=True)
class JobColours:
    """A colour for each job, and what it stands for.

    Parameters
    ----------
    of : tuple of str
        Colour of each job, in the order of the workload.
    stands_for : str
        What jobs of one colour have in common; empty if each job has a colour of its own.
    meaning : tuple of (str, str)
        Each value and its colour, as a legend shows them; empty if each job has a colour of its own.
    """

    of: tuple[str, ...]
    stands_for: str = ""
    meaning: tuple[tuple[str, str], ...] = ()

    def add_legend(self, axes: Axes) -> None:
        """Put what the colours stand for to the right of the axes, if they stand for anything."""
        if self.meaning:
            axes.legend(
                handles=[Patch(color=colour, label=label) for label, colour in self.meaning],
                title=self.stands_for,
                loc="upper left",
                bbox_to_anchor=(1.0, 1.0),
                frameon=False,
                fontsize=8,
                title_fontsize=8,
            )


def colours_of_jobs(workload: Workload, by: str | None = None) -> JobColours:
    """Colours of the jobs of a workload; O(n).

    Parameters
    ----------
    by : str, optional
        One of ``COLOURED_BY``. If not given, each job has its own colour where there are eight or fewer, and else
        that of its gang size.

    Raises
    ------
    InputError
        If it is none of these.
    """
    if by is None:
        return colours_of_few_or_gangs(workload.gpus.tolist())
    if by not in COLOURED_BY:
        raise InputError(f"colours of jobs by {by!r}: expected one of {', '.join(COLOURED_BY)}")
    if by == "job":
        return JobColours(tuple(colour_of(k) for k in range(len(workload))))
    if by == "gang":
        return colours_of_gangs(workload.gpus.tolist())
    values = {"tenant": workload.tenant, "job_class": workload.job_class, "model": workload.model}
    return _of_words([str(value) for value in values[by].tolist()], _WORDS[by])


def colours_of_few_or_gangs(gpus: Sequence[int]) -> JobColours:
    """A colour for each of eight jobs or fewer; by gang size where there are more."""
    if len(gpus) > len(COLOURS):
        return colours_of_gangs(gpus)
    return JobColours(COLOURS[: len(gpus)])


def colours_of_gangs(gpus: Sequence[int]) -> JobColours:
    """Colours by gang size, from light to dark as gangs grow; grey print keeps their order."""
    sizes = sorted(set(gpus))
    if len(sizes) > _MOST_GANGS:
        edges = [0, *(2**k for k in range(max(sizes).bit_length() + 1))]
        spans = [(low + 1, high) for low, high in pairwise(edges)]
    else:
        spans = [(size, size) for size in sizes]
    spans = [span for span in spans if any(span[0] <= size <= span[1] for size in sizes)]
    shades = [
        to_hex(colormaps["viridis"](0.95 - 0.75 * k / max(len(spans) - 1, 1)))
        for k in range(len(spans))
    ]
    shade_of = {
        size: shade
        for size in sizes
        for (low, high), shade in zip(spans, shades, strict=True)
        if low <= size <= high
    }
    labels = [str(low) if low == high else f"{low} to {high}" for low, high in spans]
    return JobColours(
        tuple(shade_of[size] for size in gpus),
        _WORDS["gang"],
        tuple(zip(labels, shades, strict=True)),
    )


def _of_words(values: Sequence[str], stands_for: str) -> JobColours:
    """Colours of the most frequent words; the others are grey."""
    common = sorted(Counter(values).items(), key=lambda item: (-item[1], item[0]))
    named = {word: colour for (word, _), colour in zip(common, COLOURS, strict=False)}
    meaning = [(word or "none", colour) for word, colour in named.items()]
    if len(common) > len(named):
        meaning.append((f"{len(common) - len(named):,} others", GREY))
    return JobColours(tuple(named.get(value, GREY) for value in values), stands_for, tuple(meaning))
