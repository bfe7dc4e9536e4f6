"""Agreement of rankings: whether the order of policies is the same for every seed, trace or load.

A block is a setting in which all policies were run: a seed, a workload. Agreement is Kendall's coefficient of
concordance W, 1 where all blocks have the same order and near 0 where orders have nothing in common, beside the
share of blocks with the same best policy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from shadowprice.brief import Brief


@dataclass(frozen=True, repr=False)
class RankingAgreement(Brief):
    """Agreement of blocks on the order of policies.

    Parameters
    ----------
    order : tuple of str
        Policies by mean rank, the lowest number first; ties in the order given.
    blocks : int
        Blocks that have a number of each policy.
    concordance : float
        Kendall's W, corrected for ties; 1 of a single block or policy.
    same_best : float
        Share of the blocks in which the first of ``order`` has the lowest number.
    reversed_pairs : tuple of (str, str)
        Pairs whose later one in ``order`` has the lower number in some block.
    ties : frozenset of str
        Policies that have the number of the one before them in ``order`` in every block.
    """

    order: tuple[str, ...]
    blocks: int
    concordance: float
    same_best: float
    reversed_pairs: tuple[tuple[str, str], ...]
    ties: frozenset[str]

    @property
    def same(self) -> bool:
        """True if no two policies change places from block to block."""
        return not self.reversed_pairs

    def sentence(self, what: str) -> str:
        """The agreement in words; ``what`` names the blocks: "seeds"."""
        if self.blocks < 2:
            return f"one block only: nothing is said of other {what}"
        if self.same:
            after = [f"{' =' if name in self.ties else ','} {name}" for name in self.order[1:]]
            return f"the same order in all {self.blocks} {what}: {self.order[0]}{''.join(after)}"
        pairs = "; ".join(f"{one} and {other}" for one, other in self.reversed_pairs[:4])
        more = f" and {len(self.reversed_pairs) - 4} more pairs" * (len(self.reversed_pairs) > 4)
        return (
            f"the order is not the same in all {self.blocks} {what} (Kendall's W {self.concordance:.2f}): {pairs}"
            f"{more} change places; {self.order[0]} is first in {self.same_best:.0%} of them"
        )


def ranking_agreement(table: pd.DataFrame) -> RankingAgreement | None:
    """Agreement on an order; None if no block has a number of each policy.

    Parameters
    ----------
    table : DataFrame
        A row a block, a column a policy; smaller is better. Rows with a missing number are left out.
    """
    whole = table.dropna()
    if whole.empty:
        return None
    values = whole.to_numpy(dtype=np.float64)
    blocks, policies = values.shape
    ranks = stats.rankdata(values, axis=1)
    by_rank = np.argsort(ranks.mean(axis=0), kind="stable")
    order = tuple(str(whole.columns[k]) for k in by_rank)
    sorted_values = values[:, by_rank]
    # Neighbours in the order of the mean ranks may agree where policies further apart do not.
    swapped = tuple(
        (order[i], order[j])
        for i in range(policies)
        for j in range(i + 1, policies)
        if (sorted_values[:, j] < sorted_values[:, i]).any()
    )
    best = values.min(axis=1)
    return RankingAgreement(
        order,
        blocks,
        _concordance(ranks),
        float((values[:, by_rank[0]] == best).mean()),
        swapped,
        frozenset(
            name
            for k, name in enumerate(order)
            if k and (sorted_values[:, k] == sorted_values[:, k - 1]).all()
        ),
    )


def _concordance(ranks: np.ndarray) -> float:
    """Kendall's W of ranks, shape (blocks, policies), with the correction for ties (Siegel 1956)."""
    blocks, policies = ranks.shape
    if blocks < 2 or policies < 2:
        return 1.0
    totals = ranks.sum(axis=0)
    squares = float(((totals - totals.mean()) ** 2).sum())
    ties = sum(
        float((counts.astype(np.float64) ** 3 - counts).sum())
        for row in ranks
        for counts in [np.unique(row, return_counts=True)[1]]
    )
    most = blocks**2 * (policies**3 - policies) - blocks * ties
    return 1.0 if most <= 0 else 12.0 * squares / most
