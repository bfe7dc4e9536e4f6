"""The best certified bound of the total utility that the prices of runs give, and improved ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.utility.instance import UtilityInstance, whole_rounds
from shadowprice.analysis.utility.prices import Prices, improve
from shadowprice.errors import VerificationError
from shadowprice.instances.sharing_gain import SharingGain
from shadowprice.proofs.hadar import any_schedule as hadar_any_schedule
from shadowprice.proofs.hadar import run_certificate as hadar_certificate

_EXACT_CELLS = 3_000
"""Jobs times rounds up to which the payoffs of schedules of whole rounds are searched for exactly."""


@dataclass(frozen=True)
class CertifiedBound:
    """No schedule of the class earns more.

    Parameters
    ----------
    value : Fraction
        Upper bound of the total utility.
    source : str
        Whose prices.
    rounds : bool
        Whether the class is that of schedules of whole rounds; otherwise it is all schedules.
    unshared : bool
        Whether the class leaves out schedules in which jobs share GPUs, as the instance lets them.
    """

    value: Fraction
    source: str
    rounds: bool
    unshared: bool = False

    @property
    def kind(self) -> str:
        """Prices and class in words."""
        what = "schedules of whole rounds" if self.rounds else "any schedule"
        return f"{self.source}, {what}{' in which nobody shares GPUs' if self.unshared else ''}"


def certified_bound(
    given: UtilityInstance,
    outcomes: Mapping[str, Outcome],
    budget_s: float,
    offered: Mapping[str, NDArray[np.float64]] | None = None,
) -> CertifiedBound:
    """The least bound that holds for all of some runs, in exact arithmetic.

    Which class of schedules it is about depends on the runs: where all of them are schedules of
    whole rounds, HADAR-cert applies, else HADAR-any, which holds for every schedule.

    Parameters
    ----------
    outcomes
        Runs by name; those with prices offer them.
    budget_s : float
        CPU time for better prices [s]. The exact computation comes on top.
    offered : mapping of str to ndarray, shape (rounds, types), optional
        Prices of other origin, such as those of a relaxation.

    Raises
    ------
    VerificationError
        If a run earned more than the bound, which would be an error of this package.
    """
    earned = max(given.earned(outcome) for outcome in outcomes.values())
    best = min(
        _bounds(given, outcomes, float(earned), budget_s, offered or {}),
        key=lambda found: found.value,
    )
    if earned > best.value:
        raise VerificationError(
            f"utility: a run earned {float(earned)!r}, more than the bound {float(best.value)!r} by "
            f"{best.kind}"
        )
    return replace(best, unshared=SharingGain.of(given.instance) is not None)


def _bounds(
    given: UtilityInstance,
    outcomes: Mapping[str, Outcome],
    earned: float,
    budget_s: float,
    offered: Mapping[str, NDArray[np.float64]],
) -> Iterator[CertifiedBound]:
    """Bounds by no prices, by the prices of each run, by those offered, and by improved prices."""
    kinds = given.instance.cluster.type_of_node
    start: Prices = np.zeros((given.rounds, len(given.instance.cluster.gpu_types)))
    lowest, _ = _of_any(given, start, [Fraction(0)])
    yield CertifiedBound(lowest, "each job alone", False)
    aligned = all(whole_rounds(outcome, given.round_s) for outcome in outcomes.values())
    exact = aligned and len(given.instance.workload) * given.rounds <= _EXACT_CELLS
    left = {name: given.prices(outcome) for name, outcome in outcomes.items()}
    by_node = {f"prices of {name}": prices for name, prices in left.items() if prices is not None}
    by_node |= {name: prices[:, kinds] for name, prices in offered.items()}
    for name, prices in by_node.items():
        value, repaired = _of_any(given, given.by_type(prices), hadar_certificate.SCALES)
        yield CertifiedBound(value, name, False)
        if value < lowest:
            lowest, start = value, repaired
        if exact:
            yield CertifiedBound(_of_rounds(given, prices), name, True)
    capacity = given.instance.cluster.gpus_per_type
    better = improve(given.demands(), capacity, start, given.round_ticks, earned, budget_s)
    yield CertifiedBound(_of_any(given, better, [Fraction(1)])[0], "improved prices", False)
    if exact:
        yield CertifiedBound(_of_rounds(given, better[:, kinds]), "improved prices", True)


def _of_any(
    given: UtilityInstance, prices: Prices, scales: Sequence[Fraction]
) -> tuple[Fraction, Prices]:
    """HADAR-any's bound and the multiple of the prices that gives it, both by type."""
    found = hadar_any_schedule.bound(
        given.demands(), given.instance.cluster.gpus_per_type, prices, given.round_ticks, scales
    )
    return found.dual, found.prices.astype(np.float64) * float(found.unit)


def _of_rounds(given: UtilityInstance, prices: NDArray[np.float64]) -> Fraction:
    """HADAR-cert's bound, raised to what a job is worth that completes after the last round.

    Its statement has utility 0 there. A schedule in which job j completes after the last round,
    or never, earns at most :math:`U_j(T)` of it; with payoffs of at least that, the proof goes through.
    """
    cluster = given.instance.cluster
    found = hadar_certificate.certify(
        given.tasks(), cluster.gpus_per_node, cluster.type_of_node, prices, Fraction(0)
    )
    more = (
        max(later - payoff, Fraction(0))
        for later, payoff in zip(given.beyond(), found.payoffs, strict=True)
    )
    return found.dual + sum(more, Fraction(0))
