"""Results of commands: text and tables for people, JSON or CSV for programs. One way for every command."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, TypeAlias

import typer

from shadowprice.cli.options import JsonOption
from shadowprice.errors import InputError

CsvOption = Annotated[bool, typer.Option("--csv", help="Print CSV.")]

TableRow: TypeAlias = Mapping[str, object]


@dataclass(frozen=True)
class ResultForm:
    """Form in which a command prints its result, as options have it.

    A command takes it by a parameter of this type and :func:`~shadowprice.cli.options.with_options`.

    Raises
    ------
    InputError
        If both are asked for.
    """

    as_json: JsonOption = False
    as_csv: CsvOption = False

    def __post_init__(self) -> None:
        if self.as_json and self.as_csv:
            raise InputError("--json and --csv: expected one of the two")

    @property
    def option(self) -> str:
        """The option that asks for it; empty for text."""
        return "--json" if self.as_json else "--csv" if self.as_csv else ""


def print_result(
    form: ResultForm,
    show: Callable[[], object],
    document: Callable[[], object],
    rows: Callable[[], Iterable[TableRow]] | None = None,
    columns: Sequence[str] = (),
) -> None:
    """Print a result to stdout in the form that was asked for.

    Parameters
    ----------
    show : callable
        Prints it for people.
    document : callable
        What ``--json`` prints, of plain values.
    rows : callable, optional
        Rows of its table by column, numbers in full, for ``--csv``. By default those of the document, if that is a
        list of them, or its entries, a row each.
    columns : sequence of str
        Columns that there are even without rows, in their order.
    """
    if form.as_json:
        print(json.dumps(document()))
    elif form.as_csv:
        _write_csv(_rows_of(document()) if rows is None else rows(), columns)
    else:
        show()


def entries(record: Mapping[str, object], name: str = "name") -> list[TableRow]:
    """Rows of a record: a name and a value each; what is in parts of it by its path.

    >>> entries({"jobs": 3, "nodes": [{"gpus": 4}, {"gpus": 8}]}, "metric")
    [{'metric': 'jobs', 'value': 3}, {'metric': 'nodes.0.gpus', 'value': 4}, {'metric': 'nodes.1.gpus', 'value': 8}]
    """
    return [{name: path, "value": value} for path, value in _leaves(record)]


def _leaves(record: Mapping[str, object], above: str = "") -> Iterator[tuple[str, object]]:
    for key, value in record.items():
        if (
            isinstance(value, list | tuple)
            and value
            and all(isinstance(each, Mapping) for each in value)
        ):
            inner: object = {str(k): each for k, each in enumerate(value)}
        else:
            inner = value
        if isinstance(inner, Mapping):
            yield from _leaves(inner, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


def _rows_of(document: object) -> Iterable[TableRow]:
    if isinstance(document, Mapping):
        return entries(document)
    assert isinstance(document, list)
    return document


def _write_csv(rows: Iterable[TableRow], columns: Sequence[str]) -> None:
    """Write rows as RFC 4180 says, with line ends as of text; a column that a row does not have is empty there."""
    listed = [_flat(row) for row in rows]
    names = list(dict.fromkeys([*columns, *(key for row in listed for key in row)]))
    if not names:
        return
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(names)
    for row in listed:
        writer.writerow([_cell(row.get(name)) for name in names])


def _flat(row: TableRow) -> TableRow:
    """The row with the entries of mappings in it as columns ``outer.inner``, as of ``pandas.json_normalize``."""
    flat: dict[str, object] = {}
    for key, value in row.items():
        inner = _flat(value) if isinstance(value, Mapping) else None
        flat |= {key: value} if inner is None else {f"{key}.{k}": each for k, each in inner.items()}
    return flat


def _cell(value: object) -> object:
    """A value as a cell: numbers in full, nothing for None, booleans and lists as JSON has them."""
    return json.dumps(value) if isinstance(value, bool | list | tuple) else value
