"""A figure: settings of several sizes, independent points, a picture, a caption, published numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from shadowprice.brief import Brief

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure as Picture

    from shadowprice.analysis.figures.page import Page
    from shadowprice.analysis.figures.published import Published

Row = dict[str, str | int | float | bool]
"""A row of a figure's table."""


class Size(StrEnum):
    """Size of a run."""

    QUICK = "quick"
    """To see that it works: seconds; nothing is compared with what was published."""

    DEFAULT = "default"
    """The setting of the paper with few seeds; its table is kept in the repository."""

    FULL = "full"
    """Everything."""


@dataclass(frozen=True, repr=False)
class Sized(Brief):
    """Settings of one size.

    Parameters
    ----------
    settings : dataclass instance
        Fields of plain types, enumerations, paths or tuples of these; each is an option of the command.
    minutes : float
        CPU time that all points took when they were measured [min].
    """

    settings: Any
    minutes: float


@dataclass(frozen=True, repr=False)
class Figure(Brief):
    """A figure of a paper.

    Parameters
    ----------
    name : str
        Stem of its file.
    paper : str
        What it shows again: paper, figure or table.
    sizes : mapping of Size to Sized
        At least ``quick`` and ``default``; all settings are of one dataclass.
    points : callable
        From settings to dataclass instances of plain fields, each one run that depends on no other.
    run : callable
        From a point to rows of the table; the same rows each time.
    draw : callable
        From the table, the settings and a :class:`~shadowprice.analysis.figures.page.Page` to a picture.
    caption : callable
        From the table and the settings to a few sentences, all computed from the run.
    published : tuple of Published
        Numbers of the paper and ours beside them.
    """

    name: str
    paper: str
    sizes: Mapping[Size, Sized]
    points: Callable[[Any], Iterable[Any]]
    run: Callable[[Any], list[Row]]
    draw: Callable[[pd.DataFrame, Any, Page], Picture]
    caption: Callable[[pd.DataFrame, Any], str]
    published: tuple[Published, ...] = ()
