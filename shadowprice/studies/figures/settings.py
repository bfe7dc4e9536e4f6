"""Settings of a figure: the points that they ask for, and every field as an option of a command."""

from __future__ import annotations

import argparse
import dataclasses
import typing
from collections.abc import Callable, Collection, Iterable, Iterator
from enum import Enum
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from shadowprice.errors import InputError

P = TypeVar("P")


def setting(default: Any, words: str) -> Any:
    """A field of settings with its default, and words on it for the help of its option."""
    return dataclasses.field(default=default, metadata={"help": words})


def crossed(point: type[P], settings: Any, **axes: Iterable[Any]) -> Iterator[P]:
    """Points of all combinations of values, the last axis fastest.

    Parameters
    ----------
    point : type
        Dataclass of the points.
    settings : dataclass instance
        Has the fields of a point that are no axis.
    **axes
        Values of the other fields.
    """
    fields: Any = dataclasses.fields(point)  # type: ignore[arg-type]
    own = {each.name: getattr(settings, each.name) for each in fields if each.name not in axes}
    for values in product(*axes.values()):
        yield point(**own, **dict(zip(axes, values, strict=True)))


def add_options(parser: argparse.ArgumentParser, settings: Any, title: str) -> None:
    """Give a parser one option for each field of a dataclass instance, whose values are the defaults."""
    group = parser.add_argument_group(title)
    for field in dataclasses.fields(settings):
        now = _shown(getattr(settings, field.name))
        help_text = field.metadata.get("help", "")
        group.add_argument(
            option(field.name),
            dest=field.name,
            metavar="VALUE",
            help=f"{help_text} (now: {now})".strip().replace("%", "%%"),
        )


def changed(settings: Any, options: argparse.Namespace) -> Any:
    """Settings with the values of options in place of their own.

    Raises
    ------
    InputError
        If a value is not of its field's type.
    """
    types = typing.get_type_hints(type(settings))
    values = {
        field.name: _value(option(field.name), text, types[field.name])
        for field in dataclasses.fields(settings)
        if (text := getattr(options, field.name)) is not None
    }
    try:
        return dataclasses.replace(settings, **values)
    except ValueError as error:
        raise InputError(f"settings of the figure: {error}") from None


def require_known(what: str, names: Iterable[str], known: Collection[str]) -> None:
    """Refuse names that a setting has and the figure does not know.

    Raises
    ------
    InputError
        Naming the first.
    """
    for name in names:
        if name not in known:
            raise InputError(f"{what} {name!r} is not one of {', '.join(known)}")


def option(name: str) -> str:
    """Option of a field: ``jobs_per_hour`` is ``--jobs-per-hour``."""
    return "--" + name.replace("_", "-")


def plain(settings: Any, file_as: Callable[[Path], str] = str) -> dict[str, Any]:
    """Fields of a dataclass instance as JSON has them, with words for files: their paths, if not other ones."""
    fields: dict[str, Any] = msgspec.to_builtins(settings, enc_hook=file_as)
    return fields


def from_plain(fields: dict[str, Any], like: Any) -> Any:
    """The dataclass instance whose fields :func:`plain` told, of the class of ``like``."""
    return msgspec.convert(fields, type(like), strict=False, dec_hook=_path)


def _value(name: str, text: str, kind: Any) -> Any:
    several = typing.get_origin(kind) is tuple
    value: Any = [part.strip() for part in text.split(",") if part.strip()] if several else text
    try:
        return msgspec.convert(value, kind, strict=False, dec_hook=_path)
    except msgspec.ValidationError as error:
        raise InputError(f"{name} {text!r}: {error}") from None


def _path(kind: type, value: Any) -> Any:
    if kind is Path:
        return Path(value)
    raise NotImplementedError(kind)


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(_shown(part) for part in value) or "none"
    return str(value.value if isinstance(value, Enum) else value)
