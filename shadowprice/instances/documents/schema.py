"""Typed records from trees of JSON, TOML and YAML, and one line that explains what does not fit.

A format is a dataclass or a ``msgspec.Struct`` whose fields are annotated with the types below or
such as these; :func:`decode` makes one of what a parser returned. msgspec tells what is wrong with
a document, but not which value: the innermost part that cannot be decoded by itself is looked for,
so that messages name file, place, value and what was expected.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    NamedTuple,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
import numpy as np
from msgspec import Meta, UnsetType

from shadowprice.errors import InputError
from shadowprice.instances.entries import LARGEST, ONE_LINE, known_keys, shown

T = TypeVar("T")

# Letters that `entries.on_one_line` allows.
_LETTER = r"[^\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"

Line: TypeAlias = Annotated[str, Meta(pattern=rf"\A{_LETTER}*\Z", description=ONE_LINE)]
Name: TypeAlias = Annotated[
    str, Meta(pattern=rf"\A{_LETTER}+\Z", description=f"a name that is not empty, {ONE_LINE}")
]
FileName: TypeAlias = Annotated[
    str,
    Meta(
        pattern=rf"\A{_LETTER}+\Z",
        description=f"the path of a file, {ONE_LINE}",
        extra={"file": True},
    ),
]
Number: TypeAlias = Annotated[float, Meta(ge=-LARGEST, le=LARGEST, description="a number")]
Amount: TypeAlias = Annotated[float, Meta(ge=0, le=LARGEST, description="a number >= 0")]
Whole: TypeAlias = Annotated[
    int, Meta(ge=-(2**63), le=2**63 - 1, description="an integer of 64 bits")
]

SECRET = {"secret": True}
"""``extra`` of a ``Meta``: messages leave the value out."""

_WRITTEN = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_LONGEST_NUMBER = 400

_EXPECTED = {
    bool: "true or false",
    int: "an integer",
    float: "a number",
    str: "text",
    list: "a list",
    tuple: "a list",
    dict: "a mapping",
    np.ndarray: "a list of numbers",
    NoneType: "null",
}


def decode(kind: type[T], data: object, where: str, *, numbers_as_text: bool = False) -> T:
    """Make an object of a type from a tree of plain values.

    Parameters
    ----------
    kind : type
        A dataclass or Struct, or a container of them; ``NDArray`` stands for lists of numbers.
    where : str
        File, and place in it, for messages.
    numbers_as_text : bool
        Whether a number may be written as text, where there can be no text.

    Raises
    ------
    InputError
        Naming the first unknown or missing key, or the place that is wrong, its value and what was
        expected.
    """
    part = _Part(kind, _checked_keys(_Part(kind, data, where), numbers_as_text), where)
    try:
        return msgspec.convert(part.value, kind, dec_hook=_array)
    except msgspec.ValidationError as error:
        raise InputError(_explained(part)) from error


class _Part(NamedTuple):
    """A part of a document: the type it should have, what it is, and where."""

    kind: Any
    value: Any
    where: str

    def fits(self) -> bool:
        try:
            msgspec.convert(self.value, self.kind, dec_hook=_array)
        except msgspec.ValidationError:
            return False
        return True

    def members(self) -> tuple[Any, ...]:
        """The types that its type is a union of, without notes."""
        return _members(self.kind)

    def container(self) -> Any:
        """The member that is about records, mappings or lists as the value is one."""
        for member in self.members():
            origin = get_origin(member)
            if isinstance(self.value, dict) and (origin is dict or _is_record(member)):
                return member
            if isinstance(self.value, list) and origin in (list, tuple, np.ndarray):
                return member
        return None

    def inside(self) -> Iterator[tuple[Any, _Part]]:
        """Keys or positions with the parts there."""
        container, where = self.container(), self.where
        inner = get_args(container)
        if _is_record(container):
            for key, kind in _fields(container).items():
                if key in self.value:
                    yield key, _Part(kind, self.value[key], f"{where}: {key}")
        elif isinstance(self.value, dict) and inner:
            for key, value in self.value.items():
                yield key, _Part(inner[1], value, f"{where}[{shown(key)}]")
        elif get_origin(container) is np.ndarray:
            element = _element(container)
            for k, value in enumerate(self.value):
                kind = container if isinstance(value, list) else element
                yield k, _Part(kind, value, f"{where}[{k}]")
        elif isinstance(self.value, list) and inner:
            endless = get_origin(container) is list or inner[-1] is Ellipsis
            for k, value in enumerate(self.value if endless else self.value[: len(inner)]):
                name = None
                if isinstance(value, dict):
                    name = value.get("name", value.get("model"))
                named = f" ({shown(name)})" if isinstance(name, str) else ""
                yield k, _Part(inner[0 if endless else k], value, f"{where}[{k}]{named}")


def _element(array: Any) -> Any:
    """The type of an array's numbers."""
    dtype = get_args(get_args(array)[1])[0]
    return Whole if issubclass(dtype, np.integer) else Number


def _array(kind: Any, value: Any) -> Any:
    """A list of numbers, or of equally long lists of them, as an array of its type.

    What is no array is left as it is, for msgspec to see whether it is of its type.
    """
    if get_origin(kind) is not np.ndarray:
        return value
    rows = value if value and isinstance(value, list) and isinstance(value[0], list) else [value]
    checked = msgspec.convert(rows, list[list[_element(kind)]])  # type: ignore[misc]
    if len({len(row) for row in checked}) > 1:
        raise ValueError(f"is {shown(value)}, expected rows of one length")
    dtype = get_args(get_args(kind)[1])[0]
    return np.array(checked if rows is value else checked[0], dtype=dtype)


@cache
def _members(kind: Any) -> tuple[Any, ...]:
    if get_origin(kind) is Annotated:
        return _members(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        return tuple(each for member in get_args(kind) for each in _members(member))
    return (kind,)


def _is_record(kind: Any) -> bool:
    return isinstance(kind, type) and (
        issubclass(kind, msgspec.Struct) or dataclasses.is_dataclass(kind)
    )


@cache
def _has_record(kind: Any) -> bool:
    """True if there is a record in a type, however deep."""
    return any(
        _is_record(member) or any(_has_record(each) for each in get_args(member))
        for member in _members(kind)
    )


@cache
def _fields(record: Any) -> dict[str, Any]:
    """Types of a record's entries by key."""
    if issubclass(record, msgspec.Struct):
        return {each.encode_name: each.type for each in msgspec.structs.fields(record)}
    hints = get_type_hints(record, include_extras=True)
    return {each.name: hints[each.name] for each in dataclasses.fields(record)}


@cache
def _required(record: Any) -> tuple[str, ...]:
    """Keys that a record must have."""
    if issubclass(record, msgspec.Struct):
        return tuple(each.encode_name for each in msgspec.structs.fields(record) if each.required)
    return tuple(
        each.name
        for each in dataclasses.fields(record)
        if each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING
    )


@cache
def _meant(record: Any) -> dict[str, str]:
    """Keys of a record by the names of its fields, where these are others."""
    if not issubclass(record, msgspec.Struct):
        return {}
    return {
        each.name: each.encode_name
        for each in msgspec.structs.fields(record)
        if each.name != each.encode_name
    }


def _checked_keys(part: _Part, numbers_as_text: bool) -> Any:
    """The value of a part whose records have the keys of their types; numbers for their text."""
    value, members = part.value, part.members()
    if numbers_as_text and isinstance(value, str):
        return _number(value, members)
    if not numbers_as_text and not _has_record(part.kind):
        return value
    record = part.container() or (members[0] if len(members) == 1 else None)
    if _is_record(record):
        known_keys(value, part.where, tuple(_fields(record)), _required(record), _meant(record))
    found = {key: _checked_keys(each, numbers_as_text) for key, each in part.inside()}
    if isinstance(value, dict):
        return value | found
    if isinstance(value, list):
        return [*found.values(), *value[len(found) :]]
    return value


def _number(text: str, members: tuple[Any, ...]) -> Any:
    """The number that a text is, where there can be a number and no text."""
    if str in members or not {int, float} & {*members}:
        return text
    if len(text) > _LONGEST_NUMBER or not _WRITTEN.fullmatch(text):
        return text
    if int in members and text.lstrip("+-").isdigit():
        return int(text)
    number = float(text) + 0.0  # -0 is 0
    return int(number) if float not in members and number.is_integer() else number


def _explained(part: _Part) -> str:
    """Say what is wrong with a part that does not fit, or with the innermost one in it."""
    container = part.container()
    for key, each in part.inside():
        if get_origin(container) is dict:
            as_key = _Part(get_args(container)[0], key, f"{part.where}: a key")
            if not as_key.fits():
                return _explained(as_key)
        if not each.fits():
            return _explained(each)
    try:
        msgspec.convert(part.value, part.kind, dec_hook=_array)
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, ValueError):
            # The record's own check, which says what is wrong.
            return f"{part.where}: {error.__cause__}"
    notes = get_args(part.kind)[1:] if get_origin(part.kind) is Annotated else ()
    secret = any(note.extra == SECRET for note in notes)
    found = "not shown here" if secret else shown(part.value)
    return f"{part.where} is {found}, expected {expectation(part.kind)}"


def expectation(kind: Any) -> str:
    """A type as a message says it: ``a number >= 0``."""
    if get_origin(kind) is Annotated:
        bare, *notes = get_args(kind)
        return next(
            (str(note.description) for note in notes if note.description), expectation(bare)
        )
    if get_origin(kind) in (Union, UnionType):
        shown_members = (expectation(each) for each in get_args(kind) if each is not UnsetType)
        return " or ".join(dict.fromkeys(shown_members))
    if _is_record(kind):
        return f"a mapping with {', '.join(_required(kind) or _fields(kind))}"
    if isinstance(kind, type) and issubclass(kind, Enum):
        return f"one of {', '.join(str(each.value) for each in kind)}"
    inner = get_args(kind)
    if get_origin(kind) is tuple and inner[-1] is not Ellipsis:
        return f"a list of {len(inner)}: {', '.join(map(expectation, inner))}"
    if get_origin(kind) in (list, tuple) and _is_record(inner[0]):
        return "a list of objects"
    return _EXPECTED.get(get_origin(kind) or kind, "something else")
