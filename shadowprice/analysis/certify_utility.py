"""Certificates of total utility: by how much the best schedule of a class exceeds a run at most.

All is computed here, as in :mod:`shadowprice.analysis.certify`, and the checker is asked at the end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from shadowprice.analysis.certificates import records
from shadowprice.analysis.certificates.certificate_file import (
    checked_file,
    checked_text,
    expect_certifiable,
    run_records,
    write_records,
)
from shadowprice.analysis.certificates.checked_class import KNOWS as CLASS_KNOWS
from shadowprice.analysis.certificates.checked_class import CheckedClass
from shadowprice.analysis.certificates.exact_cost import measured_rows
from shadowprice.analysis.certificates.job_utilities import JobUtilities
from shadowprice.analysis.certificates.measured_jobs import (
    measured_instance,
)
from shadowprice.analysis.certificates.records import text_of
from shadowprice.analysis.certificates.utility_prices import (
    TYPED,
    RoundMarket,
    UtilityPrices,
    search,
)
from shadowprice.analysis.certificates.whole_rounds import in_whole_rounds
from shadowprice.analysis.outcome import Outcome, VerifiedRun
from shadowprice.analysis.utility.instance import ROUND_S
from shadowprice.analysis.wording import amount_at_least, amount_at_most, at_most
from shadowprice.errors import InputError
from shadowprice.instances.features import require
from shadowprice.instances.grid import TICKS_PER_S, to_ticks
from shadowprice.instances.objective import rounded_up

KNOWS = CLASS_KNOWS

_MOST_ROUNDS = 2**20
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
    every = JobUtilities.of(instance, utility, round_s)
    pairs = isinstance(outcome, Outcome) and bool((outcome.schedule.partner >= 0).any())
    schedules, rows = CheckedClass.of(instance, pairs=pairs), measured_rows(instance).tolist()
    market = RoundMarket.of(measured_instance(instance), schedules, every.select(rows))
    ends = _ends(outcome, rows)
    earned = market.utilities.earned(ends)
    last = max((end for end in ends if end is not None), default=1)
    rounds = max(-(-last // every.length), 1)
    if rounds > _MOST_ROUNDS:
        raise InputError(
            f"round of utilities: {round_s!r} s, of which the run has {rounds}, expected at most {_MOST_ROUNDS} rounds"
        )
    left = _prices_left(outcome, market, rounds)
    searched = _searched(outcome, market)
    bounds = list(search(searched, rounds, earned, budget_s, left))
    best = min(bounds, key=lambda each: each.value)
    if searched is not market and market.bound(best.unit, best.prices) == best.value:
        searched = market  # It holds for all schedules.
    if not earned and best.value:
        raise InputError(
            f"utility {utility!r}: the run earned nothing, and no multiple of that bounds the best schedule"
        )
    numbers = _numbers(earned, best)
    header, of_class = records.header(instance, outcome.policy, "utility", every), schedules.name
    if searched is not market:
        header["rounds"] = "whole"
        of_class = f"{of_class}, in whole rounds of {float(round_s)!r} s"
    claim = {"class": of_class, **{name: text_of(each) for name, each in numbers.items()}}
    digest = write_records(
        file,
        header,
        records.instance_records(instance, pairs=pairs, utilities=every),
        run_records(outcome),
        [searched.record(best.unit, best.prices)],
        claim,
    )
    tried = tuple((each.origin, rounded_up(each.value)) for each in bounds)
    shared = outcome.policy, utility, round_s, searched.kind
    failing = instance.failures is not None
    values = numbers["earned"], numbers["bound"], numbers["ratio"]
    return CertifiedUtility(*shared, *values, of_class, digest, tried, failing)


def _searched(outcome: VerifiedRun, market: RoundMarket) -> RoundMarket:
    """The market of schedules in whole rounds, where the run is one of them and types alone matter."""
    if market.kind != TYPED or not in_whole_rounds(outcome, market.utilities.length):
        return market
    return market.in_whole_rounds()


def _ends(outcome: VerifiedRun, rows: list[int]) -> list[int | None]:
    """Completions of the jobs that count [ticks], None of those that are not complete."""
    ends = outcome.end_s[rows]
    known = np.isfinite(ends)
    ticks = to_ticks(np.where(known, ends, 0.0)).tolist()
    return [tick if fine else None for tick, fine in zip(ticks, known.tolist(), strict=True)]


def _prices_left(
    outcome: VerifiedRun, market: RoundMarket, rounds: int
) -> NDArray[np.float64] | None:
    """Mean price over the GPUs of each type by round, that a run has left; None if it left none."""
    prices = getattr(outcome, "prices", None)
    if prices is None or not prices.time_s or len(market.capacity) != len(set(_kinds(outcome))):
        return None
    nodes = outcome.instance.cluster.nodes
    table = prices.by_round(market.utilities.length / TICKS_PER_S, rounds, len(nodes))
    share = np.zeros((len(nodes), len(market.capacity)))
    share[np.arange(len(nodes)), _kinds(outcome)] = [node.gpus for node in nodes]
    return np.asarray(table @ (share / share.sum(axis=0)), dtype=np.float64)


def _kinds(outcome: VerifiedRun) -> list[int]:
    """GPU type of each node, in order of appearance."""
    kinds: dict[str, int] = {}
    return [kinds.setdefault(n.gpu_type, len(kinds)) for n in outcome.instance.cluster.nodes]


def _numbers(earned: Fraction, best: UtilityPrices) -> dict[str, Fraction]:
    """Utility, its bound and their ratio, each in 100 bits and rounded so that the claim holds."""
    if earned == best.value:
        short = earned.denominator.bit_length() < 3000 > earned.numerator.bit_length()
        if short:
            return {"earned": earned, "bound": earned, "ratio": Fraction(1)}
    stated, limit = _rounded(earned, up=False), _rounded(best.value, up=True)
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
