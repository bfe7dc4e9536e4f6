"""The file of a certificate: records line by line, digests, and what cannot be written at all."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TextIO, TypeVar

import numpy as np

from shadowprice.analysis.certificates import records
from shadowprice.analysis.certificates.exact_cost import measured_rows
from shadowprice.analysis.certificates.job_utilities import JobUtilities
from shadowprice.analysis.certificates.measured_jobs import completed_instance, measured_instance
from shadowprice.analysis.certificates.records import Record
from shadowprice.analysis.certificates.start_order import blocks_by_start
from shadowprice.analysis.outcome import Outcome, VerifiedRun
from shadowprice.analysis.streamed_outcome import StreamedOutcome
from shadowprice.errors import InputError, VerificationError
from shadowprice.instances.features import Feature
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule
from shadowprice.instances.sharing_gain import SharingGain
from shadowprice.proofs import checker

Claim = TypeVar("Claim")

_line = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


class _LinesDigest:
    """SHA-256 of lines that come one by one."""

    def __init__(self) -> None:
        self.digest, self._begun = hashlib.sha256(), False

    def add(self, line: str) -> None:
        """Take the next line."""
        self.digest.update(f"\n{line}".encode("ascii") if self._begun else line.encode("ascii"))
        self._begun = True


def write_records(
    file: TextIO,
    header: Record,
    jobs: Iterable[Record],
    runs: Iterable[Record],
    bound: Iterable[Record],
    claim: Record,
) -> str:
    """Write a certificate of these records and sign its claim; returns the digest of the instance."""
    whole, about = _LinesDigest(), _LinesDigest()

    def write(record: Record) -> str:
        line = _line(record)
        whole.add(line)
        file.write(f"{line}\n")
        return line

    write(header)
    for record in jobs:
        about.add(write(record))
    for record in chain(runs, bound):
        write(record)
    signed = {"kind": "claim", **claim, "instance": about.digest.hexdigest()}
    whole.add(_line(signed))
    file.write(f"{_line({**signed, 'file': whole.digest.hexdigest()})}\n")
    return about.digest.hexdigest()


def instance_digest(
    instance: Instance, utilities: JobUtilities | None = None, *, pairs: bool = False
) -> str:
    """SHA-256 of what is given, as certificates have it; with ``pairs`` of a class in which jobs may share GPUs."""
    about = _LinesDigest()
    for record in records.instance_records(instance, pairs=pairs, utilities=utilities):
        about.add(_line(record))
    return about.digest.hexdigest()


def bounded_digest(instance: Instance) -> str:
    """SHA-256 of all that bounds of an instance depend on: the jobs that count, without what only restricts schedules.

    Where two jobs may share GPUs those that do not count are partners of those that do.
    """
    pairs, safe = SharingGain.of(instance) is not None, replace(instance, failures=None)
    about, bounded = _LinesDigest(), completed_instance(safe) if pairs else measured_instance(safe)
    if pairs:
        about.add(repr((instance.until_complete, instance.stopped_s)))
    for record in records.instance_records(bounded, pairs=pairs):
        about.add(_line(record))
    return about.digest.hexdigest()


def checked_text(write: Callable[[TextIO], Claim]) -> tuple[Claim, str]:
    """A claim and the text of its certificate, which the checker accepts."""
    file = io.StringIO(newline="\n")
    written = write(file)
    file.seek(0)
    expect_accepted(file)
    return written, file.getvalue()


def checked_file(path: Path, write: Callable[[TextIO], Claim]) -> Claim:
    """The claim of a certificate in a file, which is written and checked line by line."""
    with path.open("w", encoding="ascii", newline="\n") as file:
        written = write(file)
    with path.open(encoding="ascii", newline="\n") as file:
        expect_accepted(file)
    return written


def expect_accepted(lines: TextIO) -> None:
    """Raise VerificationError unless the checker accepts a certificate that was made here."""
    try:
        checker.check_lines(lines)
    except checker.Rejected as error:
        raise VerificationError(f"the certificate that was made is rejected: {error}") from None


def run_records(outcome: VerifiedRun) -> Iterator[Record]:
    """Runs in order of their starts."""
    for rows in _blocks(outcome):
        yield from records.runs(outcome.instance, rows)


def expect_certifiable(outcome: VerifiedRun) -> None:
    """Raise InputError for a run of no jobs, or with names or numbers that cannot be written."""
    instance, jobs = outcome.instance, outcome.instance.workload
    source = jobs.source
    if not len(jobs):
        raise InputError(f"{source}: has no jobs, expected some to certify a schedule of")
    if not len(measured_rows(instance)):
        whose = "" if instance.until_complete is None else " of the window"
        raise InputError(
            f"{source}: the run was stopped at {instance.stopped_s!r} s, before a job{whose} arrived; "
            "expected a later time"
        )
    _expect_small_enough(instance)
    names = [("policy", outcome.policy), *(("job", each) for each in jobs.id.tolist())]
    names += [("GPU type", node.gpu_type) for node in instance.cluster.nodes]
    for what, text in names:
        if not isinstance(text, str) or not 0 < len(text) <= 1000 or not text.isprintable():
            raise InputError(
                f"{source}: {what} {text!r:.80}: certificates have printable names of 1 to 1,000 characters"
            )
    ticks = jobs.arrival_s * TICKS_PER_S
    for what, values, bad in (
        ("arrival_s", jobs.arrival_s, ~((ticks >= 0) & (ticks == np.floor(ticks)))),
        ("weight", jobs.weight, ~((jobs.weight >= 0) & np.isfinite(jobs.weight))),
    ):
        if bad.any():
            k = int(bad.argmax())
            expected = "a multiple of 2**-20" if what == "arrival_s" else "a number"
            raise InputError(
                f"{source}: job {jobs.id[k]!r}: {what} is {float(values[k])!r}, expected {expected} >= 0"
            )


def expect_each_begins_once(outcome: VerifiedRun) -> None:
    """Raise InputError for a run in which a job begins again, or may have to: nodes fail, or it runs as copies."""
    instance = outcome.instance
    jobs = instance.workload
    for feature, what in (
        (Feature.FAILURES, "nodes fail, after which jobs begin again"),
        (Feature.COPIES, "jobs run as copies, which begin again with every round"),
    ):
        if feature in instance.features:
            raise InputError(f"{jobs.source}: {what}; expected a run in which each job begins once")
    begun = np.zeros(len(jobs), dtype=bool)
    for rows in _blocks(outcome):
        # A run that goes on beside another partner does not begin again.
        runs = rows.runs[~rows.continues[rows.runs]]
        job = rows.job[runs]
        again = runs[begun[job] | (np.append(-1, job[:-1]) == job)]
        begun[job] = True
        if len(again):
            row = again[rows.start_s[again].argmin()]
            name, at_s = str(jobs.id[rows.job[row]]), float(rows.start_s[row])
            raise InputError(
                f"{jobs.source}: job {name!r} begins again at {at_s!r} s, expected a run in which each job begins "
                "once, to be compared with non-preemptive schedules"
            )


def _blocks(outcome: VerifiedRun) -> Iterator[Schedule]:
    """Rows of what was done; of several blocks one starts after the other."""
    if isinstance(outcome, Outcome):
        yield outcome.schedule
    elif isinstance(outcome, StreamedOutcome):
        yield from blocks_by_start(outcome.segments)


def _expect_small_enough(instance: Instance) -> None:
    """Raise InputError for more of something than certificates have."""
    limits, cluster = checker.limits, instance.cluster
    graphs = () if instance.graphs is None else instance.graphs.graph
    for what, number, most in (
        ("jobs", len(instance.workload), limits.MOST_JOBS),
        ("GPUs", cluster.total_gpus, limits.MOST_GPUS),
        ("GPU types", len({node.gpu_type for node in cluster.nodes}), limits.MOST_TYPES),
        ("stages of a graph", max((len(g.stages) for g in graphs), default=0), limits.MOST_STAGES),
        ("links of a graph", max((len(g.links) for g in graphs), default=0), limits.MOST_LINKS),
    ):
        if number > most:
            raise InputError(
                f"{instance.workload.source}: {number} {what}, expected at most {most}: certificates have no more"
            )
