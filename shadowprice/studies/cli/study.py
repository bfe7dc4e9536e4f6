"""``shadowprice study``: policies x loads x clusters x seeds from one file, to tables and figures."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shadowprice.cli.options import with_options
from shadowprice.cli.origin import origin
from shadowprice.cli.outputs import ForceOption, expect_outputs, write_file
from shadowprice.cli.panels import shown
from shadowprice.cli.progress import INTERRUPTED, StepProgress, progress_line
from shadowprice.cli.results import ResultForm, print_result
from shadowprice.cli.show import note, stderr
from shadowprice.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from shadowprice.studies.points.runner import PointProgress
    from shadowprice.studies.results import StudyResults

FAILED = 1

study = typer.Typer(
    no_args_is_help=True,
    help="Policies x loads x clusters x seeds from one file, see docs/studies.md.",
)

StudyArgument = Annotated[
    Path, typer.Argument(metavar="STUDY", help="Study file (YAML), or the folder of its results.")
]


@study.command("run", **shown("study run"))
@with_options
def run_command(
    file: Annotated[Path, typer.Argument(metavar="STUDY", help="Study file (YAML).")],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Folder of the results; NAME.results beside the file."),
    ] = None,
    jobs: Annotated[
        int, typer.Option("-j", "--jobs", help="Processes; 0: as many as there are cores.")
    ] = 1,
    on: Annotated[
        str | None,
        typer.Option(
            "--on",
            metavar="ray|ray:HOST:PORT|ray://HOST:PORT",
            help="Run on a Ray cluster: the one that is started, by its head's address, or by Ray's client.",
        ),
    ] = None,
    older: Annotated[
        bool, typer.Option("--older", help="Take rows of other versions of the package, too.")
    ] = False,
    *,
    form: ResultForm,
) -> None:
    """Run what has no rows yet; kill it anywhere, and the same command goes on."""
    _expect_there(file)
    from shadowprice.studies.points.process_pool import cores
    from shadowprice.studies.run_study import results_folder
    from shadowprice.studies.run_study import study as run_study

    if jobs < 0:
        raise InputError(f"--jobs is {jobs}, expected 0 or more")
    folder = results_folder(file) if output is None else output
    with progress_line() as say:
        say("runs and bounds")
        try:
            results = run_study(
                file,
                output,
                processes=jobs or cores(),
                on=on,
                older=older,
                progress=partial(_tell, say),
            )
        except KeyboardInterrupt:
            note(f"stopped by Ctrl-C: the rows so far are in {folder}, the same command goes on")
            raise typer.Exit(INTERRUPTED) from None
    _print_run(results, folder, form)
    if results.record.failed:
        raise typer.Exit(FAILED)


def _expect_there(path: Path) -> None:
    """Refuse a path where nothing is, before much is loaded.

    Raises
    ------
    InputError
        Naming it.
    """
    if not path.exists():
        raise InputError(f"{path}: no such file or folder")


def _tell(say: StepProgress, now: PointProgress) -> None:
    """Show how far a study is."""
    words = ["runs and bounds"]
    if now.stored:
        words.append(f"{now.stored} were there")
    if now.failed:
        words.append(f"{now.failed} failed")
    say.retitle(", ".join(words))
    say.reaches(now.done, now.total)


def _print_run(results: StudyResults, folder: Path, form: ResultForm) -> None:
    record = results.record
    for each in record.notes:
        _warn(f"note: {each}")
    for place, why in record.failed.items():
        _warn(f"{place}: {why}")
    found = {
        "study": results.study.study,
        "runs": len(results.runs),
        "of": record.runs,
        "failed": len(record.failed),
        "verified": bool(results.runs["verified"].all()) if len(results.runs) else None,
        "folder": str(folder),
    }
    words = (
        f"{found['runs']} of {found['of']} runs, each verified, in {folder}; "
        f"pandas.read_parquet({str(folder / 'runs.parquet')!r}) reads them"
    )
    print_result(form, lambda: print(words), lambda: found, lambda: [found])


def _warn(text: str) -> None:
    stderr.print(text, style="yellow", markup=False, highlight=False, soft_wrap=True)


def _results(path: Path) -> StudyResults:
    """Results of a study, by their folder or by the study file that they lie beside."""
    _expect_there(path)
    from shadowprice.studies.results import read_results
    from shadowprice.studies.run_study import results_folder

    found = read_results(results_folder(path) if path.is_file() else path)
    if found.runs.empty:
        failed = f", {len(found.record.failed)} failed" if found.record.failed else ""
        raise InputError(f"{path}: no run has a row{failed}; expected results of a study")
    return found


@study.command("report", **shown("study report"))
def report_command(
    results: StudyArgument,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="HTML file; report.html in the folder of the results."),
    ] = None,
    paper: Annotated[
        Path | None,
        typer.Option("--paper", help="Folder for LaTeX tables and PDF figures, too; with --style."),
    ] = None,
    style: Annotated[
        str | None,
        typer.Option("--style", help="Width of a column and fonts: acm, ieee, usenix or neurips."),
    ] = None,
    force: ForceOption = False,
) -> None:
    """Write tables, pictures, intervals, settings and how to repeat it, as one page or for a paper."""
    if (paper is None) != (style is None):
        raise InputError("study report: --paper and --style go together, expected both or none")
    found = _results(results)
    from shadowprice.studies.page import study_page
    from shadowprice.studies.run_study import results_folder

    folder = results_folder(results) if results.is_file() else results
    page = folder / "report.html" if output is None else output
    expect_outputs(force, page)
    files: dict[Path, Callable[[Path], None]] = {}
    if paper is not None and style is not None:
        from shadowprice.studies.paper import paper_files, style_named

        files = {
            paper / name: action
            for name, action in paper_files(found, style_named(style), origin().sentence()).items()
        }
        _make_folder(paper)
        expect_outputs(force, page, *files)
    write_file(page, lambda path: path.write_text(study_page(found), encoding="utf-8"))
    print(page)
    for path, action in files.items():
        write_file(path, action)
    if files:
        print(paper)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be made: {error.strerror}") from error


@study.command("compare", **shown("study compare"))
@with_options
def compare_command(
    first: StudyArgument,
    second: StudyArgument,
    same: Annotated[
        bool, typer.Option("--same", help="End with status 1 unless both have the same rows.")
    ] = False,
    *,
    form: ResultForm,
) -> None:
    """Say what changed from one study to another: settings, versions, numbers on the same seeds."""
    from shadowprice.studies.difference import difference

    found = difference(_results(first), _results(second))
    lines = list(found.lines())
    print_result(
        form,
        lambda: print("\n".join(lines)),
        lambda: {"same": found.same, "differences": lines},
        lambda: ({"difference": line} for line in lines),
        ("difference",),
    )
    if same and not found.same:
        raise typer.Exit(FAILED)
