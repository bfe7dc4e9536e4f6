"""Racks of nodes: gangs across nodes or racks are slower, and uplinks of racks carry so many gangs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

from msgspec import Meta

from shadowprice.errors import InputError
from shadowprice.instances.features import Feature
from shadowprice.instances.terms.declared import (
    Amount,
    DeclaredRun,
    HoldingTerm,
    Place,
    SlowingTerm,
)

if TYPE_CHECKING:
    from shadowprice.instances.cluster import Cluster
    from shadowprice.instances.workload import Workload

_MANY = 10**9
"""More gangs than there are GPUs."""

WholeNumber = Annotated[int, Meta(ge=1, le=_MANY, description="a whole number >= 1")]
Slowdown = Annotated[float, Meta(gt=0, le=1, description="a number above 0 and at most 1")]


@dataclass(frozen=True)
class Racks(HoldingTerm, SlowingTerm):
    """Speeds of gangs by the highest level that they cross, and uplinks that they share.

    A gang on one node is as fast as without the term; jobs on cores are everywhere, and cross no uplink.

    Parameters
    ----------
    nodes : int
        Nodes in each rack, in the order of the cluster; the last rack may have fewer.
    across_nodes : float
        Speed of a gang on several nodes of one rack, against one node.
    across_racks : float
        Speed of a gang on several racks, against one node.
    uplink : int
        Gangs that the uplink of a rack carries at once; any number if left out.
    """

    name: ClassVar[str] = "racks"
    feature: ClassVar[Feature] = Feature.RACKS
    example: ClassVar[str] = (
        "simulate jobs.csv --cluster 8x4 --placement consolidate --policy srtf "
        "--with racks:nodes=4,across_racks=0.8,uplink=2"
    )

    nodes: WholeNumber
    across_nodes: Slowdown = 1.0
    across_racks: Slowdown = 1.0
    uplink: WholeNumber | None = None

    def check(self, cluster: Cluster, jobs: Workload) -> None:
        """Refuse speeds by which a gang across racks is faster than one within."""
        if self.across_racks > self.across_nodes:
            raise InputError(
                f"racks: across_racks is {self.across_racks}, expected at most across_nodes, {self.across_nodes}"
            )

    def speed(self, run: DeclaredRun) -> float:
        """Speed of a gang by the highest level that it crosses."""
        if len(run.pieces) == 1 or run.jobs.on_cores[run.job]:
            return 1.0
        return self.across_nodes if len(self._crossed(run)) == 1 else self.across_racks

    def holds(self, run: DeclaredRun) -> Iterator[Amount]:
        """One gang on the uplink of each rack, if there are several."""
        racks = self._crossed(run)
        if len(racks) > 1 and not run.jobs.on_cores[run.job]:
            yield from ((rack, 1) for rack in sorted(racks))

    def limit(self, place: Place, now_s: float) -> int:
        """Gangs that an uplink carries."""
        return _MANY if self.uplink is None else self.uplink

    def _crossed(self, run: DeclaredRun) -> set[int]:
        return {node // self.nodes for node in run.nodes}
