"""Failures as an option of a run: where faults come from, and what jobs save."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from shadowprice.brief import Brief
from shadowprice.errors import InputError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.failures.checkpointing import Checkpointing
from shadowprice.instances.failures.fault_file import FaultLog, FaultTable
from shadowprice.instances.failures.fault_law import FaultLaw
from shadowprice.instances.failures.node_failures import NodeFailures

NONE = "none"
"""Word for nodes that never fail, on which checkpoints cost what they cost."""

FaultSource = FaultTable | FaultLaw | FaultLog
"""Origin of faults."""


@dataclass(frozen=True, eq=False, repr=False)
class Failures(Brief):
    """Faults of nodes and checkpoints of jobs: what happens to a run beside the policy's decisions.

    Faults do not depend on the policy: runs compared under the same failures meet the same ones.

    Parameters
    ----------
    faults : FaultSource
        A law, a table or a log.
    checkpoints : Checkpointing
        How often jobs save their progress, and how long that takes; never if not given.

    Examples
    --------
    >>> failures = Failures(FaultLaw(864000.0, 3600.0, seed=1), Checkpointing(1800.0, 30.0))
    >>> failures.faults.name
    'exponential:mtbf_s=864000.0,repair_s=3600.0,seed=1'
    >>> failures.seeded(2).faults.seed
    2
    """

    faults: FaultSource
    checkpoints: Checkpointing = field(default_factory=Checkpointing)

    @property
    def name(self) -> str:
        """The faults as they are written."""
        return self.faults.name

    @property
    def drawn(self) -> bool:
        """True if they follow from a seed."""
        return isinstance(self.faults, FaultLaw | FaultLog)

    def seeded(self, seed: int) -> Failures:
        """The same failures drawn by another seed.

        Raises
        ------
        InputError
            If they are not drawn.
        """
        if not isinstance(self.faults, FaultLaw | FaultLog):
            raise InputError(f"failures {self.name!r}: are a table and take no seed")
        return replace(self, faults=self.faults.seeded(seed))

    def of(self, cluster: Cluster, known_until_s: float) -> NodeFailures:
        """Faults of a cluster, at least those before a time [s].

        Raises
        ------
        InputError
            If there are faults of nodes that it does not have.
        """
        found = self.faults.of(cluster, self.checkpoints, known_until_s)
        found.check(cluster)
        return found
