"""A figure: settings of several sizes, independent points, a picture, a caption, published numbers."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shadowprice.brief import Brief
from shadowprice.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure as Picture

    from shadowprice.analysis.plots.page import Page
    from shadowprice.studies.figures.published import Published

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
        From the table, the settings and a :class:`~shadowprice.analysis.plots.page.Page` to a picture.
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


def load_figure(file: Path) -> Figure:
    """The ``FIGURE`` of a file.

    Raises
    ------
    InputError
        If the file has none, or its name is another.
    """
    folder = str(file.parent)
    if folder not in sys.path:
        # Figures share files beside them.
        sys.path.insert(0, folder)
    module = sys.modules.get(file.stem)
    if module is None or getattr(module, "__file__", None) != str(file):
        spec = importlib.util.spec_from_file_location(file.stem, file)
        if spec is None or spec.loader is None:
            raise InputError(f"figure {file}: not a Python file")
        module = importlib.util.module_from_spec(spec)
        # Dataclasses look their module up while it is made.
        sys.modules[file.stem] = module
        spec.loader.exec_module(module)
    figure = getattr(module, "FIGURE", None)
    if not isinstance(figure, Figure) or figure.name != file.stem:
        raise InputError(f"figure {file}: it needs FIGURE = Figure(name={file.stem!r}, ...)")
    return figure
