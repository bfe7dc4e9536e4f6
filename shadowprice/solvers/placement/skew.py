"""Tiresias' placement by profile: models of skewed tensors together, the others in the gaps.

Source: Gu et al., Tiresias, NSDI'19, section 3.4. A job whose model's skew is above PACKLIMIT is
put on as few nodes as its size allows; the paper attempts that and does not say that the job
waits if there is no such place, so under ``skew`` it is spread then, and under ``skew-wait`` it
waits. All others are placed to reduce fragmentation (derived): on the fullest node with room for the
gang, else in the gaps of the nodes with fewest free GPUs, so that whole nodes stay whole. A gang that
fits a node is not cut up to fill gaps: its pieces would keep as many nodes from becoming whole.

The skew of each model is in :mod:`shadowprice.instances.speeds.model_skew`; a job whose model is not
there is treated as skewed. The published PACKLIMIT is learned from history; any in (15 %, 60 %)
separates the ten published models (derived).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from shadowprice.errors import InputError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.speeds.model_skew import ModelSkews, published_skews
from shadowprice.solvers.placement.consolidated import ConsolidatedAllocator
from shadowprice.solvers.placement.protocol import Pieces, in_turn

if TYPE_CHECKING:
    from shadowprice.solvers.job_table import JobTable


class SkewAllocator(ConsolidatedAllocator):
    """Consolidates jobs of skewed models and fills gaps with the others.

    A gang in gaps costs O(nodes), or O(GPUs of a node + log nodes) if it fits one of them.

    Parameters
    ----------
    rule : Skew
        Tells the models that are consolidated, and whether their jobs wait for a place.
    """

    counts_by_job = True

    def __init__(self, cluster: Cluster, pool_of_node: Sequence[int], rule: Skew) -> None:
        super().__init__(cluster, pool_of_node, strict=rule.waits)
        self.anywhere = max(pool_of_node) == 0
        self._rule = rule
        self._consolidated: list[bool] = []

    def arrive(self, jobs: JobTable, rows: range) -> None:
        """Take note of the models of jobs."""
        for model in jobs.text("model", rows).tolist():
            self.arrive_with(model)

    def arrive_with(self, model: str) -> None:
        """Take note of the next job, by its model."""
        consolidated = self._rule.consolidates(model)
        self._consolidated.append(consolidated)
        self.anywhere = self.anywhere and not (consolidated and self._rule.waits)

    def take(self, job: int, gpus: int, pools: Sequence[int]) -> Pieces | None:
        """Take a gang from the first pool with a place for this job."""
        if self._consolidated[job]:
            return super().take(job, gpus, pools)
        for pool in pools:
            if self._free_in[pool] >= gpus:
                pieces = self._gaps(gpus, pool)
                for node, part in pieces:
                    self._change(node, -part)
                return pieces
        return None

    def _gaps(self, gpus: int, pool: int) -> Pieces:
        node = self._best_fit(gpus, pool, set())
        if node is not None:
            return ((node, gpus),)
        free = self._free
        nodes = [node for node, left in enumerate(free) if left and self._pool[node] == pool]
        return in_turn(sorted(nodes, key=lambda node: free[node]), free, gpus)


@dataclass(frozen=True)
class Skew:
    """Consolidates jobs of skewed models.

    Parameters
    ----------
    pack_limit : float
        PACKLIMIT, the share of its largest tensor above which a model is consolidated, 0 to 1.
    waits : bool
        Whether a job to consolidate waits until there is a place.
    skews : ModelSkews
        The skew of each model; the published ones by default.
    """

    name: str = "skew"
    pack_limit: float = 0.4
    waits: bool = False
    skews: ModelSkews = field(default_factory=published_skews, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not 0 <= self.pack_limit <= 1:
            raise InputError(
                f"{self.name}: pack_limit is {self.pack_limit!r}, expected a share from 0 to 1"
            )

    def consolidates(self, model: str) -> bool:
        """True if jobs of this model are put on as few nodes as their size allows."""
        skew = self.skews.skew_of(model)
        return skew is None or skew > self.pack_limit

    def allocator(self, cluster: Cluster, pool_of_node: Sequence[int]) -> SkewAllocator:
        """All GPUs of a cluster, free, before the first arrival."""
        return SkewAllocator(cluster, pool_of_node, self)


PLACEMENTS = (Skew(), Skew("skew-wait", waits=True))
