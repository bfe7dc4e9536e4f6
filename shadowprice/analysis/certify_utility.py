"""Certificates of total utility: by how much the best schedule of a class exceeds a run at most.

All is computed here, as in :mod:`shadowprice.analysis.certify`, and the checker is asked at the end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TextIO

from shadowprice.analysis.certificates import records
from shadowprice.analysis.certificates.certificate_file import (
    checked_file,
    checked_text,
    expect_certifiable,
    run_records,
    write_records,
)
from shadowprice.analysis.certificates.checked_class import KNOWS as CLASS_KNOWS
from shadowprice.analysis.certificates.job_utilities import ROUND_S
from shadowprice.analysis.certificates.records import text_of
from shadowprice.analysis.certificates.utility_bound import EarningRuns
from shadowprice.analysis.outcome import Outcome, VerifiedRun
from shadowprice.analysis.wording import amount_at_least, amount_at_most, at_most
from shadowprice.errors import InputError
from shadowprice.instances.features import require
from shadowprice.instances.objective import rounded_up

KNOWS = CLASS_KNOWS

_BITS = 100
"""Significant bits of numbers that are written, unless the ratio is 1."""


@dataclass(frozen=True, repr=False)
class CertifiedUtility:
    """Claim of a certificate.

    Parameters
    ----------
    policy, utility : str
        Whose utility, and which.
    round_s : float
        Length of a round [s].
    bound_kind : str
        Kind of bound.
    earned, most : Fraction
        The run's total utility, and an upper bound of that of any schedule of the class, as they are written.
    factor : Fraction
        No schedule of the class has more than so many times the run's total utility.
    of_class : str
    instance : str
        SHA-256 of the lines that say what was given.
    tried : tuple of (str, float)
        Upper bounds that were found, in order: whose prices gave them, and their values.
    failing : bool
        Whether nodes failed in the run. The bound is that of nodes that never do: faults only restrict.
    """

    policy: str
    utility: str
    round_s: float
    bound_kind: str
    earned: Fraction
    most: Fraction
    factor: Fraction
    of_class: str
    instance: str
    tried: tuple[tuple[str, float], ...]
    failing: bool

    @property
    def bound(self) -> float:
        """The upper bound of total utility, rounded up."""
        return rounded_up(self.most)

    @property
    def ratio(self) -> float:
        """The factor as a float, rounded up."""
        return rounded_up(self.factor)

    def __repr__(self) -> str:
        numbers = f"{amount_at_least(self.earned)}, bound {amount_at_most(self.most)}"
        return (
            f"{type(self).__name__}({self.utility} of {self.policy}: {numbers}, ratio at most {at_most(self.factor)} "
            f"by {self.bound_kind})"
        )

    def sentence(self) -> str:
        """The claim in words."""
        where = ", a bound of nodes that never fail" if self.failing else ""
        return (
            f"the best total utility of {self.of_class} is at most {at_most(self.factor)} that of {self.policy} "
            f"({self.utility} in rounds of {self.round_s!r} s, certified by {self.bound_kind}{where})"
        )

    def warning(self) -> str | None:
        """A sentence if the least bound is that of every job as if it were alone."""
        alone, *others = (value for _, value in self.tried)
        if self.factor == 1 or any(value < alone for value in others):
            return None
        return (
            "the least upper bound is that of every job as if it were alone: it knows no queue, so that the factor "
            "says little where jobs wait; a larger --budget may find a better one"
        )


@dataclass(frozen=True, repr=False)
class WrittenUtilityCertificate(CertifiedUtility):
    """A certificate and what it proves.

    Parameters
    ----------
    text : str
        The file's content.
    """

    text: str


def certify_utility(
    outcome: Outcome, utility: str, round_s: float = ROUND_S, *, budget_s: float = 20.0
) -> WrittenUtilityCertificate:
    """The certificate with the least bound that a time budget allows; checked before it is returned.

    Parameters
    ----------
    utility : str
        ``effective_throughput``, ``completion_time``, ``fairness`` or ``deadline``.
    round_s : float
        Length of a round [s]: jobs earn by the end of the round in which they complete.
    budget_s : float
        CPU time for better prices [s]; with 0 every job is bounded as if it were alone.

    Raises
    ------
    InputError
        If a certificate of the run cannot be written (as :func:`.certify`), the utility is unknown, the round not on
        the grid or much too short for the run, or the run earned nothing.
    VerificationError
        If the checker rejects what was written, which is a fault of this package.
    """
    proof, text = checked_text(lambda file: _write(outcome, utility, round_s, budget_s, file))
    return WrittenUtilityCertificate(**vars(proof), text=text)


def certify_utility_into(
    outcome: VerifiedRun,
    path: Path,
    utility: str,
    round_s: float = ROUND_S,
    *,
    budget_s: float = 20.0,
) -> CertifiedUtility:
    """As :func:`certify_utility`, into a file, which is written and checked line by line.

    Raises
    ------
    InputError, VerificationError
        As :func:`certify_utility`.
    OSError
        If the file cannot be written.
    """
    return checked_file(path, lambda file: _write(outcome, utility, round_s, budget_s, file))


def _write(
    outcome: VerifiedRun, utility: str, round_s: float, budget_s: float, file: TextIO
) -> CertifiedUtility:
    """Write a certificate."""
    instance = outcome.instance
    require(instance, KNOWS, "certificates")
    expect_certifiable(outcome)
    runs = EarningRuns.of({outcome.policy: outcome}, utility, round_s)
    (earned,) = runs.earned.values()
    best = runs.bound(budget_s)
    if not earned and best.value:
        raise InputError(
            f"utility {utility!r}: the run earned nothing, and no multiple of that bounds the best schedule"
        )
    numbers = _numbers(earned, best.value)
    header = records.header(instance, outcome.policy, "utility", runs.utilities)
    if best.whole_rounds:
        header["rounds"] = "whole"
    digest = write_records(
        file,
        header,
        records.instance_records(instance, pairs=best.pairs, utilities=runs.utilities),
        run_records(outcome),
        [dict(best.record)],
        {"class": best.of_class, **{name: text_of(each) for name, each in numbers.items()}},
    )
    return CertifiedUtility(
        outcome.policy,
        utility,
        round_s,
        best.kind,
        numbers["earned"],
        numbers["bound"],
        numbers["ratio"],
        best.of_class,
        digest,
        best.tried,
        failing=instance.failures is not None,
    )


def _numbers(earned: Fraction, most: Fraction) -> dict[str, Fraction]:
    """Utility, its bound and their ratio, each in 100 bits and rounded so that the claim holds."""
    if earned == most:
        short = earned.denominator.bit_length() < 3000 > earned.numerator.bit_length()
        if short:
            return {"earned": earned, "bound": earned, "ratio": Fraction(1)}
    stated, limit = _rounded(earned, up=False), _rounded(most, up=True)
    return {
        "earned": stated,
        "bound": limit,
        "ratio": max(_rounded(limit / stated, up=True), Fraction(1)),
    }


def _rounded(number: Fraction, *, up: bool) -> Fraction:
    """A number in 100 significant bits."""
    if not number:
        return number
    size = number.numerator.bit_length() - number.denominator.bit_length()
    scale = Fraction(2) ** (_BITS - size)
    whole = math.ceil(number * scale) if up else math.floor(number * scale)
    return whole / scale
