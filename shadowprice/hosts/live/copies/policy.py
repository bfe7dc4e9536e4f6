"""HadarE on real hosts by name: what may be chosen, and what it does not go with.

Source: Sultana et al., HadarE, arXiv 2503.10918 (recalled). Of the simulation's parameters the
length of a round is that of the run, and charges are not assumed: they happen, and are measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from shadowprice.errors import InputError
from shadowprice.execution.copies.hadare import HadarE
from shadowprice.instances.grid import to_grid
from shadowprice.solvers.registry import COPIES, resolve

if TYPE_CHECKING:
    from shadowprice.hosts.live.job_file import Job
    from shadowprice.hosts.live.settings import Settings

_NOT_CHOSEN = frozenset({"round_s", "restart_s", "aggregation_s"})


def copies_policy(settings: Settings) -> HadarE | None:
    """The policy of a run whose jobs run as several copies; None if they run as one gang each.

    Raises
    ------
    InputError
        If a parameter is unknown, or another setting does not go with copies.
    """
    if not has_copies(settings.policy_name):
        return None
    if settings.round_s == 0:
        raise InputError(f"{COPIES}: round is 0, expected a length: models are averaged after each")
    policy = _resolved(settings.policy_name, settings.round_s)
    if settings.placement != "count":
        raise InputError(
            f"{COPIES}: placement is {settings.placement!r}, expected none: copies hold whole nodes"
        )
    if settings.share is not None:
        raise InputError(f"{COPIES}: share is {settings.share!r}, expected none: no node is shared")
    return policy


def simulated_as(policy: str, round_s: float, charge_s: float = 0.0) -> str | None:
    """Name under which the simulation knows a policy of copies of a real run; None if it is another.

    Parameters
    ----------
    charge_s : float
        What a round costs a copy that is not alone [s]. One that is alone is simulated without:
        the simulation has no charge for it.

    Raises
    ------
    InputError
        If a parameter is unknown, or the charge fills the round.
    """
    if not has_copies(policy):
        return None
    same = replace(_resolved(policy, round_s), aggregation_s=float(to_grid(charge_s)))
    names = ("order", "round_s", "restart_s", "aggregation_s", "max_copies", "width")
    return f"{COPIES}:" + ",".join(f"{name}={getattr(same, name)}" for name in names)


def has_copies(policy: str) -> bool:
    """True if a policy by this name runs jobs as several copies."""
    return policy.partition(":")[0] == COPIES


def _resolved(policy: str, round_s: float) -> HadarE:
    """The policy without charges; its rounds are not its parameter."""
    known = {COPIES: HadarE(round_s=round_s, restart_s=0.0)}
    found: HadarE = resolve("policy of a real run", policy, known, fixed=_NOT_CHOSEN)
    return found


def expect_averageable(jobs: Sequence[Job]) -> None:
    """Refuse jobs whose copies cannot be averaged.

    Raises
    ------
    InputError
        Naming the job.
    """
    for job in jobs:
        if job.keeps_checkpoints:
            raise InputError(
                f"{COPIES}: job {job.name} keeps its checkpoints in {{checkpoint_dir}}, expected one that "
                "makes them through shadowprice.hosts.job: others cannot be averaged"
            )
