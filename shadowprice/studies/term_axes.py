"""Axes of a study over terms: ``with.TERM.SETTING`` sweeps a setting, ``with.TERM`` whole terms, or that there is none.

An entry is put into the terms of every condition, as if it were written there: runs, their keys and what is refused are
those of conditions that name it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from shadowprice.brief import Brief
from shadowprice.errors import InputError
from shadowprice.instances.entries import known_keys, shown
from shadowprice.instances.terms.options.reading import (
    names_in_order,
    read_setting,
    settings_read,
    term_of,
    term_type,
)
from shadowprice.instances.terms.settings import kinds_of

PREFIX = "with"
ABSENT = "absent"
"""Entry of an axis over a whole term: runs without it."""

ENTRY_KEYS = "with.TERM.SETTING"
"""Form of the keys of these axes in a study file, as its page and messages have it."""

AxisLabel: TypeAlias = str | int | float
"""Entry of an axis as the columns of results have it."""


@dataclass(frozen=True, repr=False)
class TermAxis(Brief):
    """An axis over a setting of a term, or over a whole term.

    Parameters
    ----------
    term : str
    setting : str or None
        None of a whole term.
    values : tuple
        Values of the setting; of a whole term :data:`ABSENT` or its settings by name.
    """

    term: str
    setting: str | None
    values: tuple[Any, ...]

    @classmethod
    def of(cls, name: str, values: Iterable[Any]) -> TermAxis:
        """The axis of a key of a study file."""
        term, _, setting = name.removeprefix(f"{PREFIX}.").partition(".")
        return cls(term, setting or None, tuple(values))

    @property
    def name(self) -> str:
        """Key of the axis in a study file, and its column of results."""
        return f"{PREFIX}.{self.title}"

    @property
    def title(self) -> str:
        """Name of what is swept."""
        return self.term if self.setting is None else f"{self.term}.{self.setting}"

    def label(self, value: Any) -> AxisLabel:
        """Column entry of one of its values: the value of a setting, a whole term as an option has it."""
        if self.setting is not None or value == ABSENT:
            found: AxisLabel = value
            return found
        return str(term_of(self.term, value, self.name))

    def words(self, label: AxisLabel) -> str:
        """A column entry in words: ``failures.mtbf_s 43200``, ``restart absent``."""
        if self.setting is None and label != ABSENT:
            return str(label)
        whole = isinstance(label, float) and label.is_integer() and abs(label) < 1e15
        return f"{self.title} {f'{label:.0f}' if whole else label}"

    def put(self, terms: Mapping[str, Any], value: Any) -> dict[str, Any]:
        """Terms of conditions, settings by name, with one of its values."""
        if self.setting is not None:
            return {**terms, self.term: {**terms.get(self.term, {}), self.setting: value}}
        return dict(terms) if value == ABSENT else {**terms, self.term: value}


AxisPoint: TypeAlias = tuple[tuple[TermAxis, Any], ...]
"""A value of every axis."""


def points_of(axes: Iterable[TermAxis]) -> Iterator[AxisPoint]:
    """All combinations of the axes' values; one, without any, where there is no axis."""
    return itertools.product(*([(axis, value) for value in axis.values] for axis in axes))


def put_all(terms: Mapping[str, Any], point: AxisPoint) -> dict[str, Any]:
    """Terms of conditions, settings by name, with a value of every axis."""
    found = dict(terms)
    for axis, value in point:
        found = axis.put(found, value)
    return found


def is_axis(key: object) -> bool:
    """True if a key of a study file is meant to be an axis over a term."""
    return isinstance(key, str) and key.partition(".")[0] == PREFIX


def read_axes(terms: Mapping[str, object], source: str) -> tuple[TermAxis, ...]:
    """Axes as a study file has them: lists of values by key.

    Raises
    ------
    InputError
        Naming file, key, value and what was expected.
    """
    axes = tuple(_axis(key, values, f"{source}: {key}") for key, values in terms.items())
    whole = {axis.term: axis for axis in axes if axis.setting is None}
    for axis in axes:
        if axis.setting is not None and axis.term in whole:
            raise InputError(
                f"{source}: {axis.name} and {whole[axis.term].name} are over one term, expected one of the two"
            )
    return axes


def _axis(key: str, values: object, where: str) -> TermAxis:
    if key.endswith(".") or key == PREFIX:
        raise InputError(
            f"{where}: is no axis, expected {ENTRY_KEYS} or {PREFIX}.TERM; terms of all runs are in conditions"
        )
    named = TermAxis.of(key, ())
    kinds = kinds_of(term_type(named.term, f"{where}:"))
    if named.setting is not None:
        known_keys({named.setting: values}, where, tuple(kinds))
    if not isinstance(values, list | tuple):
        raise InputError(f"{where} is {shown(values)}, expected a list")
    if not values:
        raise InputError(f"{where} is empty, expected at least one")
    places = ((value, f"{where}[{k}]") for k, value in enumerate(values))
    axis = replace(named, values=tuple(_value(named, value, place) for value, place in places))
    labels = [axis.label(value) for value in axis.values]
    if len(set(labels)) < len(labels):
        raise InputError(f"{where} has {', '.join(map(str, labels))}, expected each once")
    return axis


def _value(axis: TermAxis, value: object, where: str) -> Any:
    """A value of an axis, numbers for their text."""
    if axis.setting is not None:
        return read_setting(axis.term, axis.setting, value, where)
    if value == ABSENT:
        return ABSENT
    if not isinstance(value, Mapping):
        raise InputError(
            f"{where} is {shown(value)}, expected {ABSENT} or a mapping of settings, {{}} for none"
        )
    return term_of(axis.term, value, f"{where}:").settings


def terms_without_axes(
    terms: Mapping[str, object], axes: tuple[TermAxis, ...], source: str, conditions: str
) -> dict[str, Any]:
    """Terms of conditions, settings as numbers where they are some, of which axes say the rest.

    Every combination of values is tried.

    Parameters
    ----------
    source, conditions : str
        File, and place of the conditions in it, for messages.

    Raises
    ------
    InputError
        If a term or setting is not as expected, by itself or with a value of an axis; or if both the conditions and an
        axis say it.
    """
    where = f"{source}: {conditions}: {PREFIX}:"
    swept = {axis.term for axis in axes}
    found = {
        name: settings_read(name, settings, where)
        if name in swept
        else term_of(name, settings, where).settings
        for name, settings in terms.items()
    }
    for axis in axes:
        if axis.term in found if axis.setting is None else axis.setting in found.get(axis.term, {}):
            raise InputError(
                f"{where} has {axis.title}, over which {axis.name} is an axis, expected one of the two"
            )
    for term in sorted(swept):
        of_term = [axis for axis in axes if axis.term == term and axis.setting is not None]
        for point in points_of(of_term) if of_term else ():
            told = ", ".join(axis.words(value) for axis, value in point)
            term_of(term, put_all(found, point)[term], f"{source}: {conditions}, {told}: {PREFIX}:")
    return {name: found[name] for name in names_in_order(found)}
