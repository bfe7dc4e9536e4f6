"""Failures as a switch of a run: where faults come from, and what jobs save."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol, Self, runtime_checkable

from shadowprice.brief import Brief
from shadowprice.errors import InputError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.failures.checkpointing import Checkpointing
from shadowprice.instances.failures.fault_file import FaultTable, load
from shadowprice.instances.failures.fault_law import FaultLaw
from shadowprice.instances.failures.node_failures import NodeFailures

LAWS = ("exponential", "weibull")
NONE = "none"
"""Word for nodes that never fail, on which checkpoints cost what they cost."""


class FaultSource(Protocol):
    """Origin of faults."""

    @property
    def name(self) -> str:
        """The source as it is written."""

    def of(
        self, cluster: Cluster, checkpoints: Checkpointing, known_until_s: float
    ) -> NodeFailures:
        """Faults of a cluster, at least those before a time [s]."""


@runtime_checkable
class SeededFaults(FaultSource, Protocol):
    """Faults that are drawn."""

    def seeded(self, seed: int) -> Self:
        """The same, drawn by another seed."""


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
    >>> failures = Failures.parse("exponential:mtbf_s=864000,repair_s=3600,seed=1", 1800.0, 30.0)
    >>> failures.faults.name
    'exponential:mtbf_s=864000.0,repair_s=3600.0,seed=1'
    >>> failures.seeded(2).faults.seed
    2
    """

    faults: FaultSource
    checkpoints: Checkpointing = field(default_factory=Checkpointing)

    @classmethod
    def parse(
        cls,
        text: str,
        checkpoint_interval_s: float | None = None,
        checkpoint_cost_s: float = 0.0,
    ) -> Failures:
        """Failures as they are written.

        Parameters
        ----------
        text : str
            ``exponential:mtbf_s=S,repair_s=S,seed=N``; ``weibull:`` with ``shape=K`` as well, and
            ``repair_shape=K``; a CSV of downtimes; ``LOG.json:nodes=N,seed=N``, the log of InfiniteHBD;
            or ``none``.
        checkpoint_interval_s : float, optional
            Progress between checkpoints [s]; none if not given.
        checkpoint_cost_s : float
            Time that one takes [s].

        Raises
        ------
        InputError
            If a law, a parameter or a file is not as expected.
        """
        checkpoints = (
            Checkpointing(cost_s=checkpoint_cost_s)
            if checkpoint_interval_s is None
            else Checkpointing(checkpoint_interval_s, checkpoint_cost_s)
        )
        name, _, given = text.partition(":")
        if name in LAWS:
            return cls(FaultLaw.read(name, given), checkpoints)
        if text == NONE:
            return cls(FaultTable(NONE), checkpoints)
        path, _, choices = (
            text.rpartition(":") if "=" in text.rpartition(":")[2] else (text, "", "")
        )
        if not Path(path).exists():
            raise InputError(
                f"failures {text!r}: no such file, expected {' or '.join(LAWS)} with :mtbf_s=S,repair_s=S, a "
                f"file of faults, or {NONE}"
            )
        return cls(load(Path(path), choices), checkpoints)

    @property
    def name(self) -> str:
        """The faults as they are written."""
        return self.faults.name

    @property
    def drawn(self) -> bool:
        """True if they follow from a seed."""
        return isinstance(self.faults, SeededFaults)

    def seeded(self, seed: int) -> Failures:
        """The same failures drawn by another seed.

        Raises
        ------
        InputError
            If they are not drawn.
        """
        if not isinstance(self.faults, SeededFaults):
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
