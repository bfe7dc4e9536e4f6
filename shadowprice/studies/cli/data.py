"""``shadowprice data``: public traces and tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from shadowprice.cli.options import JsonOption
from shadowprice.cli.panels import shown
from shadowprice.cli.show import console, stderr
from shadowprice.studies.data_sets.catalogue import DATA_SETS

data = typer.Typer(no_args_is_help=True, help="Public traces and tables.")

NameArgument = Annotated[str, typer.Argument(help="Name of a data set; `data list` lists them.")]


@data.command("list", **shown("data list"))
def list_command(as_json: JsonOption = False) -> None:
    """List public data sets: what each is, its licence, whom to cite, and whether it is here."""
    from rich.table import Table

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
    if as_json:
        print(json.dumps(rows))
        return
    table = Table("name", "what", "licence", "cite", "here")
    for row in rows:
        table.add_row(
            *(str(row[key]) for key in ("name", "what", "licence", "cite")),
            "yes" if row["here"] else "",
        )
    console.print(table)


@data.command("fetch", **shown("data fetch"))
def fetch_command(
    name: NameArgument,
    given: Annotated[
        Path | None, typer.Option("--from", help="The file, fetched by hand: checked and copied.")
    ] = None,
) -> None:
    """Download a data set, checked and resumable; print its path, and on stderr its licence and whom to cite."""
    from shadowprice.studies.data_sets.download import data_set, fetch

    found = data_set(name)
    path = fetch(name, given=given, progress=_say)
    _say(f"licence: {found.licence}; cite: {found.source}")
    _say(f"{found.checksum}; {found.what}")
    print(path)


@data.command("path", **shown("data path"))
def path_command(name: NameArgument) -> None:
    """Print the path of a data set that is here, checked; no network is used."""
    from shadowprice.studies.data_sets.download import path_of

    print(path_of(name))


def _say(line: str) -> None:
    stderr.print(line, markup=False, highlight=False, soft_wrap=True)
