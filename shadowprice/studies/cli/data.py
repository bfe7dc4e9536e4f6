"""``shadowprice data``: public traces and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from shadowprice.cli.options import with_options
from shadowprice.cli.results import ResultForm, print_result
from shadowprice.cli.show import console, stderr
from shadowprice.studies.data_sets.catalogue import DATA_SETS


@with_options
def data_command(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Data set to fetch; without one, a list.")
    ] = None,
    by_hand: Annotated[
        Path | None, typer.Option("--from", help="The file, fetched by hand: checked and copied.")
    ] = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Use no network: the data set is here, or it fails.")
    ] = False,
    *,
    form: ResultForm,
) -> None:
    """List public data sets, or fetch one, checked and resumable, and print its path.

    The list has the licence of each, whom to cite, and whether it is here; these go to stderr when one is fetched.
    """
    if name is None:
        _print_list(form)
    elif offline:
        from shadowprice.studies.data_sets.download import path_of

        _print_path(name, path_of(name), form)
    else:
        _fetch(name, by_hand, form)


def _print_path(name: str, path: Path, form: ResultForm) -> None:
    record = {"name": name, "path": str(path)}
    print_result(form, lambda: print(path), lambda: record, lambda: [record])


def _print_list(form: ResultForm) -> None:
    from shadowprice.studies.data_sets.download import place_of

    rows = [
        {
            "name": name,
            "what": each.what,
            "licence": each.licence,
            "cite": each.source,
            "url": each.urls[0],
            "checksum": each.checksum,
            "here": place_of(name).is_file(),
        }
        for name, each in sorted(DATA_SETS.items())
    ]
    print_result(form, lambda: _show(rows), lambda: rows)


def _show(rows: Sequence[Mapping[str, object]]) -> None:
    table = Table("name", "what", "licence", "cite", "here")
    for row in rows:
        table.add_row(
            *(str(row[key]) for key in ("name", "what", "licence", "cite")),
            "yes" if row["here"] else "",
        )
    console.print(table)


def _fetch(name: str, by_hand: Path | None, form: ResultForm) -> None:
    from shadowprice.studies.data_sets.download import data_set, fetch

    chosen = data_set(name)
    path = fetch(name, file=by_hand, progress=_say)
    _say(f"licence: {chosen.licence}; cite: {chosen.source}")
    _say(f"{chosen.checksum}; {chosen.what}")
    _print_path(name, path, form)


def _say(line: str) -> None:
    stderr.print(line, markup=False, highlight=False, soft_wrap=True)
