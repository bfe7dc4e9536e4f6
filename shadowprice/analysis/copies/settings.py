"""HadarE by name: its switches as plain values, as policies have them.

Source: Sultana et al., HadarE, arXiv 2503.10918 (recalled).
Guarantee: with as many copies as nodes, no node is idle in a round while a job is unfinished that could do
a step there and does not end in this very round (HADARE-n); none for times.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial

from shadowprice.execution.copies.simulation import CopyWidth, HadarE, simulate_hadare
from shadowprice.execution.own_loop import OwnLoop
from shadowprice.execution.real.copies.policy import check_switches
from shadowprice.solvers.hadar.copies import ORDERS
from shadowprice.solvers.registry import FORKS, resolve


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
    name: str = FORKS

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

    def own_loop(self, *, seed: int = 0, local_sgd: bool = False) -> OwnLoop:
        """The loop of a run; rates of pairs and samples are of no use to it, as to most policies."""
        told = {"kind": "forks", **asdict(self), "seed": seed, "preemptive": True}
        return OwnLoop(
            partial(simulate_hadare, options=self.options(local_sgd=local_sgd, seed=seed)),
            frozenset({"round_s", "seed", "local_sgd"}),
            self._refusal,
            told,
            ignores=frozenset({"together", "samples"}),
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


FORKING: Mapping[str, ForkSettings] = {FORKS: ForkSettings()}
"""Schedulers that run a job as several copies, by name."""


def forking(policy: object) -> ForkSettings | None:
    """Settings of a scheduler given by name and parameters; None if it is no forking one.

    Raises
    ------
    InputError
        If a parameter or its value is unknown.
    """
    if isinstance(policy, ForkSettings):
        return policy
    if not isinstance(policy, str) or policy.partition(":")[0] not in FORKING:
        return None
    settings: ForkSettings = resolve("policy", policy, FORKING)
    return settings
