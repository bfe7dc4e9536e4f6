"""Bounds without the instance and the runs: the lines of a certificate that are left, and their way back.

A bound holds whatever the schedule beside it. What is stored of a certificate is its header, its bound and its claim;
with the instance, which is known by its name, and any verified schedule it becomes a certificate again, and the
checker decides.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TextIO

from shadowprice.analysis.certificates import records
from shadowprice.analysis.certificates.certificate_file import (
    expect_each_begins_once,
    instance_digest,
    run_records,
    write_records,
)
from shadowprice.analysis.certificates.exact_cost import exact_cost
from shadowprice.analysis.certificates.records import text_of
from shadowprice.analysis.outcome import Outcome
from shadowprice.errors import InputError, VerificationError
from shadowprice.instances.files import parse_json
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.instances.schedule_class import ScheduleClass
from shadowprice.proofs import checker
from shadowprice.proofs.checker.form import rational
from shadowprice.solvers.offline.bounds import Bound

Record = dict[str, Any]

_OF_A_BOUND = ("bound", "part")
_line = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


@dataclass(frozen=True)
class StoredBound:
    """A bound of all schedules of an instance's class.

    Parameters
    ----------
    starts_once : bool
        Whether it is of schedules in which each job begins once.
    of_class : str
        Of which schedules it is, in words.
    ticks : Fraction
        No schedule of the class costs less.
    records : tuple of dict
        Multipliers, as certificates have them.
    """

    starts_once: bool
    of_class: str
    ticks: Fraction
    records: tuple[Record, ...]

    @property
    def kind(self) -> str:
        """Name of the bound."""
        return str(self.records[0]["bound"])

    @classmethod
    def of_bound(cls, bound: Bound) -> StoredBound:
        """Those of a certified bound.

        Raises
        ------
        InputError
            If it is not certified, or of consolidated schedules alone.
        """
        if bound.record is None or not bound.certified:
            raise InputError(f"bound {bound.kind!r}: is not certified, expected one that is")
        if bound.holds_for.consolidated:
            raise InputError(f"bound {bound.kind!r}: is of {bound.of_class}, expected one of all")
        parts = (dict(bound.record), *(dict(part) for part in bound.parts))
        return cls(not bound.holds_for.preemptive, bound.of_class, bound.ticks, parts)

    @classmethod
    def of_certificate(
        cls, text: str, instance: Instance, goal: Objective, *, preemptive: bool, where: str
    ) -> StoredBound:
        """That of a certificate which the checker accepts.

        Raises
        ------
        VerificationError
            If the checker rejects it, or it is about another instance, objective or class.
        """
        try:
            claim = checker.check_lines(io.StringIO(text, newline="\n"))
        except checker.Rejected as error:
            raise VerificationError(f"{where}: {error}") from None
        pairs = ScheduleClass.allowed(instance, preemptive=True).sharing
        about = instance_digest(instance, pairs=pairs)
        if claim["instance"] != about:
            raise VerificationError(
                f"{where}: is about another instance (SHA-256 {claim['instance']}), expected {about}"
            )
        found = [json.loads(line) for line in text.splitlines()]
        once = found[0].get("starts") == "once"
        expected = records.header(instance, found[0]["policy"], str(goal), preemptive=not once)
        if found[0] != expected or (once and preemptive):
            allowed = ScheduleClass.allowed(instance, preemptive=preemptive)
            raise VerificationError(
                f"{where}: is about {claim['objective']} of {claim['class']}, expected {goal} of {allowed}"
            )
        parts = tuple(each for each in found if each["kind"] in _OF_A_BOUND)
        return cls(once, claim["class"], Fraction(claim["bound"]), parts)

    def text(self) -> str:
        """Lines of JSON: a head, and the multipliers."""
        head = {
            "kind": "head",
            "starts": "once" if self.starts_once else "any",
            "class": self.of_class,
            "bound": text_of(self.ticks),
        }
        return "".join(f"{_line(each)}\n" for each in (head, *self.records))

    @classmethod
    def of_text(cls, text: str, where: str) -> StoredBound:
        """Inverse of :meth:`text`.

        Raises
        ------
        InputError
            If it is not of the form.
        """
        try:
            head, *parts = (parse_json(line, where) for line in text.splitlines())
            fine = head["kind"] == "head" and parts and parts[0]["kind"] == "bound"
            fine = fine and all(each["kind"] in _OF_A_BOUND for each in parts)
            if not fine:
                raise InputError(f"{where}: expected a head and records of a bound")
            value = rational(head["bound"], "bound")
            return cls(head["starts"] == "once", str(head["class"]), value, tuple(parts))
        except InputError:
            raise
        except (ValueError, KeyError, TypeError, checker.Rejected) as error:
            raise InputError(f"{where}: {error!r:.200}, expected a bound of the library") from None

    def write_certificate(self, outcome: Outcome, goal: Objective, file: TextIO) -> None:
        """Certificate of a verified schedule with this bound, line by line; nothing is checked."""
        instance = outcome.instance
        pairs = ScheduleClass.allowed(instance, preemptive=True).sharing
        cost = exact_cost(instance, goal, outcome.end_s)
        ratio = cost / self.ticks if self.ticks else Fraction(1)
        claim = {
            "class": self.of_class,
            "cost": text_of(cost),
            "bound": text_of(self.ticks),
            "ratio": text_of(ratio),
        }
        header = records.header(
            instance, outcome.policy, str(goal), preemptive=not self.starts_once
        )
        given: Iterable[Record] = records.instance_records(instance, pairs=pairs)
        write_records(file, header, given, run_records(outcome), self.records, claim)

    def check(self, outcome: Outcome, goal: Objective, *, preemptive: bool) -> None:
        """Make the certificate of a verified schedule and let the checker decide.

        Raises
        ------
        VerificationError
            If the checker rejects it, or the bound is of fewer schedules than the instance allows.
        """
        source = outcome.instance.workload.source
        if self.starts_once and preemptive:
            raise VerificationError(
                f"{source}: the bound is of schedules in which each job begins once, expected one of "
                "preemptive schedules"
            )
        if self.starts_once:
            expect_each_begins_once(outcome)
        file = io.StringIO(newline="\n")
        self.write_certificate(outcome, goal, file)
        file.seek(0)
        try:
            checker.check_lines(file)
        except checker.Rejected as error:
            raise VerificationError(f"{source}: bound of {goal}: {error}") from None
