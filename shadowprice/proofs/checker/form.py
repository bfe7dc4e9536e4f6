"""Numbers, records and digests of certificates: their form."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from math import lcm
from typing import Any

Record = dict[str, Any]
FORMAT = 3
LARGEST = 2**100
NEVER = 2**60
MOST = 10**1000
LONGEST_LINE = 10**8
"""Characters of a line, its line break among them."""
PRICE_UNIT = 2**20
FINE = 2**1200
TICKS_PER_S = 2**20
WHOLE_GPU = 1000
UTILITY = "utility"
OVER_TIME = ("effective_throughput", "completion_time", "fairness")
BY_DEADLINE = "deadline"
RATIONAL = re.compile(r"[0-9]{1,1000}/[0-9]{1,1000}", re.ASCII)
canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode
"""The one way to write a record."""


class Rejected(Exception):
    """The certificate does not prove its claim; the message says where it fails."""


def need(fine: object, message: str) -> None:
    """Reject unless a condition holds."""
    if not fine:
        raise Rejected(message)


def whole(value: Any, what: str, least: int = 0) -> int:
    """A whole number from ``least`` on."""
    if type(value) is not int or not least <= value <= LARGEST:
        raise Rejected(f"{what} is {value!r:.80}, not an integer from {least} to 2^100")
    return value


def rational(value: Any, what: str) -> Fraction:
    """A number >= 0 as an integer or "p/q" in lowest terms, of at most 1,000 digits each."""
    if type(value) is int:
        need(0 <= value < MOST, f"{what} is {value!r:.80}, not a number from 0 to 10^1000")
        return Fraction(value)
    say = f'{what} is {value!r:.80}, not an integer or "p/q" >= 0 in lowest terms'
    need(type(value) is str and RATIONAL.fullmatch(value), say)
    number = Fraction(*map(int, value.split("/")))
    need(number.denominator > 1 and str(number) == value, say)
    return number


def double(value: Any, what: str) -> float:
    """A number >= 0 that a double is, exactly."""
    number = rational(value, what)
    need(Fraction(float(number)) == number, f"{what} is {value!r:.80}, which is no double")
    return float(number)


def name(value: Any, what: str) -> str:
    """A name that prints on one line as what it is."""
    fine = type(value) is str and 0 < len(value) <= 1000 and value.isprintable()
    need(fine, f"{what} is {value!r:.80}, not a printable name of 1 to 1,000 characters")
    return str(value)


def total(terms: Iterable[Fraction], common: int) -> Fraction:
    """Their sum, rounded down to a multiple of 2^-1200; pairwise, for denominators may all be different.

    They are added up as multiples of 1 / ``common``, by which denominators that have much in common are short.
    """
    by_unit: dict[int, int] = {}
    for each in terms:
        term = each * common
        by_unit[term.denominator] = by_unit.get(term.denominator, 0) + term.numerator
    sums = [(above, below) for below, above in by_unit.items()]
    while len(sums) > 1:
        pairs = zip(sums[::2], sums[1::2], strict=False)
        sums = [*((a * d + c * b, b * d) for (a, b), (c, d) in pairs), *sums[len(sums) & ~1 :]]
    return Fraction((sums[0][0] << 1200) // (sums[0][1] * common), 1 << 1200)


def listed(value: Any, what: str) -> list[Any]:
    """A list."""
    if type(value) is not list:
        raise Rejected(f"{what} is {value!r:.80}, not a list")
    return value


def rows_of_prices(rows: list[Any]) -> list[list[int]]:
    """Prices in rows, whole numbers."""
    return [[whole(price, "price") for price in listed(row, "prices")] for row in rows]


def digest(lines: Iterable[str]) -> str:
    """SHA-256 of lines of text."""
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


FIELDS: dict[str, tuple[set[str], set[str]]] = {
    "header": (
        {"format", "policy", "objective", "start", "restart", "migration"},
        {"placement", "window", "stopped", "preemption", "utility", "round", "rounds", "types"}
        | {"starts"},
    ),
    "copies": ({"round", "restart", "aggregation", "most"}, set()),
    "checkpoints": ({"interval", "cost", "until"}, set()),
    "network": ({"intra", "nic", "gpus", "sharing"}, set()),
    "node": ({"node", "gpus", "type"}, {"cpus", "memory"}),
    "fault": ({"node", "down", "up"}, set()),
    "quota": ({"quota", "periods"}, set()),
    "widths": ({"widths", "speeds"}, set()),
    "profile": ({"profile", "cells"}, set()),
    "graph": ({"graph", "microbatches", "stages", "links"}, set()),
    "job": (
        {"job", "id", "arrival", "gpus", "weight", "run"},
        {"part", "spread", "widths", "profile", "sort", "beside", "graph", "work", "steps", "rate"}
        | {"quota", "worth", "deadline"},
    ),
    "run": ({"job", "start", "end", "overhead", "pieces"}, {"partner", "goes_on", "copy", "steps"}),
    "bound": ({"bound", "grid", "prices"}, {"jobs", "unit", "rows", "values", "exponent", "least"}),
    "part": (set(), {"cut", "at", "first", "grid", "prices"}),
    "claim": ({"class", "bound", "ratio", "instance", "file"}, {"cost", "earned"}),
}
SHAPES: dict[str, dict[str, type]] = {
    "header": {"restart": list, "window": list},
    "quota": {"periods": list},
    "widths": {"speeds": list},
    "profile": {"cells": list},
    "graph": {"stages": list, "links": list},
    "job": {"run": dict, "beside": dict, "rate": dict},
    "run": {"pieces": list},
    "bound": dict.fromkeys(("grid", "prices", "jobs", "rows", "values"), list),
    "part": {"grid": list, "prices": list},
}
"""Fields that are lists or objects, by the kind of their record."""
OF_ALL_JOBS = {"quota", "worth", "deadline"}
"""Fields that no job's speed depends on."""
ORDER = {kind: place for place, kind in enumerate(FIELDS)}
ONCE = {"header", "copies", "checkpoints", "network", "bound", "claim"}


class LinesDigest:
    """SHA-256 of lines of text that come one by one, as they would be joined."""

    def __init__(self) -> None:
        self.sum, self.begun = hashlib.sha256(), False

    def add(self, line: str) -> None:
        """Take the next line."""
        self.sum.update(b"\n" + line.encode() if self.begun else line.encode())
        self.begun = True


def read(lines: Iterable[str]) -> Iterator[tuple[str, Record]]:
    """Kind and fields of every record, after form and order; the claim comes last, after the digests."""
    count = dict.fromkeys(FIELDS, 0)
    about, every, latest, claim = LinesDigest(), LinesDigest(), 0, None
    for number, line in enumerate(lines, 1):
        need(len(line) <= LONGEST_LINE, f"line {number} has more than 10^8 characters")
        need(line[-1:] == "\n", "the file does not end with a line break")
        need(line.isascii(), "the file is not ASCII")
        record, text = json.loads(line), line[:-1]
        need(type(record) is dict, f"line {number} is not an object")
        need(canonical(record) == text, f"line {number} is not in canonical form")
        kind = record.pop("kind", None)
        fine = type(kind) is str and kind in ORDER
        need(fine, f"line {number}: kind is {kind!r:.80}, not one of {', '.join(ORDER)}")
        check_form(number, kind, record)
        need(ORDER[kind] >= latest, f"line {number}: {kind} comes too late")
        count[kind], latest = count[kind] + 1, ORDER[kind]
        if count[kind] != 1 or not count["header"]:
            check_count(count, {kind} & ONCE | {"header"})
        if kind == "claim":
            claim = record
            continue
        every.add(text)
        if ORDER["header"] < latest < ORDER["run"]:
            about.add(text)
        yield kind, record
    check_count(count, {"header", "bound", "claim"})
    if claim is not None:
        need(claim["instance"] == about.sum.hexdigest(), "the digest of the instance is another")
        signed = {"kind": "claim", **claim}
        signature = signed.pop("file")
        every.add(canonical(signed))
        need(signature == every.sum.hexdigest(), "the digest of the file is another")
        yield "claim", claim


def check_count(count: dict[str, int], kinds: Iterable[str]) -> None:
    """There is one record of each of these kinds."""
    for kind in sorted(kinds):
        need(count[kind] == 1, f"{count[kind]} lines are of kind {kind}, not one")


def check_form(number: int, kind: str, record: Record) -> None:
    """The format is known, and a record has its fields and no others."""
    if kind == "header":
        made = record.get("format")
        fine = type(made) is int and made == FORMAT
        need(fine, f"format is {made!r:.80}, this program checks format {FORMAT}")
    fields, more = FIELDS[kind]
    if record.keys() != fields and not fields <= record.keys() <= fields | more:
        has = repr(", ".join(sorted(record)))[1:-1]
        raise Rejected(f"line {number}: {kind} has fields {has:.200}")
    for field, shape in SHAPES.get(kind, {}).items():
        if field in record and type(record[field]) is not shape:
            what = "a list" if shape is list else "an object"
            raise Rejected(
                f"line {number}: {field} of a {kind} is {record[field]!r:.80}, not {what}"
            )


def summed(terms: Iterable[Fraction]) -> Fraction:
    """Their sum; where its denominator would have more than 900 digits, in units of 2^-1200, of each rounded down."""
    numerator, denominator, exact = 0, 1, True
    for term in terms:
        more = lcm(denominator, term.denominator) if exact else denominator
        if exact and more >= 10**900:
            numerator, exact = numerator * FINE // denominator, False
            more = denominator = FINE
        if exact:
            numerator *= more // denominator
            numerator += term.numerator * (more // term.denominator)
        else:
            numerator += term.numerator * FINE // term.denominator
        denominator = more
    return Fraction(numerator, denominator)


def shown(number: Fraction) -> str:
    """A number for a message: exact if short, else some digits of it."""
    exact = str(number)
    return exact if len(exact) <= 40 else f"about {quotient(number, 12)}"


def quotient(number: Fraction, digits: int) -> Decimal:
    """A number >= 0 in decimal digits, rounded up; numbers beyond the range of floats are none here."""
    context = Context(prec=digits, rounding=ROUND_CEILING)
    return context.divide(Decimal(number.numerator), Decimal(number.denominator))
