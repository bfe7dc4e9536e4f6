"""Certificates of a few jobs that are written by hand, in ticks."""

from __future__ import annotations

from fractions import Fraction

from shadowprice.proofs.checker.form import ORDER
from support.certificate_text import Record, records_of, signed

CLASS = "preemptive schedules in which no two jobs share a GPU"
PARTS = "preemptive schedules in which no GPU is held by more than all of it"
PAIRS = "preemptive schedules in which at most two jobs share a GPU"


def node(number: int, gpus: int, kind: str = "a", **more: int) -> Record:
    """A node."""
    return {"kind": "node", "node": number, "gpus": gpus, "type": kind, **more}


def job(number: int, ticks: int | dict[str, int], gpus: int = 1, **more: object) -> Record:
    """A job that takes so many ticks, on type `a` or by type."""
    run = ticks if isinstance(ticks, dict) else {"a": ticks}
    plain = {"id": f"job {number}", "arrival": 0, "gpus": gpus, "weight": 1, "run": run}
    return {"kind": "job", "job": number, **plain, **more}


def run(number: int, start: int, end: int, *pieces: list[object], **more: object) -> Record:
    """A run of a job on pieces, the GPU of node 0 if there are none."""
    held = list(pieces) or [[0, 1]]
    times = {"start": start, "end": end, "overhead": 0}
    return {"kind": "run", "job": number, **times, "pieces": held, **more}


def least(kind: str, grid: list[int] | None = None, prices: list[object] | None = None) -> Record:
    """A bound."""
    return {"kind": "bound", "bound": kind, "grid": grid or [], "prices": prices or []}


def exact(number: Fraction | int) -> int | str:
    """A number as certificates write it."""
    return int(number) if Fraction(number).denominator == 1 else str(Fraction(number))


def certificate(
    *records: Record,
    about: str = CLASS,
    bound: Fraction | int = 1,
    cost: Fraction | int | None = None,
    **header: object,
) -> str:
    """The certificate of these records, whose claim has the cost of its runs and a ratio that follows.

    A header is added, with other fields if any are named, and the bound ``fluid`` if there is none.
    """
    start = header.get("start", 0)
    if start and about == CLASS and not any("beside" in record for record in records):
        about += f", a start takes {Fraction(str(start)) / 2**20 * 1.0!r} s"
    opening = {"format": 3, "policy": "by hand", "objective": "completion"}
    charges = {"start": 0, "migration": 0, "restart": [[1, 0]]}
    found: list[Record] = [{"kind": "header", **opening, **charges, **header}, *records]
    if not any(record["kind"] == "bound" for record in found):
        found.append(least("fluid"))
    found.sort(key=lambda record: ORDER[record["kind"]])
    paid = cost_of(found) if cost is None else cost
    ratio = exact(Fraction(paid) / Fraction(bound))
    claim = {"class": about, "cost": exact(paid), "bound": exact(bound), "ratio": ratio}
    return signed([*found, {"kind": "claim", **claim}])


def earning(
    *records: Record,
    earned: Fraction | int,
    bound: Fraction | int,
    about: str = CLASS,
    **header: object,
) -> str:
    """The certificate of these records, whose claim is of the utility that they earn."""
    more = {"utility": "deadline", **header}
    found = records_of(certificate(*records, about=about, objective="utility", **more))
    found[-1].pop("cost")
    ratio = exact(Fraction(bound) / Fraction(earned))
    found[-1].update(earned=exact(earned), bound=exact(bound), ratio=ratio)
    return signed(found)


def cost_of(found: list[Record]) -> Fraction:
    """Cost of the runs as they are written, of jobs with runs."""
    header, jobs = found[0], [record for record in found if record["kind"] == "job"]
    ends: dict[int, int] = {}
    for record in found:
        if record["kind"] == "run":
            ends[record["job"]] = max(ends.get(record["job"], 0), record["end"])
    first, last = header.get("window", (0, len(jobs)))
    mine = [each for each in jobs[first:last] if each["job"] in ends]
    if header["objective"] == "makespan":
        return Fraction(max(ends.values()) - min(each["arrival"] for each in mine))
    begun = {each["job"]: each["arrival"] for each in mine if header["objective"] == "flow"}
    return sum(
        (
            Fraction(each["weight"]) * (ends[j] - begun.get(j, 0))
            for each in mine
            for j in [each["job"]]
        ),
        Fraction(0),
    )
