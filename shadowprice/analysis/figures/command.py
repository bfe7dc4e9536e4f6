"""The command of a figure and of a folder of figures: run what is missing, draw, say what it shows."""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import pandas as pd

from shadowprice.analysis.figures.figure import Figure, Row, Size
from shadowprice.analysis.figures.figure_run import FigureRun, points_from
from shadowprice.analysis.figures.page import COLUMN_IN, PAGE_IN, STYLE, Page, finished
from shadowprice.analysis.figures.published import Compared
from shadowprice.analysis.figures.results import (
    code_digest,
    point_key,
    read_table,
    table_of,
    write_table,
)
from shadowprice.analysis.figures.settings import add_options, changed, from_plain, plain
from shadowprice.analysis.points.kept import Kept, PointResults
from shadowprice.analysis.points.on_cores import cores, ends_on_cores
from shadowprice.errors import InputError

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
    parser.add_argument("--redraw", action="store_true", help="draw the stored table, run nothing")
    given = parser.parse_args(arguments)
    job = FigureRun(figure, file, size, changed(sized, given), given.older, given.first_seed)
    return _make([job], given, redraw=given.redraw)


def _folder(folder: Path, arguments: Sequence[str] | None) -> int:
    files = {path.stem: path for path in sorted(folder.glob("[a-z]*.py"))}
    parser = _parser(f"All figures of {folder.name}, or those named.", Size)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="figures, by the names of their files"
    )
    parser.add_argument("--redraw", action="store_true", help="draw the stored tables, run nothing")
    given = parser.parse_args(arguments)
    for name in given.names:
        if name not in files:
            raise InputError(f"figure {name!r} is not one of {', '.join(files)}")
    jobs = []
    for name in given.names or files:
        figure = load_figure(files[name])
        size = Size(given.size) if Size(given.size) in figure.sizes else Size.DEFAULT
        settings = figure.sizes[size].settings
        jobs.append(FigureRun(figure, files[name], size, settings, given.older, given.first_seed))
    return _make(jobs, given, redraw=given.redraw)


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


def _make(jobs: Sequence[FigureRun], given: argparse.Namespace, *, redraw: bool) -> int:
    """Run what is missing of all figures, then draw each that is whole."""
    failed = {} if redraw else _run_missing(jobs, given.processes)
    for job in jobs:
        if job.figure.name in failed:
            print(f"{job.figure.name}: not drawn, {failed[job.figure.name]}", file=sys.stderr)
            continue
        _draw(job, _WIDTHS[given.width], redraw=redraw)
    return FAILED if failed else OK


@dataclass(frozen=True)
class Task:
    """A point that has to be run: the ``index``-th of a figure with these settings, as JSON."""

    file: Path
    settings: str
    index: int
    code: str
    key: str
    first_seed: int | None = None


def _run_missing(jobs: Sequence[FigureRun], processes: int) -> dict[str, str]:
    """Run the points without rows, all figures together; what went wrong, by figure."""
    tasks: dict[Task, FigureRun] = {}
    for job in jobs:
        results, code = _results(job), code_digest(job.file)
        settings = json.dumps(plain(job.settings))
        for index, point in enumerate(job.points()):
            key = point_key(point)
            if results.find(key, code, older=job.older) is None:
                tasks[Task(job.file, settings, index, code, key, job.first_seed)] = job
    failed: dict[str, str] = {}
    for count, (task, ended) in enumerate(ends_on_cores(list(tasks), run_task, processes), start=1):
        name = tasks[task].figure.name
        where = f"{name} {task.key}"
        if isinstance(ended, str):
            failed[name] = f"point {task.key} failed: {ended.strip().splitlines()[-1]}"
            print(f"{where} failed\n{ended}", file=sys.stderr)
            continue
        _results(tasks[task]).add(task.key, ended)
        print(f"[{count}/{len(tasks)}] {where} {ended.cpu_s:.1f} s", file=sys.stderr, flush=True)
    return failed


def _results(job: FigureRun) -> PointResults:
    return PointResults(job.out / "points" / f"{job.figure.name}.jsonl")


def run_task(task: Task) -> Kept | str:
    """Run one point, in whatever process; a failure as the text of its traceback."""
    began_s = time.process_time()
    try:
        figure = load_figure(task.file)
        # Classes of a figure's own file are others in another process.
        settings = from_plain(json.loads(task.settings), figure.sizes[Size.DEFAULT].settings)
        point = points_from(figure, settings, task.first_seed)[task.index]
        rows: list[Row] = figure.run(point)
    except Exception:
        # One point that fails must not take the others with it.
        return traceback.format_exc()
    return Kept(task.code, rows, time.process_time() - began_s)


def _draw(job: FigureRun, width_in: float, *, redraw: bool) -> None:
    """Write table, pictures and caption of a figure, and print the caption."""
    figure, name = job.figure, job.figure.name
    if redraw:
        table = read_table(job.stored if job.is_default else job.out / f"{name}.csv")
        older = 0
    else:
        table, older = _collected(job)
    page = Page(width_in, compares=job.size is not Size.QUICK)
    with matplotlib.rc_context(STYLE):
        picture = figure.draw(table, job.settings, page)
        finished(picture, name, compares=page.compares)
        job.out.mkdir(parents=True, exist_ok=True)
        picture.savefig(job.out / f"{name}.png", dpi=_DPI, metadata={"Software": None})
        picture.savefig(job.out / f"{name}.pdf", metadata={"CreationDate": None})
    text = caption_of(figure, table, job.settings, job.size, older=older)
    (job.out / f"{name}.txt").write_text(text, encoding="utf-8")
    print(f"{text}\n{job.out / name}.pdf\n")


def _collected(job: FigureRun) -> tuple[pd.DataFrame, int]:
    """The table of a figure whose points are all there, and how many points other code gave."""
    results, code = _results(job), code_digest(job.file)
    kept = []
    for point in job.points():
        found = results.find(point_key(point), code, older=job.older)
        if found is None:
            raise InputError(f"figure {job.figure.name}: point {point_key(point)} has no rows")
        kept.append(found)
    table = table_of(kept)
    for path in (job.out / f"{job.figure.name}.csv", *((job.stored,) if job.is_default else ())):
        write_table(path, table, job, kept)
    # As the table reads when it is taken from the file: floats lose their last digits there.
    return read_table(job.out / f"{job.figure.name}.csv"), sum(each.code != code for each in kept)


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
