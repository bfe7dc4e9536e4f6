"""HadarE on real hosts by name: what may be chosen, and what it does not go with.

Source: Sultana et al., HadarE, arXiv 2503.10918 (recalled). Beside the simulation's switches the
length of a round is that of the run, and charges are not assumed: they happen, and are measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shadowprice.errors import InputError
from shadowprice.execution.copies.settings import check_switches
from shadowprice.execution.copies.simulation import CopyWidth
from shadowprice.instances.grid import to_grid
from shadowprice.solvers.hadar.copies import ORDERS, CopyOrder
from shadowprice.solvers.registry import FORKS, resolve

if TYPE_CHECKING:
    from shadowprice.execution.real.job_file import Job
    from shadowprice.execution.real.settings import Settings


NAME = FORKS


@dataclass(frozen=True)
class ForkPolicy:
    """Copies of jobs on whole nodes, models averaged after every round.

    Parameters
    ----------
    order : str
        ``payoff``, ``shortest`` or ``first-come``.
    max_copies : int
        Largest number of copies of a job; 0 for the number of nodes.
    width : str
        GPUs a copy is given of its node: ``node`` for all, ``gang`` for at most the job's gang.

    Raises
    ------
    InputError
        If a name is unknown or a number out of range.
    """

    order: str = "payoff"
    max_copies: int = 0
    width: str = "node"
    name: str = NAME

    def __post_init__(self) -> None:
        check_switches(self.name, self.order, self.max_copies, self.width)

    def scores(self) -> CopyOrder:
        """The order in which jobs are served."""
        return ORDERS[self.order]()

    def gpus(self, gang: int, room: int) -> int:
        """GPUs a copy is given of a node that has so many."""
        return min(gang, room) if self.width == CopyWidth.GANG.value else room


def fork_policy(settings: Settings) -> ForkPolicy | None:
    """The forking policy of a run; None if its jobs run as one gang each.

    Raises
    ------
    InputError
        If a parameter is unknown, or another setting does not go with forks.
    """
    if settings.policy_name.partition(":")[0] != NAME:
        return None
    policy: ForkPolicy = resolve("policy of a real run", settings.policy_name, {NAME: ForkPolicy()})
    if settings.round_s == 0:
        raise InputError(f"{NAME}: round is 0, expected a length: models are averaged after each")
    if settings.placement != "count":
        raise InputError(
            f"{NAME}: placement is {settings.placement!r}, expected none: copies hold whole nodes"
        )
    if settings.share is not None:
        raise InputError(f"{NAME}: share is {settings.share!r}, expected none: no node is shared")
    return policy


def simulated_as(policy: str, round_s: float, charge_s: float = 0.0) -> str | None:
    """Name under which the simulation knows a forking policy of a real run; None if it is another.

    Parameters
    ----------
    charge_s : float
        What a round costs a copy that is not alone [s]. One that is alone is simulated without:
        the simulation has no charge for it.

    Raises
    ------
    InputError
        If a parameter is unknown.
    """
    if policy.partition(":")[0] != NAME:
        return None
    real: ForkPolicy = resolve("policy of a real run", policy, {NAME: ForkPolicy()})
    charge_s = float(to_grid(charge_s))
    return (
        f"{NAME}:order={real.order},round_s={round_s!r},restart_s=0.0,aggregation_s={charge_s!r},"
        f"max_copies={real.max_copies},width={real.width}"
    )


def expect_forkable(jobs: Sequence[Job]) -> None:
    """Refuse jobs whose copies cannot be averaged.

    Raises
    ------
    InputError
        Naming the job.
    """
    for job in jobs:
        if job.keeps_checkpoints:
            raise InputError(
                f"{NAME}: job {job.name} keeps its checkpoints in {{checkpoint_dir}}, expected one that "
                "makes them through shadowprice.execution.job: others cannot be averaged"
            )
