"""What combinations of jobs were due and what they received, over changing sets of jobs.

Gavel (OSDI'20, sec. 5) ranks combinations by X / f within the time since the last allocation. Where
allocations change at every arrival that time is short, so here both sides are added up over all
allocations: due_mj, the integral of X_mj, takes the place of X_mj. Between two allocations this
is the paper's ranking, as due_mj / received_mj is proportional to X_mj / f_mj on each type; over
several, a job that got more than its share before does not get it again (derived).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.allocation_problem import AllocationProblem
from shadowprice.solvers.gavel.rates import Numbers
from shadowprice.solvers.gavel.rounds import Combinations

Rows = NDArray[np.int64]


@dataclass(eq=False)
class Ledger:
    """Accounts of the combinations of one problem.

    Parameters
    ----------
    jobs : ndarray of int, shape (jobs,)
        Row in the workload of each job of the problem.
    combinations : Combinations
        Jobs alone, then pairs, by position in ``jobs``.
    fraction : ndarray, shape (combinations, types)
        X, the allocation.
    due_s, received_s : ndarray, shape (combinations, types)
    since_s : float
        When the accounts were last brought up to date [s].
    """

    jobs: Rows
    combinations: Combinations
    fraction: Numbers
    due_s: Numbers
    received_s: Numbers
    since_s: float

    @classmethod
    def empty(cls, types: int) -> Ledger:
        """Without jobs."""
        rows, table = np.zeros(0, dtype=np.int64), np.zeros((0, types))
        able = np.zeros((0, types), dtype=bool)
        return cls(rows, Combinations(rows, rows, rows, able), table, table, table, 0.0)

    @property
    def keys(self) -> Rows:
        """A number for each combination that stays the same when others come and go."""
        first, second = (
            self.jobs[part] for part in (self.combinations.first, self.combinations.second)
        )
        return first * (1 << 31) + second

    def accrue(self, running: Rows, kinds: Rows, now_s: float) -> None:
        """Book the time since the last call: what was due to all, and received by those that ran.

        Parameters
        ----------
        running : ndarray of int
            Keys of the combinations that ran all this time.
        kinds : ndarray of int
            The type each ran on.
        """
        elapsed_s = now_s - self.since_s
        self.since_s = now_s
        if elapsed_s <= 0.0 or not len(self.jobs):
            return
        self.due_s += self.fraction * elapsed_s
        if len(running):
            where = self.find(running)
            known = where >= 0
            self.received_s[where[known], kinds[known]] += elapsed_s

    def find(self, keys: Rows) -> Rows:
        """Position of the combination of each key, -1 where there is none."""
        mine = self.keys
        order = np.argsort(mine)
        at = np.searchsorted(mine[order], keys)
        at = order[np.minimum(at, len(order) - 1)] if len(order) else np.zeros_like(keys)
        if not len(order):
            return at - 1
        return np.where(mine[at] == keys, at, -1)

    def moved_to(self, jobs: Rows, problem: AllocationProblem, fraction: Numbers) -> Ledger:
        """The accounts under a new allocation of other jobs; those of jobs that left are closed."""
        rows = Combinations.of(problem)
        table = np.zeros_like(fraction)
        ledger = Ledger(jobs, rows, fraction, table, table.copy(), self.since_s)
        where = self.find(ledger.keys)
        known = where >= 0
        ledger.due_s[known] = self.due_s[where[known]]
        ledger.received_s[known] = self.received_s[where[known]]
        return ledger

    def ranking(self, ahead_s: float) -> tuple[Numbers, Numbers, Numbers]:
        """Sort keys, larger first: due over received, due less received, fraction.

        Parameters
        ----------
        ahead_s : float
            Time of the coming round, which is due as well [s]: so that a newcomer has a claim.
        """
        due = self.due_s + self.fraction * ahead_s
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(self.received_s > 0, due / self.received_s, np.inf)
        wanted = self.fraction > 0
        return np.where(wanted, ratio, 0.0), due - self.received_s, self.fraction
