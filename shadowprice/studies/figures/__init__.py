"""Figures of papers as objects: settings as data, independent runs, a picture, what was published.

A figure is one file that ends with ``FIGURE = Figure(...)``; :func:`main` makes a command of it.
"""

from shadowprice.analysis.plots.page import Page
from shadowprice.analysis.statistics.estimates import (
    Estimate,
    estimate,
    ratio_by_seed,
    signed_estimate,
)
from shadowprice.studies.figures.figure import Figure, Row, Size, Sized
from shadowprice.studies.figures.published import Cause, Evidence, Others, Published
from shadowprice.studies.figures.settings import crossed, require_known, setting
from shadowprice.studies.figures.verdicts import (
    Independence,
    Relation,
    ReproductionVerdict,
    Sampling,
)

__all__ = [
    "Cause",
    "Estimate",
    "Evidence",
    "Figure",
    "Independence",
    "Others",
    "Page",
    "Published",
    "Relation",
    "ReproductionVerdict",
    "Row",
    "Sampling",
    "Size",
    "Sized",
    "crossed",
    "estimate",
    "main",
    "ratio_by_seed",
    "require_known",
    "setting",
    "signed_estimate",
]


def main(figure: Figure, arguments: list[str] | None = None) -> None:
    """Run a figure's file as a command; see :mod:`shadowprice.studies.figures.command`."""
    # Imported when it is called: a figure's file is also read for what it says was published.
    from shadowprice.studies.figures.command import run_one

    raise SystemExit(run_one(figure, arguments))
