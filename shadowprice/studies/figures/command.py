"""The command of a figure and of a folder of figures: run what is missing, draw, say what it shows."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from shadowprice.analysis.plots.page import COLUMN_IN, PAGE_IN, Page
from shadowprice.errors import InputError
from shadowprice.studies.figures.figure import Figure, Size, load_figure
from shadowprice.studies.figures.figure_run import FigureRun, FigureTask
from shadowprice.studies.figures.published import Compared
from shadowprice.studies.figures.results import read_table
from shadowprice.studies.figures.settings import add_options, changed
from shadowprice.studies.points.process_pool import cores, process_pool
from shadowprice.studies.points.runner import FailedPoint, PointProgress, PointTask, run_missing

OK, FAILED, USAGE, STOPPED = 0, 1, 2, 130
_WIDTHS = {"3.3": COLUMN_IN, "7": PAGE_IN}
_DPI = 200


def run_one(figure: Figure, arguments: Sequence[str] | None = None) -> int:
    """Make one figure as its file's command; the exit status."""
    file = Path(sys.modules["__main__"].__file__ or f"{figure.name}.py").resolve()
    return _reported(lambda: _one(figure, file, arguments))


def run_folder(folder: Path, arguments: Sequence[str] | None = None) -> int:
    """Make all figures of a folder, or those that are named; the exit status."""
    return _reported(lambda: _folder(folder, arguments))


def _reported(work: Callable[[], int]) -> int:
    try:
        return work()
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return USAGE
    except KeyboardInterrupt:
        print(
            "stopped; what has ended is kept, the same command goes on from there", file=sys.stderr
        )
        return STOPPED


def _one(figure: Figure, file: Path, arguments: Sequence[str] | None) -> int:
    size = _size(arguments, figure)
    parser = _parser(f"{figure.paper}. " + _minutes(figure), figure.sizes)
    sized = figure.sizes[size].settings
    add_options(parser, sized, f"settings of size {size}")
    options = parser.parse_args(arguments)
    run = FigureRun(figure, file, size, changed(sized, options), options.older, options.first_seed)
    return _make([run], options)


def _folder(folder: Path, arguments: Sequence[str] | None) -> int:
    files = {path.stem: path for path in sorted(folder.glob("[a-z]*.py"))}
    parser = _parser(f"All figures of {folder.name}, or those named.", Size)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="figures, by the names of their files"
    )
    options = parser.parse_args(arguments)
    for name in options.names:
        if name not in files:
            raise InputError(f"figure {name!r} is not one of {', '.join(files)}")
    runs = []
    for name in dict.fromkeys(options.names or files):
        figure = load_figure(files[name])
        size = Size(options.size) if Size(options.size) in figure.sizes else Size.DEFAULT
        settings = figure.sizes[size].settings
        runs.append(
            FigureRun(figure, files[name], size, settings, options.older, options.first_seed)
        )
    return _make(runs, options)


def _parser(description: str, sizes: Any) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--size", choices=[str(size) for size in sizes], default=str(Size.DEFAULT))
    parser.add_argument("--width", choices=list(_WIDTHS), default="7", help="of the picture [in]")
    parser.add_argument("--processes", type=_positive, default=cores(), metavar="COUNT")
    parser.add_argument(
        "--older", action="store_true", help="take stored results although code has changed since"
    )
    parser.add_argument(
        "--first-seed",
        type=int,
        metavar="SEED",
        help="least seed; the others are moved with it, and the kept tables stay as they are",
    )
    parser.add_argument("--redraw", action="store_true", help="draw stored tables, run nothing")
    return parser


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError(text)
    return value


def _size(arguments: Sequence[str] | None, figure: Figure) -> Size:
    first = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    first.add_argument("--size", choices=[str(size) for size in figure.sizes], default="default")
    return Size(first.parse_known_args(arguments)[0].size)


def _minutes(figure: Figure) -> str:
    parts = [f"{size}: about {sized.minutes:g}" for size, sized in figure.sizes.items()]
    return "Minutes of CPU: " + ", ".join(parts) + "."


def _make(runs: Sequence[FigureRun], options: argparse.Namespace) -> int:
    """Run what is missing of all figures, all together, then draw each that is whole."""
    failed: dict[str, str] = {}
    if not options.redraw:
        points = [(task, run.store) for run in runs for task in run.tasks]
        for task, failure in run_missing(
            points, process_pool(options.processes), older=options.older, progress=_tell
        ).items():
            failed[_name(task)] = f"point {task.key} failed: {failure.why}"
    for run in runs:
        if run.figure.name in failed:
            print(f"{run.figure.name}: not drawn, {failed[run.figure.name]}", file=sys.stderr)
        else:
            _draw(run, _WIDTHS[options.width], redraw=options.redraw)
    return FAILED if failed else OK


def _name(task: PointTask) -> str:
    """Name of the figure of a point."""
    assert isinstance(task, FigureTask)
    return task.file.stem


def _tell(now: PointProgress) -> None:
    """Print how each point ended."""
    if now.last is None:
        return
    task, result = now.last
    where = f"{_name(task)} {task.key}"
    if isinstance(result, FailedPoint):
        print(f"{where} failed\n{result.details or result.why}", file=sys.stderr)
    else:
        print(f"[{now.done}/{now.total}] {where} {result.cpu_s:.1f} s", file=sys.stderr, flush=True)


def _draw(run: FigureRun, width_in: float, *, redraw: bool) -> None:
    """Write tables, pictures and caption of a figure, and print the caption."""
    figure, name = run.figure, run.figure.name
    older = 0 if redraw else run.write_tables()
    # As it reads from the file, in a run as where it is drawn again: floats lose their last digits there.
    table = read_table(run.stored if redraw and run.is_default else run.table)
    page = Page(width_in, compares=run.size is not Size.QUICK)
    with page.style():
        picture = figure.draw(table, run.settings, page)
    page.finish(picture, name)
    run.out.mkdir(parents=True, exist_ok=True)
    page.write(picture, run.out / f"{name}.png", "png", dpi=_DPI)
    page.write(picture, run.out / f"{name}.pdf", "pdf")
    text = caption_of(figure, table, run.settings, run.size, older=older)
    (run.out / f"{name}.txt").write_text(text, encoding="utf-8")
    print(f"{text}\n{run.out / name}.pdf\n")


def compared(figure: Figure, table: pd.DataFrame) -> list[Compared]:
    """Published numbers beside those of a table that has them."""
    found = (each.compared(table) for each in figure.published)
    return [each for each in found if each is not None]


def caption_of(
    figure: Figure, table: pd.DataFrame, settings: Any, size: Size, *, older: int = 0
) -> str:
    """Text below a picture: the figure's sentences, then the published numbers, if it compares."""
    lines = [f"{figure.paper}.", figure.caption(table, settings)]
    if size is Size.QUICK:
        lines.append("A quick run: too small to be compared with what was published.")
    else:
        lines += [each.sentence() for each in compared(figure, table)]
    if older:
        lines.append(f"{older} points were run before the code was changed.")
    return "\n".join(lines) + "\n"
