"""The claim: what the records of a certificate prove."""

from __future__ import annotations

import io
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from math import ceil
from typing import TextIO

from .bounds import bound_of
from .copies import CopySchedule
from .costs import LeastWork, cost_of
from .form import (
    LONGEST_LINE,
    TICKS_PER_S,
    UTILITY,
    Record,
    Rejected,
    need,
    quotient,
    rational,
    read,
    shown,
)
from .gangs import GangSchedule
from .instance import TAKE, CertificateInstance
from .utility import Utilities, bound_utility
from .windows import WINDOWS, WindowTree


def check(text: str) -> Record:
    """The claim of a certificate, if the certificate proves it; else :class:`Rejected` is raised."""
    return check_lines(io.StringIO(text, newline="\n"))


def check_lines(file: TextIO) -> Record:
    """As :func:`check`, of a file that is read line by line."""
    try:
        return prove(read(iter(partial(file.readline, LONGEST_LINE + 1), "")))
    except (Rejected, OSError):
        raise
    except MemoryError:
        raise Rejected("checking it takes more memory than there is") from None
    except Exception as error:  # Whatever it is, nothing is proven.
        raise Rejected(f"a record is malformed: {error!r:.200}") from None


def prove(records: Iterator[tuple[str, Record]]) -> Record:
    """The claim of these records; what is malformed raises some error."""
    instance = CertificateInstance()
    schedule: GangSchedule | CopySchedule | None = None
    bound: Record = {}
    claim: Record = {}
    tree: WindowTree | None = None
    for kind, record in records:
        if kind in TAKE:
            TAKE[kind](instance, record)
        elif kind == "run":
            if schedule is None:
                schedule = scheduled(instance)
            schedule.run(record)
        elif kind == "bound":
            bound = record
            if bound["bound"] == WINDOWS:
                need(instance.arrival and instance.size, "there are no jobs or no nodes")
                tree = WindowTree(instance.counted().relaxed(), bound)
        elif kind == "part":
            need(tree, "parts are of windows of completions, and there are none")
            if tree is not None:
                tree.take(record)
        else:
            claim = record
    ends = (schedule or scheduled(instance)).finish()
    return proven(instance, ends, bound, tree, claim)


def scheduled(instance: CertificateInstance) -> GangSchedule | CopySchedule:
    """The schedule of an instance that is complete, without runs."""
    need(instance.arrival and instance.size, "there are no jobs or no nodes")
    instance.ids.clear()
    return CopySchedule(instance) if instance.copies else GangSchedule(instance)


def proven(
    instance: CertificateInstance,
    ends: list[int],
    bound: Record,
    tree: WindowTree | None,
    claim: Record,
) -> Record:
    """The claim, after cost, bound and ratio."""
    header, counted = instance.header, instance.counted()
    jobs, mine = counted.relaxed(), [ends[j] for j in instance.rows()]
    by_utility = header["objective"] == UTILITY
    fine = claim.keys() & {"cost", "earned"} == {"earned" if by_utility else "cost"}
    need(fine, "the claim is of what the objective is not")
    if by_utility:
        within_utility(counted, jobs, mine, bound, claim)
    else:
        within_cost(counted, jobs, mine, (bound, tree), claim)
    about = instance.of_class()
    need(claim["class"] == about, f"the class is {claim['class']!r:.80}, not {about!r}")
    return {
        **claim,
        "policy": header["policy"],
        "objective": header["objective"],
        "kind": bound["bound"],
        "jobs": len(ends),
        "gpus": jobs.gpus,
        "nodes": len(instance.size),
        "quotas": len(instance.quotas),
        "window": header.get("window", []),
        **{field: header[field] for field in ("utility", "round") if by_utility},
    }


def within_cost(
    instance: CertificateInstance,
    jobs: LeastWork,
    ends: list[int],
    bound: tuple[Record, WindowTree | None],
    claim: Record,
) -> None:
    """The schedule costs what is claimed, and at most so much more than any."""
    until = instance.header.get("stopped", 0)
    cost, offset = cost_of(instance.header["objective"], jobs, [end or until for end in ends])
    need(cost == rational(claim["cost"], "cost"), f"the schedule costs {cost}, not {claim['cost']}")
    value = max(bound_of(instance, jobs, *bound) - offset, Fraction(0))
    least = rational(claim["bound"], "bound")
    need(least <= value, f"the bound is {shown(value)}, not {shown(least)}")
    need(value <= cost, f"the schedule costs {shown(cost)}, less than any can ({shown(value)})")
    ratio = rational(claim["ratio"], "ratio")
    need(ratio >= 1, f"the ratio is {claim['ratio']}, no schedule costs less than the optimum")
    need(cost <= ratio * least, f"the cost {shown(cost)} is not {shown(ratio)} x {shown(least)}")


def within_utility(
    instance: CertificateInstance, jobs: LeastWork, ends: list[int], bound: Record, claim: Record
) -> None:
    """The schedule earns what is claimed, and at most so much less than any could."""
    each = instance.worth, instance.deadline
    utilities = Utilities(jobs.arrival, *each, instance.header["round"], jobs.until)
    earned, stated = utilities.earned(ends), rational(claim["earned"], "utility earned")
    need(stated <= earned, f"the schedule earns {shown(earned)}, not {shown(stated)}")
    most, limit = bound_utility(instance, utilities, jobs, bound), rational(claim["bound"], "bound")
    need(limit >= most, f"the bound is {shown(most)}, not {shown(limit)}")
    need(earned <= most, f"the schedule earns {shown(earned)}, more than any can ({shown(most)})")
    ratio = rational(claim["ratio"], "ratio")
    need(ratio >= 1, f"the ratio is {claim['ratio']}, no schedule earns more than the best")
    need(
        limit <= ratio * stated, f"the bound {shown(limit)} is not {shown(ratio)} x {shown(stated)}"
    )


def at_most(ratio: Fraction) -> str:
    """A ratio that is an upper limit in four digits, rounded up; from 1,000 on without decimals."""
    if ratio.denominator == 1 and ratio < 1_000_000:
        return f"{ratio.numerator}x"
    return f"{ceil(ratio)}x" if 1_000 < ratio < 1_000_000 else f"{quotient(ratio, 4)}x"


def sentences(claim: Record) -> tuple[str, str]:
    """A checked claim in words: what was proven, and of what."""
    policy = claim["policy"] if " " not in claim["policy"] else repr(claim["policy"])
    ratio = at_most(Fraction(claim["ratio"]))
    proven = f"{policy} costs at most {ratio} the offline optimum of {claim['class']}"
    what = claim["objective"]
    if what == UTILITY:
        proven = f"the best total utility of {claim['class']} is at most {ratio} that of {policy}"
        what = f"{claim['utility']} in rounds of {claim['round'] / TICKS_PER_S!r} s"
    return (
        f"proven: {proven} ({what}, by {claim['kind']})",
        f"instance: {claim['jobs']} jobs, {claim['gpus']} GPUs on {claim['nodes']} nodes, "
        f"SHA-256 {claim['instance']}",
    )
