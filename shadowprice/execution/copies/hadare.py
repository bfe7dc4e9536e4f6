"""HadarE by name: its parameters as plain values, as policies have them.

Source: Sultana et al., HadarE, arXiv 2503.10918 (recalled).
Guarantee: with as many copies as nodes, no node is idle in a round while a job is unfinished that could do
a step there and does not end in this very round (HADARE-n); none for times.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any, ClassVar

from shadowprice.errors import InputError
from shadowprice.execution.copies.simulation import KNOWS, run_copies
from shadowprice.execution.simulator import Simulator
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule
from shadowprice.instances.terms.copies import CopyRules
from shadowprice.solvers.hadar.copy_assignment import ORDERS, CopyOrder
from shadowprice.solvers.policy import Knowledge
from shadowprice.solvers.registry import COPIES


class CopyWidth(StrEnum):
    """GPUs a copy uses of the node it holds; its rate is in proportion (derived)."""

    NODE = "node"
    """All of them, as the paper has it."""
    GANG = "gang"
    """At most as many as the job's gang: no job is faster on a node than it was submitted for."""

    def gpus(self, gang: int, room: int) -> int:
        """GPUs a copy uses of a node that has so many."""
        return room if self is CopyWidth.NODE else min(gang, room)


@dataclass(frozen=True)
class HadarE:
    """Copies of jobs on whole nodes, models averaged after every round.

    Parameters
    ----------
    order : str or CopyOrder
        Which job is served first: ``payoff``, ``shortest``, ``first-come``, or an order of your own.
    round_s, restart_s, aggregation_s : float
        Length of a round; charge when a node changes jobs, of which the 10 s are recalled; charge
        for averaging [s].
    max_copies : int
        Largest number of copies of a job; 0 for the number of nodes.
    width : CopyWidth
        GPUs a copy uses of its node: ``node`` for all, ``gang`` for at most the job's gang.

    Raises
    ------
    InputError
        If a name is unknown or a number out of range.
    """

    order: str | CopyOrder = "payoff"
    round_s: float = 360.0
    restart_s: float = 10.0
    aggregation_s: float = 0.0
    max_copies: int = 0
    width: str = CopyWidth.NODE
    name: str = COPIES
    knows: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.DURATION})
    preemptive: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if isinstance(self.order, str) and self.order not in ORDERS:
            raise InputError(
                f"{self.name}: order is {self.order!r}, expected one of {', '.join(ORDERS)}"
            )
        if self.width not in list(CopyWidth):
            raise InputError(
                f"{self.name}: width is {self.width!r}, expected one of {', '.join(CopyWidth)}"
            )
        if self.max_copies < 0:
            raise InputError(
                f"{self.name}: max_copies is {self.max_copies!r}, expected at least 1, or 0 for the "
                "number of nodes"
            )
        self._rules(1)

    def scores(self) -> CopyOrder:
        """The order in which jobs are served."""
        return ORDERS[self.order]() if isinstance(self.order, str) else self.order

    def rules(self, cluster: Cluster) -> CopyRules:
        """Rules of an instance on the cluster."""
        return self._rules(len(cluster.nodes))

    def _rules(self, nodes: int) -> CopyRules:
        most = self.max_copies or nodes
        return CopyRules(self.round_s, self.restart_s, self.aggregation_s, most)

    def schedule(self, instance: Instance) -> Schedule:
        """Schedule of an instance that has the rules of this policy on its cluster.

        Raises
        ------
        InputError, InfeasibleJobError, PolicyError
            As :func:`shadowprice.execution.copies.simulation.run_copies`.
        """
        return run_copies(instance, self.scores(), CopyWidth(self.width).gpus)

    def simulator(self, values: Mapping[str, Any]) -> Simulator:
        """The loop of a run; rates of pairs and samples are of no use to it, as to most policies."""
        round_s, seed = values.get("round_s"), values.get("seed", 0)
        chosen = self if round_s is None else replace(self, round_s=round_s)
        order = chosen.order if isinstance(chosen.order, str) else type(chosen.order).__name__
        told = {each.name: getattr(chosen, each.name) for each in fields(chosen)}
        told |= {"order": order, "seed": seed, "preemptive": True}
        return Simulator(
            chosen.schedule,
            frozenset(
                {
                    "round_s",
                    "seed",
                    "until_complete",
                    "failures",
                    "preemption",
                    "profiles",
                }
            ),
            self._refusal,
            told,
            ignores=frozenset({"sharing_rates", "samples"}),
            copies=chosen.rules,
            reads=KNOWS,
        )

    def _refusal(self, option: str, value: object) -> str:
        # Large values are told by what they are.
        said = repr(value) if isinstance(value, str | float | int) else type(value).__name__
        return (
            f"policy {self.name!r} does not take the option {option!r}, got {said}: "
            "copies of jobs hold whole nodes for whole rounds; it has parameters of its own, as in "
            f"{self.name}:round_s=360,restart_s=10,max_copies=3,width=gang"
        )


SCHEDULERS = (HadarE(),)
