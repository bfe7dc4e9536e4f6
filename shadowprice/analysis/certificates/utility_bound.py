"""The least upper bound of total utility that prices of runs, and better ones, give: of one run or of several."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shadowprice.analysis.certificates.checked_class import CheckedClass
from shadowprice.analysis.certificates.exact_cost import measured_rows
from shadowprice.analysis.certificates.job_utilities import JobUtilities
from shadowprice.analysis.certificates.measured_jobs import measured_instance
from shadowprice.analysis.certificates.price_steps import Prices
from shadowprice.analysis.certificates.utility_prices import TYPED, RoundMarket, search
from shadowprice.analysis.certificates.whole_rounds import in_whole_rounds
from shadowprice.analysis.outcome import Outcome, VerifiedRun
from shadowprice.brief import Brief
from shadowprice.errors import InputError, VerificationError
from shadowprice.instances.grid import TICKS_PER_S, to_ticks
from shadowprice.instances.objective import rounded_up
from shadowprice.proofs import run_speed

_MOST_ROUNDS = 2**20


@dataclass(frozen=True, repr=False)
class BoundedUtility(Brief):
    """No schedule of the class earns more.

    Parameters
    ----------
    value : Fraction
        Upper bound of the total utility, as the checker evaluates the record.
    source : str
        Whose prices.
    kind : str
        Name of the bound in a certificate.
    of_class : str
        The class in words, as a certificate has it.
    whole_rounds : bool
        Whether that is of schedules in whole rounds alone.
    pairs : bool
        Whether jobs may share GPUs in schedules of the class.
    record : dict
        The bound as a certificate has it.
    tried : tuple of (str, float)
        Upper bounds that were found, in order: whose prices gave them, and their values.
    """

    value: Fraction
    source: str
    kind: str
    of_class: str
    whole_rounds: bool
    pairs: bool
    record: Mapping[str, Any]
    tried: tuple[tuple[str, float], ...]


@dataclass(frozen=True, eq=False)
class EarningRuns:
    """Runs of the same jobs on the same cluster, and what jobs earn by the round in which they complete.

    Parameters
    ----------
    runs : mapping of str to VerifiedRun
        Runs by name, at least one.
    utilities : JobUtilities
        Of all jobs.
    rounds : int
        T: all jobs that any of the runs completes are complete in rounds before it.
    earned : dict of str to Fraction
        Total utility of each run.
    market : RoundMarket
        Jobs that count, and GPUs.
    pairs : bool
        Whether jobs share GPUs in a run.
    """

    runs: Mapping[str, VerifiedRun]
    utilities: JobUtilities
    rounds: int
    earned: Mapping[str, Fraction]
    market: RoundMarket
    pairs: bool

    @classmethod
    def of(cls, runs: Mapping[str, VerifiedRun], utility: str, round_s: float) -> EarningRuns:
        """Utilities of runs.

        Raises
        ------
        InputError
            If the utility is unknown, the round not on the grid or much too short for the runs, or the instance has
            features that certificates do not know.
        """
        instance = next(iter(runs.values())).instance
        every = JobUtilities.of(instance, utility, round_s)
        pairs = any(
            isinstance(run, Outcome) and bool((run.schedule.partner >= 0).any())
            for run in runs.values()
        )
        schedules, rows = CheckedClass.of(instance, pairs=pairs), measured_rows(instance).tolist()
        counted = every.select(rows)
        market = RoundMarket.of(measured_instance(instance), schedules, counted)
        ends = {name: _ends(run, rows) for name, run in runs.items()}
        last = max((end for each in ends.values() for end in each), default=0)
        rounds = max(-(-last // every.length), 1)
        if rounds > _MOST_ROUNDS:
            raise InputError(
                f"round of utilities: {round_s!r} s, of which the run has {rounds}, expected at most {_MOST_ROUNDS} "
                "rounds"
            )
        earned = {name: schedules.earned(counted, each) for name, each in ends.items()}
        return cls(runs, every, rounds, earned, market, pairs)

    def bound(self, budget_s: float, offered: Mapping[str, Prices] | None = None) -> BoundedUtility:
        """The least bound of the prices that runs left, of those that are offered, and of better ones.

        Parameters
        ----------
        budget_s : float
            CPU time for better prices [s]; with 0 every job is bounded as if it were alone.
        offered : mapping of str to ndarray, shape (rounds, types), optional
            Prices of other origin, such as those of a relaxation; none are taken where prices are not by type.

        Raises
        ------
        VerificationError
            If a run earned more than the bound, which would be an error of this package.
        """
        market, most = self.market, max(self.earned.values())
        searched = market
        if market.kind == TYPED and self._in_whole_rounds():
            searched = market.in_whole_rounds()
        prices = {f"prices of {name}": self._left(run) for name, run in self.runs.items()}
        prices |= offered or {}
        types = len(market.capacity)
        by_type = {
            origin: table
            for origin, table in prices.items()
            if table is not None and table.shape[1] == types
        }
        bounds = list(search(searched, self.rounds, most, budget_s, by_type))
        best = min(bounds, key=lambda each: each.value)
        if searched is not market and market.bound(best.unit, best.prices) == best.value:
            searched = market  # It holds for all schedules.
        of_class = market.schedules.name
        if searched is not market:
            length_s = self.utilities.length / TICKS_PER_S
            of_class = f"{of_class}, in whole rounds of {length_s!r} s"
        if most > best.value:
            raise VerificationError(
                f"utility: a run earned {float(most)!r}, more than the bound {float(best.value)!r} by {best.origin} "
                f"of {of_class}"
            )
        return BoundedUtility(
            best.value,
            best.origin,
            searched.kind,
            of_class,
            searched is not market,
            self.pairs,
            searched.record(best.unit, best.prices),
            tuple((each.origin, rounded_up(each.value)) for each in bounds),
        )

    def _in_whole_rounds(self) -> bool:
        length = self.utilities.length
        return all(in_whole_rounds(run, length) for run in self.runs.values())

    def _left(self, run: VerifiedRun) -> NDArray[np.float64] | None:
        """Mean price over the GPUs of each type by round, that a run has left; None if it left none."""
        prices = getattr(run, "prices", None)
        if prices is None or not prices.time_s:
            return None
        cluster = run.instance.cluster
        types, kinds = run_speed.gpu_types(cluster)
        nodes = len(cluster.nodes)
        table = prices.by_round(self.utilities.length / TICKS_PER_S, self.rounds, nodes)
        share = np.zeros((nodes, len(types)))
        share[np.arange(nodes), kinds] = cluster.gpus_per_node
        return np.asarray(table @ (share / share.sum(axis=0)), dtype=np.float64)


def _ends(run: VerifiedRun, rows: list[int]) -> list[int]:
    """Completions of the jobs that count [ticks], 0 of those that are not complete."""
    ends = run.end_s[rows]
    ticks: list[int] = to_ticks(np.where(np.isfinite(ends), ends, 0.0)).tolist()
    return ticks
