"""``shadowprice data``: public traces and tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from shadowprice.cli.options import JsonOption
from shadowprice.cli.show import console, stderr
from shadowprice.errors import InputError
from shadowprice.studies.data_sets.catalogue import DATA_SETS

EARLIER_WORDS = {"fetch": "data NAME", "list": "data", "path": "data NAME --offline"}
"""Earlier subcommands, and what is written in their place."""


def data_command(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Data set to fetch; without one, a list.")
    ] = None,
    more: Annotated[str | None, typer.Argument(hidden=True)] = None,
    by_hand: Annotated[
        Path | None, typer.Option("--from", help="The file, fetched by hand: checked and copied.")
    ] = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Use no network: the data set is here, or it fails.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """List public data sets, or fetch one, checked and resumable, and print its path.

    The list has the licence of each, whom to cite, and whether it is here; these go to stderr when one is fetched.
    """
    if name in EARLIER_WORDS and name not in DATA_SETS:
        raise InputError(
            f"data {name}: is written `shadowprice {EARLIER_WORDS[name]}` now, without {name!r}"
        )
    if more is not None:
        raise InputError(f"data: got {more!r} after {name!r}, expected one name")
    if name is None:
        _print_list(as_json)
    elif offline:
        from shadowprice.studies.data_sets.download import path_of

        print(path_of(name))
    else:
        _fetch(name, by_hand)


def _print_list(as_json: bool) -> None:
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


def _fetch(name: str, by_hand: Path | None) -> None:
    from shadowprice.studies.data_sets.download import data_set, fetch

    chosen = data_set(name)
    path = fetch(name, given=by_hand, progress=_say)
    _say(f"licence: {chosen.licence}; cite: {chosen.source}")
    _say(f"{chosen.checksum}; {chosen.what}")
    print(path)


def _say(line: str) -> None:
    stderr.print(line, markup=False, highlight=False, soft_wrap=True)
