"""HadarE by name: its switches as plain values, as policies have them.

Source: Sultana et al., HadarE, arXiv 2503.10918 (recalled).
Guarantee: with as many copies as nodes, no node is idle in a round while a job is unfinished that could do
a step there and does not end in this very round (HADARE-n); none for times.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, ClassVar

from shadowprice.errors import InputError
from shadowprice.execution.copies.simulation import CopyWidth, HadarE, simulate_hadare
from shadowprice.execution.own_loop import OwnLoop
from shadowprice.solvers.hadar.copies import ORDERS
from shadowprice.solvers.policy import Knowledge


@dataclass(frozen=True)
class ForkSettings:
    """Copies of jobs on whole nodes, models averaged after every round.

    Parameters
    ----------
    order : str
        ``payoff``, ``shortest`` or ``first-come``.
    round_s, restart_s, aggregation_s : float
        Length of a round; charge when a node changes jobs; charge for averaging [s].
    max_copies : int
        Largest number of copies of a job; 0 for the number of nodes.
    width : str
        GPUs a copy uses of its node: ``node`` for all, ``gang`` for at most the job's gang.

    Raises
    ------
    InputError
        If a name is unknown or a number out of range.
    """

    order: str = "payoff"
    round_s: float = 360.0
    restart_s: float = 10.0
    aggregation_s: float = 0.0
    max_copies: int = 0
    width: str = "node"
    name: str = "hadare"
    knows: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.DURATION})
    preemptive: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_switches(self.name, self.order, self.max_copies, self.width)
        self.options()

    def options(self, *, local_sgd: bool = False, seed: int = 0) -> HadarE:
        """The switches of a run."""
        return HadarE(
            ORDERS[self.order](),
            self.round_s,
            self.restart_s,
            self.aggregation_s,
            self.max_copies or None,
            CopyWidth(self.width),
            local_sgd,
            seed,
        )

    def own_loop(self, given: Mapping[str, Any]) -> OwnLoop:
        """The loop of a run; rates of pairs and samples are of no use to it, as to most policies."""
        round_s, seed = given.get("round_s"), given.get("seed", 0)
        chosen = self if round_s is None else replace(self, round_s=round_s)
        options = chosen.options(local_sgd=given.get("local_sgd", False), seed=seed)
        told = {"kind": "forks", **asdict(chosen), "seed": seed, "preemptive": True}
        return OwnLoop(
            partial(simulate_hadare, options=options),
            frozenset({"round_s", "seed", "local_sgd"}),
            self._refusal,
            told,
            ignores=frozenset({"pair_throughputs", "samples"}),
            copies=True,
        )

    def _refusal(self, switch: str, value: object) -> str:
        # Large values are told by what they are.
        said = repr(value) if isinstance(value, str | float | int) else type(value).__name__
        return (
            f"policy {self.name!r} does not take the switch {switch!r}, got {said}: "
            "copies of jobs hold whole nodes for whole rounds; it has parameters of its own, as in "
            f"{self.name}:round_s=360,restart_s=10,max_copies=3,width=gang"
        )


def check_switches(name: str, order: str, max_copies: int, width: str) -> None:
    """Refuse what no forking policy knows, simulated or real.

    Raises
    ------
    InputError
        If a name is unknown or a number out of range.
    """
    if order not in ORDERS:
        raise InputError(f"{name}: order is {order!r}, expected one of {', '.join(ORDERS)}")
    widths = [width.value for width in CopyWidth]
    if width not in widths:
        raise InputError(f"{name}: width is {width!r}, expected one of {', '.join(widths)}")
    if max_copies < 0:
        raise InputError(
            f"{name}: max_copies is {max_copies!r}, expected at least 1, or 0 for the "
            "number of nodes"
        )


SCHEDULERS = (ForkSettings(),)
