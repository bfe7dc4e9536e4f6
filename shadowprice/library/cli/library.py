"""``shadowprice library``: fixed instances, and the best that is known of each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shadowprice.cli.options import with_options
from shadowprice.cli.outputs import ForceOption, expect_outputs, with_origin, write_whole
from shadowprice.cli.panels import shown
from shadowprice.cli.results import ResultForm, print_result
from shadowprice.cli.show import print_lines, print_table, stderr, table_of

if TYPE_CHECKING:
    from shadowprice.library.library_instance import LibraryInstance
    from shadowprice.library.submission import Place
    from shadowprice.library.table import Row

library = typer.Typer(
    no_args_is_help=True,
    help="Fixed instances, and the best that is known of each, see docs/library.md.",
)

NameArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="Instance, as `library list` has it.")
]


@library.command("list", **shown("library list"))
@with_options
def list_command(
    family: Annotated[
        str | None, typer.Option("--family", help="Instances of this family only.")
    ] = None,
    verify: Annotated[
        bool,
        typer.Option("--verify", help="Verify every schedule and bound; what fails is an error."),
    ] = False,
    *,
    form: ResultForm,
) -> None:
    """List instances with the best known cost and bound in each objective, and the gap."""
    from shadowprice.library.table import as_record, rows_of, verified_rows

    rows = verified_rows(family, _say) if verify else rows_of(family)
    print_result(
        form,
        lambda: _show_list(rows),
        lambda: with_origin(as_record(rows)),
        lambda: (row.record() for row in rows),
    )


def _show_list(rows: Sequence[Row]) -> None:
    heads = ("instance", "objective", "cost [s]", "bound [s]", "gap at most", "schedule by")
    print_table(table_of(heads, (2, 3, 4)), rows, _cells)


def _cells(row: Row) -> tuple[str, ...]:
    from shadowprice.analysis.wording import cost_cells
    from shadowprice.library.verification import gap_text

    name, values = (row.which.name, str(row.objective)), row.values
    if row.entry is None or values is None:
        return (*name, "", "", "", "")
    ((cost, bound, _),) = cost_cells([values.exact_s()])  # type: ignore[list-item]
    credit = row.entry.schedule.credit
    return (*name, cost, bound, gap_text(values), f"{credit.method} ({credit.by})")


@library.command("get", **shown("library get"))
def get_command(
    name: NameArgument,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Folder of the files; the one you are in.")
    ] = Path(),
    force: ForceOption = False,
) -> None:
    """Write an instance: NAME.json is all of it, NAME.jobs.csv and NAME.nodes.csv are tables of its jobs and nodes."""
    from shadowprice.library.collection import library_instance
    from shadowprice.library.tables_of_instance import files_of

    which = library_instance(name)
    files = {output / file: text for file, text in files_of(which).items()}
    expect_outputs(force, *files)
    for path, text in files.items():
        write_whole(path, lambda partial, text=text: partial.write_text(text, "utf-8"))  # type: ignore[misc]
        print(path)
    _say(f"{name}.json: SHA-256 {which.digest}, as published")


@library.command("show", **shown("library show"))
@with_options
def show_command(name: NameArgument, *, form: ResultForm) -> None:
    """Show how an instance is made, and who found the best known schedule and bound, and how."""
    from shadowprice.library.collection import library_instance
    from shadowprice.library.table import rows_of

    which = library_instance(name)
    rows = [row for row in rows_of(which.family) if row.which is which]
    print_result(
        form,
        lambda: _show(which, rows),
        lambda: with_origin({**which.document(), "rows": [row.record() for row in rows]}),
        lambda: (row.record() for row in rows),
    )


def _show(which: LibraryInstance, rows: Sequence[Row]) -> None:
    import json

    from shadowprice.library.table import sentences_of

    print_lines(f"{which.name}: {which.jobs} jobs; {_class(which.preemptive)}")
    print_lines(f"SHA-256 {which.digest}")
    print_lines(f"recipe: {json.dumps(which.recipe.document())}")
    for each in which.absent():
        print_lines(f"data set {each} is not here: shadowprice data {each}")
    for row in rows:
        for line in sentences_of(row):
            print_lines(line)


def _class(preemptive: bool) -> str:
    return "jobs may stop and resume" if preemptive else "each job begins once"


@library.command("submit", **shown("library submit"))
@with_options
def submit_command(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="SCHEDULE|CERTIFICATE",
            help="CSV of rows or a run that `simulate -o` wrote; or JSON lines.",
        ),
    ],
    by: Annotated[str, typer.Option("--by", help="Who found it.")],
    method: Annotated[str, typer.Option("--method", help="How it was found.")],
    date: Annotated[
        str | None, typer.Option("--date", help="When, as YYYY-MM-DD; today if left out.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Folder to write to; that of the package by default."),
    ] = None,
    *,
    form: ResultForm,
) -> None:
    """Verify a schedule or a bound, say its place, and write it as the entry if it is better than the one there."""
    import datetime

    from shadowprice.library.entries.entry import ENTRIES, Credit
    from shadowprice.library.submission import submit_path

    day = date or datetime.date.today().isoformat()
    credit = Credit(by, method, day).checked()
    places = submit_path(file, credit, ENTRIES if output is None else output)
    print_result(form, lambda: _show_places(places), lambda: [place.record() for place in places])


def _show_places(places: Sequence[Place]) -> None:
    for place in places:
        print_lines(place.sentence())
        if place.folder is not None:
            print_lines(f"written: {place.folder}")


def _say(line: str) -> None:
    stderr.print(line, markup=False, highlight=False, soft_wrap=True)
