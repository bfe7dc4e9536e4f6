r"""Rows of an edited model in the master programme: what ties jobs together beside capacity.

Source: Dantzig-Wolfe decomposition (Operations Research 8, 1960; recalled), derived for rows over the
columns y, z, w of Hadar's time-indexed form. A schedule of a job fixes its y and z, so its entry in such a row
is the sum of the row's coefficients over them. The GPUs w by type it does not fix: where a row names
some, the columns w of these rounds come into the master as they are, with the rows of the model that
say which GPUs jobs hold (room, gang, speed).

Pricing stays what it is: a price :math:`\pi_i` of row i charges :math:`\pi_i a_{i,jlt}` for running j at speed l in
round t, and :math:`\pi_i \sum_{u \ge t} a_{i,ju}` for completing it in round t. By weak duality, with s_i the
side of row i that the sign of its price asks for, prices of any value add

.. math:: \sum_i \pi_i s_i + \sum_{j,h,t} \max(0, -\sum_i \pi_i a_{i,jht}) \min(W_j, c_h)

to the bound.

Complexity: linear in the entries of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from shadowprice.models.round_jobs import RoundJobs
from shadowprice.solvers.hadar.offline.pricing import IDLE, Speeds
from shadowprice.solvers.hadar.offline.programme import LinearRows, TimeIndexed


@dataclass(frozen=True, eq=False)
class Allowed:
    """Completions and speeds that rows with a single entry leave.

    Parameters
    ----------
    ends : ndarray of bool, shape (jobs, rounds + 1)
        Rounds in which a job may complete; last whether it may be left out.
    speeds : ndarray of bool, shape (jobs, rounds, speeds + 1)
        What a job that is not complete may do in a round: its speeds, and last to idle.
    narrowed : bool
        Whether rows take some speeds away.
    """

    ends: NDArray[np.bool_]
    speeds: NDArray[np.bool_]
    narrowed: bool = False

    @classmethod
    def everything(cls, jobs: RoundJobs) -> Allowed:
        """All that a job can do after its arrival."""
        widest = max((len(speeds) for speeds in jobs.speeds), default=0)
        allowed = np.zeros((jobs.jobs, jobs.rounds, widest + 1), dtype=bool)
        for job, speeds in enumerate(jobs.speeds):
            allowed[job, int(jobs.first[job]) :, : len(speeds)] = True
        allowed[:, :, -1] = True
        return cls(np.ones((jobs.jobs, jobs.rounds + 1), dtype=bool), allowed)


class LinkingRows:
    """Rows in the master beside those of capacity, and the columns w that they need.

    Parameters
    ----------
    known : TimeIndexed
    more : LinearRows
        Rows that can be priced, over the columns of the programme.

    Attributes
    ----------
    rows : LinearRows
        The rows that were given, without those that ``allowed`` stands for, then those that say
        which GPUs jobs hold in the rounds concerned.
    added : int
        Number of the rows that were given.
    free : ndarray of int
        Columns w.
    most : ndarray, shape (free columns,)
        Their upper bounds.
    allowed : Allowed
        What the rows with a single entry leave.
    """

    def __init__(self, known: TimeIndexed, more: LinearRows) -> None:
        self.known = known
        everything = Allowed.everything(known.jobs)
        self.allowed = replace(
            everything, ends=everything.ends.copy(), speeds=everything.speeds.copy()
        )
        linking = more.where(~self._narrow(more))
        narrowed = not np.array_equal(self.allowed.speeds, everything.speeds)
        self.allowed = replace(self.allowed, narrowed=narrowed)
        self.added = len(linking)
        w_round = np.full(known.columns, -1)
        w_round[known.w] = np.arange(known.jobs.rounds)
        named = w_round[linking.matrix.indices]
        rounds = np.zeros(known.jobs.rounds, dtype=bool)
        rounds[named[named >= 0]] = True
        self.rows = linking.and_(known.joins(rounds)) if rounds.any() else linking
        self.free = known.w[:, :, rounds].ravel()
        most = np.minimum(known.jobs.gang[:, None], known.jobs.capacity[None, :])
        self.most = np.repeat(most.ravel(), rounds.sum()).astype(np.float64)
        self._by_column = self.rows.matrix.tocsc()
        self._transposed = self.rows.matrix.T.tocsr()

    def __len__(self) -> int:
        return len(self.rows)

    def _narrow(self, more: LinearRows) -> NDArray[np.bool_]:
        """Take what rows with a single entry leave into ``allowed``; a mask of these rows."""
        known, matrix = self.known, more.matrix
        taken = np.zeros(len(more), dtype=bool)
        single = np.flatnonzero(np.diff(matrix.indptr) == 1)
        for row in single.tolist():
            at = int(matrix.indptr[row])
            column, value = int(matrix.indices[at]), float(matrix.data[at])
            sides = sorted((more.lower[row] / value, more.upper[row] / value))
            z = np.argwhere(known.z == column)
            if len(z) and 0.0 < sides[0] <= 1.0 <= sides[1]:
                job, t = z[0].tolist()
                self.allowed.ends[job, t + 1 :] = False
                taken[row] = True
            y = np.argwhere(known.y == column)
            if len(y) and sides[0] <= 0.0 <= sides[1] < 1.0:
                job, speed, t = y[0].tolist()
                self.allowed.speeds[job, t, speed] = False
                taken[row] = True
        return taken

    def columns_of(self, job: int, end: int, speeds: Speeds) -> NDArray[np.int64]:
        """Columns y and z that a schedule has at 1."""
        busy = [(speed, t) for t, speed in enumerate(speeds) if speed != IDLE]
        runs = [int(self.known.y[job, speed, t]) for speed, t in busy]
        return np.concatenate((np.array(runs, dtype=np.int64), self.known.z[job, end:]))

    def entries(
        self, job: int, end: int, speeds: Speeds
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Rows in which a schedule has a coefficient, and these."""
        if not len(self):
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        columns = self.columns_of(job, end, speeds)
        total = np.asarray(self._by_column[:, columns].sum(axis=1)).ravel()
        rows = np.flatnonzero(total)
        return rows, total[rows]

    def free_entries(self) -> tuple[list[NDArray[np.int64]], list[NDArray[np.float64]]]:
        """Rows and coefficients of each column w."""
        if not len(self.free):
            return [], []
        matrix = self._by_column[:, self.free]
        cuts = matrix.indptr[1:-1]
        return np.split(matrix.indices.astype(np.int64), cuts), np.split(matrix.data, cuts)

    def charges(
        self, prices: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Prices of running, shape (rounds, jobs, speeds), and of completing, (jobs, rounds + 1)."""
        each = np.append(self._transposed @ prices, 0.0)
        runs = each[self.known.y].transpose(2, 0, 1)  # -1, for no such speed, is the last: 0.
        ends = np.cumsum(each[self.known.z][:, ::-1], axis=1)[:, ::-1]
        return runs, np.pad(ends, ((0, 0), (0, 1)))

    def bound(self, prices: NDArray[np.float64]) -> float:
        """Part of the bound of the optimum that the rows and the columns w have."""
        side = np.where(prices > 0, self.rows.upper, self.rows.lower)
        paid = float(prices[prices != 0] @ side[prices != 0])
        reduced = -(self._transposed @ prices)[self.free]
        return paid + float(np.maximum(reduced, 0.0) @ self.most)

    def valid(self, duals: NDArray[np.float64]) -> NDArray[np.float64]:
        """Prices from duals: those of a side that a row does not have are 0."""
        without = ((duals > 0) & np.isposinf(self.rows.upper)) | (
            (duals < 0) & np.isneginf(self.rows.lower)
        )
        return np.where(without, 0.0, duals)
