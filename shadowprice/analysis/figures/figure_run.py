"""A figure with the size, settings and seeds with which it is made."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shadowprice.analysis.figures.figure import Figure, Size
from shadowprice.errors import InputError


@dataclass(frozen=True)
class FigureRun:
    """A figure that is to be made.

    Parameters
    ----------
    figure : Figure
    file : Path
        Of the figure; results lie in ``out`` and ``data`` beside it.
    size : Size
    settings : dataclass instance
    older : bool
        Rows that other code gave are taken too.
    first_seed : int, optional
        Least seed in place of the figure's own.
    """

    figure: Figure
    file: Path
    size: Size
    settings: Any
    older: bool = False
    first_seed: int | None = None

    @property
    def out(self) -> Path:
        """Folder of tables and pictures."""
        return self.file.parent / "out"

    @property
    def stored(self) -> Path:
        """Table that is kept in the repository: of the default settings."""
        return self.file.parent / "data" / f"{self.figure.name}.csv"

    @property
    def is_default(self) -> bool:
        """True if a run of the default size has its settings and seeds, files aside."""
        sized = self.figure.sizes[self.size]
        same = _but_files(sized.settings) == _but_files(self.settings)
        return self.size is Size.DEFAULT and self.first_seed is None and same

    def points(self) -> list[Any]:
        """All points of the settings, with the seeds that are asked for."""
        return points_from(self.figure, self.settings, self.first_seed)


def points_from(figure: Figure, settings: Any, first_seed: int | None) -> list[Any]:
    """Points of a figure; with ``first_seed`` all seeds are moved so that the least is this.

    Raises
    ------
    InputError
        If there are no points, the seed is negative, or the points have none to move.
    """
    points = list(figure.points(settings))
    if not points:
        raise InputError(f"figure {figure.name}: nothing to run with these settings")
    if first_seed is None:
        return points
    if first_seed < 0:
        raise InputError(f"--first-seed {first_seed}: expected 0 or more")
    if not all(hasattr(point, "seed") for point in points):
        raise InputError(f"--first-seed {first_seed}: figure {figure.name} has no seeds")
    by = first_seed - min(point.seed for point in points)
    return [dataclasses.replace(point, seed=point.seed + by) for point in points]


def _but_files(settings: Any) -> dict[str, Any]:
    return {
        name: value for name, value in vars(settings).items() if not isinstance(value, Path | None)
    }
