"""``shadowprice terms``: what an instance may say beyond nodes and jobs, and how it is written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from shadowprice.cli.options import JsonOption
from shadowprice.cli.show import console
from shadowprice.errors import InputError

if TYPE_CHECKING:
    from shadowprice.instances.features import Feature


def terms_command(
    name: Annotated[
        str | None, typer.Argument(help="One of them: its settings, and what it excludes.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List what an instance may say beyond nodes and jobs, and what brings it: --with, or columns and other options."""
    from shadowprice.instances.entries import expected_name, shown
    from shadowprice.instances.features import Feature

    if name is None:
        _list(as_json)
        return
    names = [each.value for each in Feature]
    if name not in names:
        raise InputError(f"term {shown(name)}: {expected_name(name, names)}")
    record = _record(Feature(name))
    if as_json:
        print(json.dumps(record))
        return
    _print(record)


def _list(as_json: bool) -> None:
    from shadowprice.instances.features import Feature

    rows = [
        {key: _record(each)[key] for key in ("term", "is", "says", "given_by")} for each in Feature
    ]
    if as_json:
        print(json.dumps(rows))
        return
    table = Table("term", "what it says", "given by", show_lines=True)
    table.columns[0].no_wrap = True
    for row in rows:
        table.add_row(Text(row["term"]), Text(row["says"]), Text("; ".join(row["given_by"])))
    console.print(table)
    console.print(
        "`shadowprice terms NAME` shows the settings of one", markup=False, highlight=False
    )


def _record(feature: Feature) -> dict[str, Any]:
    """All that there is to say of a term."""
    from shadowprice.analysis.terms.registry import OTHERWISE, TERMS
    from shadowprice.analysis.terms.written_term import settings_of

    term = TERMS.get(feature)
    given_by = [] if term is None else [f"--with {feature}"]
    if feature in OTHERWISE:
        given_by.append(OTHERWISE[feature])
    return {
        "term": feature.value,
        "is": feature.phrase,
        "says": feature.sentence,
        "given_by": given_by,
        "settings": [] if term is None else [asdict(each) for each in settings_of(term)],
        "switches": [] if term is None else list(term.sets),
        "example": "" if term is None else f"shadowprice {term.example}",
        "not_with": dict(_apart(feature)),
    }


def _apart(feature: Feature) -> Iterator[tuple[str, str]]:
    """Terms that do not go together with one, and why."""
    from shadowprice.instances.features import APART, Feature

    for each in Feature:
        reason = APART.get(frozenset((feature, each)))
        if reason is not None:
            yield each.value, reason


def _print(record: dict[str, Any]) -> None:
    def say(text: str) -> None:
        console.print(text, markup=False, highlight=False, soft_wrap=True)

    say(f"{record['term']}: {record['says']}")
    say(f"given by {'; '.join(record['given_by'])}")
    if record["settings"]:
        table = Table("setting", "expected", "default", "unit", "what it is")
        for each in record["settings"]:
            usual = "" if each["default"] is None else str(each["default"])
            default = "required" if each["required"] else usual
            words = each["name"], each["expected"], default, each["unit"], each["says"]
            table.add_row(*map(Text, words))
        console.print(table)
    if record["switches"]:
        say(f"in Python: Semantics({', '.join(f'{name}=...' for name in record['switches'])})")
    if record["example"]:
        say(f"example: {record['example']}")
    if record["not_with"]:
        table = Table("not with", "because")
        for other, reason in record["not_with"].items():
            table.add_row(Text(other), Text(reason))
        console.print(table)
