"""Jobs that can use more GPUs than they asked for. Gandiva (OSDI'18), grow-shrink."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.workload import Workload


@dataclass(frozen=True)
class Growth:
    """One rule for all jobs: how far they may grow within a node.

    Parameters
    ----------
    widest : int
        Most GPUs of a job whose gang is smaller, and no more than the largest node has.
    efficiency : float
        As in :class:`Elasticity`.
    """

    widest: int
    efficiency: float = 0.9

    @classmethod
    def parse(cls, text: str) -> Growth:
        """Read ``WIDEST[:EFFICIENCY]``.

        Raises
        ------
        InputError
            If it is not of this form.
        """
        widest, _, efficiency = text.partition(":")
        try:
            found = cls(int(widest), float(efficiency) if efficiency else cls.efficiency)
        except ValueError:
            found = cls(0)
        if found.widest < 1:
            raise InputError(f"growth {text!r}: expected WIDEST[:EFFICIENCY], such as 4:0.9")
        return found

    def of(self, workload: Workload, cluster: Cluster) -> Elasticity:
        """Widths of the jobs of a workload; O(n)."""
        widest = min(self.widest, int(cluster.gpus_per_node.max()))
        every = np.full(len(workload), self.efficiency)
        return Elasticity(np.maximum(workload.gpus, widest), every)


@dataclass(frozen=True, eq=False)
class Elasticity:
    r"""Largest width of each job, and its efficiency when wider.

    A gang of g GPUs that holds w is :math:`(w / g)^{\log_2 (2 e)}` times as fast, rounded to the nearest
    double on every machine: every doubling multiplies its speed by 2 e. Derived; the paper has no formula.

    Parameters
    ----------
    widest : ndarray of int, shape (n,)
        Most GPUs of each job; its gang if it did not opt in.
    efficiency : ndarray, shape (n,)
        e, from above 1/2 to 1.
    """

    widest: NDArray[np.int64]
    efficiency: NDArray[np.float64]

    def __post_init__(self) -> None:
        widest = np.array(self.widest, dtype=np.int64)
        efficiency = np.array(self.efficiency, dtype=np.float64)
        if widest.shape != efficiency.shape:
            raise InputError(
                f"elasticity: {len(widest)} widths and {len(efficiency)} efficiencies, expected as many"
            )
        bad = ~((efficiency > 0.5) & (efficiency <= 1.0))
        if bad.any():
            job = int(bad.argmax())
            raise InputError(
                f"elasticity: the efficiency of job {job} is {efficiency[job]!r}, expected 1/2 < e <= 1"
            )
        for name, values in (("widest", widest), ("efficiency", efficiency)):
            values.flags.writeable = False
            object.__setattr__(self, name, values)

    def check(self, gpus: NDArray[np.int64]) -> None:
        """Raise :class:`InputError` if a job's widest is less than its gang."""
        bad = self.widest < gpus
        if bad.any():
            job = int(bad.argmax())
            raise InputError(
                f"elasticity: job {job} has a gang of {gpus[job]} GPUs and may hold at most "
                f"{self.widest[job]}, expected no less than its gang"
            )

    def speed(
        self, job: NDArray[np.int64], gpus: NDArray[np.int64], width: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Speed of jobs with these gangs on so many GPUs."""
        shape = np.broadcast_shapes(np.shape(job), np.shape(gpus), np.shape(width))
        columns = (self.efficiency[job], gpus, width)
        rows = zip(
            *(np.broadcast_to(each, shape).ravel().tolist() for each in columns), strict=True
        )
        return np.array([_gain(*row) for row in rows], dtype=np.float64).reshape(shape)

    def select(self, keep: NDArray[np.bool_]) -> Elasticity:
        """The same for some of the jobs."""
        return Elasticity(self.widest[keep], self.efficiency[keep])


@lru_cache(maxsize=4096)
def _gain(efficiency: float, gpus: int, width: int) -> float:
    # Powers of floats differ from machine to machine in the last place, which a run would show.
    with localcontext(prec=60):
        exponent = 1 + Decimal(efficiency).ln() / Decimal(2).ln()
        return float((Decimal(width) / Decimal(gpus)) ** exponent)
