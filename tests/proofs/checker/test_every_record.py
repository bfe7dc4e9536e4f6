"""What the checker does not know it refuses: other records, other fields, other values, in every place there is."""

from __future__ import annotations

from copy import deepcopy

import pytest

from shadowprice.proofs.checker import Rejected, check
from shadowprice.proofs.checker.form import FIELDS
from support.certificate_text import records_of, signed
from support.every_record import EVERY
from support.refuted import SEARCHING

BAD = (None, True, -1, 1.5, {}, [], "other", "1/0", "a\n", float("nan"), float("inf"))
"""Values that are right in no place but those of a name, of a switch, and of a list without entries."""
NAMES = {"policy", "id", "type"}
SIGNED = {"instance", "file"}
"""Digests, which are made anew of what was changed."""
AS_BEFORE = {"fault"}
"""A node that fails twice at a moment fails at that moment."""


def shape(value):
    """Names and types of a record, as far as it goes."""
    if isinstance(value, dict):
        return tuple(sorted((key, shape(entry)) for key, entry in value.items()))
    if isinstance(value, list):
        return ("list", *sorted(set(map(shape, value)), key=repr))
    return type(value).__name__


def cases():
    """Every record of every certificate by night, else one of those that have the same fields of the same types."""
    found = {}
    for name, text in EVERY.items():
        for k, record in enumerate(records_of(text)):
            alike = (name, k) if SEARCHING else (record["kind"], record.get("bound"), shape(record))
            found.setdefault(repr(alike), (name, k))
    return [*found.values()]


CASES = cases()


def refused(found):
    """The refusal is one line."""
    with pytest.raises(Rejected) as caught:
        check(signed(found))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def leaves(value, path=()):
    """Places within a value: itself, and those of its entries."""
    if path:
        yield path
    entries = value.items() if isinstance(value, dict) else ()
    for key, entry in enumerate(value) if isinstance(value, list) else entries:
        yield from leaves(entry, (*path, key))


def at(record, path):
    """What holds the last of a path."""
    for key in path[:-1]:
        record = record[key]
    return record


def fine(kind, path, old, value):
    """Whether a value is as it was, a name, a switch, or no prices at all."""
    same = (type(old), old) == (type(value), value)
    name = path[-1] in NAMES and value in ("other", "1/0")
    nothing = kind == "bound" and type(old) is list and value == []
    return same or name or nothing or type(old) is type(value) is bool


def test_every_record_and_every_field_is_tried():
    seen = {kind: set() for kind in FIELDS}
    for text in EVERY.values():
        check(text)
        for record in records_of(text):
            seen[record.pop("kind")] |= record.keys()
    assert seen == {kind: fields | more for kind, (fields, more) in FIELDS.items()}


@pytest.mark.parametrize(("name", "k"), CASES)
def test_a_record_has_its_fields_and_no_others(name, k):
    found = records_of(EVERY[name])
    kind = found[k]["kind"]
    assert "fields" in refused([*found[:k], {**found[k], "more": 1}, *found[k + 1 :]])
    for field in FIELDS[kind][0] - SIGNED:
        less = {each: value for each, value in found[k].items() if each != field}
        refused([*found[:k], less, *found[k + 1 :]])
    if kind == "part":
        for field in found[k].keys() - {"kind"}:
            less = {each: value for each, value in found[k].items() if each != field}
            refused([*found[:k], less, *found[k + 1 :]])


@pytest.mark.parametrize(("name", "k"), CASES)
def test_a_record_is_of_a_kind_that_is_known_and_there_once(name, k):
    found = records_of(EVERY[name])
    for kind in ("joke", None, 1, ["job"], "Job"):
        refused([*found[:k], {**found[k], "kind": kind}, *found[k + 1 :]])
    if k + 1 < len(found):
        refused([*found[: k + 1], {"kind": "joke"}, *found[k + 1 :]])
    if found[k]["kind"] not in AS_BEFORE:
        refused([*found[: k + 1], *found[k:]])


@pytest.mark.parametrize(("name", "k"), CASES)
def test_a_value_is_what_it_can_be(name, k):
    found = records_of(EVERY[name])
    for path in leaves(found[k]):
        if path[0] in SIGNED | {"kind"}:
            continue
        old = at(found[k], path)[path[-1]]
        alike = (float(old), bool(old), str(old)) if type(old) is int and abs(old) < 2**60 else ()
        for value in (*BAD, *alike):
            if fine(found[k]["kind"], path, old, value):
                continue
            changed = deepcopy(found)
            at(changed[k], path)[path[-1]] = value
            refused(changed)
