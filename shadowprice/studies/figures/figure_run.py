"""A figure with the size, settings and seeds with which it is made, its points and their rows."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from shadowprice.errors import InputError
from shadowprice.studies.figures.figure import Figure, Row, Size, load_figure
from shadowprice.studies.figures.results import code_digest, point_key, write_table
from shadowprice.studies.figures.settings import from_plain, plain
from shadowprice.studies.points.point_rows import PointStore


@dataclass(frozen=True)
class FigureTask:
    """A point of a figure, the ``index``-th with these settings as JSON, as it is sent to whatever process runs it.

    Parameters
    ----------
    first_seed : int, optional
        Least seed in place of the figure's own.
    code, key : str
        Digest of the code and fields of the point, by which its rows are found again.
    """

    file: Path
    settings: str
    index: int
    first_seed: int | None
    code: str
    key: str

    def rows(self) -> list[Row]:
        """Run it, from the figure's file: its classes are others in another process."""
        figure = load_figure(self.file)
        settings = from_plain(json.loads(self.settings), figure.sizes[Size.DEFAULT].settings)
        return figure.run(points_from(figure, settings, self.first_seed)[self.index])


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
    def table(self) -> Path:
        """Table of the last run."""
        return self.out / f"{self.figure.name}.csv"

    @property
    def stored(self) -> Path:
        """Table that is part of the repository: of the default settings."""
        return self.file.parent / "data" / f"{self.figure.name}.csv"

    @property
    def is_default(self) -> bool:
        """True if a run of the default size has its settings and seeds, files aside."""
        own, ours = (
            {
                name: value
                for name, value in vars(each).items()
                if not isinstance(value, Path | None)
            }
            for each in (self.figure.sizes[self.size].settings, self.settings)
        )
        return self.size is Size.DEFAULT and self.first_seed is None and own == ours

    @cached_property
    def store(self) -> PointStore:
        """Rows of its points, and of those of other settings."""
        return PointStore(self.out / "points" / f"{self.figure.name}.jsonl")

    @cached_property
    def tasks(self) -> list[FigureTask]:
        """All points of the settings, with the seeds that are asked for."""
        settings, code = json.dumps(plain(self.settings)), code_digest(self.file)
        return [
            FigureTask(self.file, settings, index, self.first_seed, code, point_key(point))
            for index, point in enumerate(points_from(self.figure, self.settings, self.first_seed))
        ]

    def write_tables(self) -> int:
        """Write the table of all points, and the stored one of the default settings; how many other code gave.

        Raises
        ------
        InputError
            If a point has no rows.
        """
        points = []
        for task in self.tasks:
            rows = self.store.find(task.key, task.code, older=self.older)
            if rows is None:
                raise InputError(f"figure {self.figure.name}: point {task.key} has no rows")
            points.append(rows)
        seeds = "" if self.first_seed is None else f"; seeds from {self.first_seed}"
        settings = plain(self.settings, lambda path: path.name)
        made_of = (
            f"{self.figure.paper}; size {self.size}{seeds}",
            f"settings {json.dumps(settings, sort_keys=True)}",
        )
        for path in (self.table, self.stored) if self.is_default else (self.table,):
            write_table(path, made_of, points)
        return sum(rows.code != task.code for rows, task in zip(points, self.tasks, strict=True))


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
