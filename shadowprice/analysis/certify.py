"""Certificates: what a run claims to be within, written so that anyone can check it.

The format is in ``proofs/checker/README.md``. Digests, cost and ratio are computed here, multipliers by
``shadowprice.solvers``. What the jobs of an instance have to do, and in which class of schedules, the program says that
checks certificates, ``shadowprice/proofs/checker``, which needs nothing but Python's standard library and knows nothing
of this; it is asked again at the end, and what it rejects is not returned.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TextIO

from shadowprice.analysis.bound_history import BoundHistory
from shadowprice.analysis.bounds import bounds_of, certified_and_largest
from shadowprice.analysis.certificates import records
from shadowprice.analysis.certificates.cascade import expect_end
from shadowprice.analysis.certificates.certificate_file import (
    checked_file,
    checked_text,
    expect_certifiable,
    expect_each_begins_once,
    run_records,
    write_records,
)
from shadowprice.analysis.certificates.checked_class import KNOWS as CLASS_KNOWS
from shadowprice.analysis.certificates.effort import BoundEffort
from shadowprice.analysis.certificates.exact_cost import exact_cost
from shadowprice.analysis.certificates.measured_jobs import completed_instance
from shadowprice.analysis.certificates.records import text_of
from shadowprice.analysis.outcome import Outcome, VerifiedRun
from shadowprice.analysis.wording import at_most, cost_in_words
from shadowprice.errors import InputError
from shadowprice.instances.features import missing, require
from shadowprice.instances.objective import BoundedCost, Objective
from shadowprice.instances.schedule_class import KNOWS as CLASSES_KNOWS
from shadowprice.instances.schedule_class import ScheduleClass
from shadowprice.solvers.offline.bounds import Bound

KNOWS = CLASS_KNOWS
"""What every certificate is of; a bound that knows less is left out."""


@dataclass(frozen=True, repr=False)
class Certified(BoundedCost):
    """Claim of a certificate.

    Parameters
    ----------
    policy, objective, bound_kind : str
        Whose cost, of what, and the kind of bound.
    cost_ticks, bound_ticks : Fraction
        The schedule's cost, and a lower bound of the offline optimum of the class, as they are written.
    of_class : str
        Of which schedules the optimum is meant.
    instance : str
        SHA-256 of the lines that say what was given.
    history : BoundHistory
        Bounds that were tried, in the order in which they were found.
    failing : bool
        Whether nodes failed in the run. The bound is that of nodes that never do: faults only restrict.
    """

    policy: str
    objective: str
    bound_kind: str
    cost_ticks: Fraction
    bound_ticks: Fraction
    of_class: str
    instance: str
    history: BoundHistory
    failing: bool

    def _cost_and_bound(self) -> tuple[Fraction, Fraction]:
        return self.cost_ticks, self.bound_ticks

    @property
    def factor(self) -> Fraction:
        """Cost over bound as it is written: 1 where the bound is 0."""
        return self.cost_ticks / self.bound_ticks if self.bound_ticks else Fraction(1)

    def __repr__(self) -> str:
        what = f"{type(self).__name__}({self.objective} of {self.policy}: {cost_in_words(self)}"
        return f"{what} by {self.bound_kind}, SHA-256 {self.instance[:12]}...)"

    def sentence(self) -> str:
        """The claim in words."""
        where = ", a bound of nodes that never fail" if self.failing else ""
        return (
            f"{self.policy} costs at most {at_most(self.factor)} the offline optimum of {self.of_class} "
            f"({self.objective}, certified by {self.bound_kind}{where})"
        )


@dataclass(frozen=True, repr=False)
class WrittenCertificate(Certified):
    """A certificate and what it proves.

    Parameters
    ----------
    text : str
        The file's content.
    """

    text: str


def certify(
    outcome: Outcome,
    objective: Objective | str = Objective.FLOW,
    *,
    budget_s: float = 20.0,
    bound: Bound | None = None,
    preemptive: bool = True,
) -> WrittenCertificate:
    """The certificate with the strongest bound that a time budget allows; checked before it is returned.

    Parameters
    ----------
    budget_s : float
        Time for prices [s], those of jobs' plans and those of the interval LP; 0 for the combinatorial bounds only.
    bound : Bound, optional
        A certified bound of the instance in this objective that was found before, such as that of a comparison: it is
        written, and none is searched.
    preemptive : bool
        Whether the run is compared with schedules that may stop and resume jobs; else with those alone in which each
        job begins once, as in the run. Of few jobs the bound then is their optimum. A bound that is given has its own
        class.

    Raises
    ------
    InputError
        If the instance has no jobs, or the run was stopped before one arrived, a
        name that does not print on one line or a number that cannot be written, or the objective is unknown, or the
        makespan of a run that was stopped; unless ``preemptive`` if a job of the run begins again, or if there may be
        no such schedule, for nodes fail or jobs run as copies; or the bound is not certified.
    VerificationError
        If the checker rejects what was written, which is a fault of this package or of the bound that was given.
    """
    proof, text = checked_text(
        lambda file: _write(outcome, objective, budget_s, bound, file, preemptive=preemptive)
    )
    return WrittenCertificate(**vars(proof), text=text)


def certify_into(
    outcome: VerifiedRun,
    path: Path,
    objective: Objective | str = Objective.FLOW,
    *,
    budget_s: float = 20.0,
    bound: Bound | None = None,
    preemptive: bool = True,
) -> Certified:
    """As :func:`certify`, into a file, which is written and checked line by line.

    Memory is O(n) for n jobs; of a run whose schedule is on disk no more than some segments are read at a time.

    Raises
    ------
    InputError, VerificationError
        As :func:`certify`.
    OSError
        If the file cannot be written.
    """
    return checked_file(
        path, lambda file: _write(outcome, objective, budget_s, bound, file, preemptive=preemptive)
    )


def _write(
    outcome: VerifiedRun,
    objective: Objective | str,
    budget_s: float,
    bound: Bound | None,
    file: TextIO,
    *,
    preemptive: bool,
) -> Certified:
    """Write a certificate."""
    instance = outcome.instance
    require(instance, KNOWS, "certificates")
    expect_certifiable(outcome)
    goal = Objective.of(objective)
    expect_end(instance.stopped_s, goal)
    resumes = preemptive if bound is None else bound.holds_for.preemptive
    if not resumes:
        expect_each_begins_once(outcome)
    cost = exact_cost(instance, goal, outcome.end_s)
    if bound is None:
        search = bounds_of(
            instance,
            goal,
            BoundEffort(budget_s),
            preemptive=resumes,
            consolidated=_consolidated(outcome),
            enough=cost,
        )
        bounds = tuple(search)
        bound, _ = certified_and_largest(bounds)
    else:
        bounds = (bound,)
    if bound.record is None or not bound.certified:
        raise InputError(f"bound {bound.kind!r}: is not certified, expected one that is")
    ratio = cost / bound.ticks if bound.ticks else Fraction(1)
    header = records.header(instance, outcome.policy, str(goal), preemptive=resumes)
    if bound.holds_for.consolidated:
        header["placement"] = "consolidated"
    claim = {
        "class": bound.of_class,
        "cost": text_of(cost),
        "bound": text_of(bound.ticks),
        "ratio": text_of(ratio),
    }
    jobs = records.instance_records(instance, pairs=bound.holds_for.sharing)
    multipliers = (dict(bound.record), *(dict(part) for part in bound.parts))
    digest = write_records(file, header, jobs, run_records(outcome), multipliers, claim)
    return Certified(
        outcome.policy,
        str(goal),
        bound.kind,
        cost,
        bound.ticks,
        bound.of_class,
        digest,
        BoundHistory(bounds),
        failing=instance.failures is not None,
    )


def _consolidated(outcome: VerifiedRun) -> bool:
    """True if every run of a schedule is known to be on as few nodes as it fits on."""
    whole = completed_instance(outcome.instance)
    if not isinstance(outcome, Outcome) or missing(whole, CLASSES_KNOWS):
        return False
    return ScheduleClass.used(whole, outcome.schedule).consolidated
