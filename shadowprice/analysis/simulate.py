"""One call from a workload to a verified outcome."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from shadowprice.analysis.copies.settings import ForkSettings, forking
from shadowprice.analysis.copies.simulate import kept_jobs, simulate_forks
from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.semantics import Semantics
from shadowprice.errors import InputError
from shadowprice.execution.engine import run
from shadowprice.execution.presets.registry import preset as find_preset
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule

if TYPE_CHECKING:
    from shadowprice.analysis.copies.outcome import ForkOutcome
    from shadowprice.instances.workload import Workload
    from shadowprice.solvers.hadar.prices import PriceLog
    from shadowprice.solvers.policy import Policy


__all__ = ["Semantics", "policy_name", "sets_prices", "simulate", "simulate_policy"]


def simulate(
    workload: Workload,
    cluster: Cluster | str | Path,
    policy: str | Policy | ForkSettings = "srtf",
    semantics: Semantics | None = None,
    *,
    drop_infeasible: bool = False,
) -> Outcome | ForkOutcome:
    """Run a policy over a workload and verify what it did.

    Parameters
    ----------
    cluster : Cluster or str or Path
        A cluster, its short notation (``16x4``), or a TOML file.
    policy : str or Policy or ForkSettings
        A policy's name, with parameters after a colon, or a policy of your own; ``hadare``, or
        its settings, runs jobs as several copies.
    semantics : Semantics, optional
        Placement, rounds, overheads, preset.
    drop_infeasible : bool
        Leave out jobs that can never run, instead of refusing; they are listed in the outcome.

    Returns
    -------
    Outcome or ForkOutcome
        Verified; its costs, frames and plots are computed from the checked schedule, or, of
        ``hadare`` only, from the checked record of copies.

    Raises
    ------
    InputError
        If a name is unknown, a job can never fit, or a switch does not apply to the policy.
    PolicyError, VerificationError
        If the policy decides something impossible, or its schedule breaks a rule.

    Examples
    --------
    >>> import shadowprice as sp
    >>> jobs = sp.Workload.from_columns(arrival_s=[0, 0], gpus=[1, 1], work=[10, 1])
    >>> sp.simulate(jobs, "1x1", "srtf").summary()["avg_jct_s"]
    6.0
    >>> sp.simulate(jobs, "2x1", "hadare").summary()["mean_copies"]
    1.0
    """
    chosen = semantics or Semantics()
    settings = forking(policy)
    if settings is not None:
        return simulate_forks(
            workload, cluster, settings, policy_name(policy), chosen, drop_infeasible
        )
    return simulate_policy(
        workload, cluster, cast("str | Policy", policy), chosen, drop_infeasible=drop_infeasible
    )


def simulate_policy(
    workload: Workload,
    cluster: Cluster | str | Path,
    policy: str | Policy,
    semantics: Semantics | None = None,
    *,
    drop_infeasible: bool = False,
) -> Outcome:
    """As :func:`simulate`, for policies that run a job as one gang."""
    chosen = semantics or Semantics()
    if chosen.local_sgd:
        raise InputError(
            f"policy {policy_name(policy)!r}: local SGD is about models that copies of a job train, "
            "expected 'hadare'"
        )
    where, workload, dropped = kept_jobs(workload, cluster, drop_infeasible)
    own = _own_loop(chosen, policy)
    if own is not None:
        return _by_own_loop(
            own, Instance(where, workload, together=chosen.together), str(policy), chosen, dropped
        )
    recipe = chosen.recipe(workload, policy, where)
    graphs = None
    if chosen.network is not None:
        from shadowprice.instances.graphs.generated_graphs import workload_graphs

        graphs = workload_graphs(recipe.workload, chosen.network, chosen.training)
    instance = Instance(
        where,
        recipe.workload,
        recipe.overheads,
        chosen.sharing(recipe.workload, where),
        graphs,
        recipe.conditions,
    )
    acting, log = _logged(recipe.policy) if chosen.prices else (recipe.policy, None)
    result = run(instance, acting, placement=recipe.placement, rounds=recipe.rounds)
    settings = {
        "preset": chosen.preset,
        "placement": recipe.placement.name,
        "round_s": recipe.rounds.length_s,
        "first_round_s": recipe.rounds.first_s,
        "seed": chosen.seed,
        "preemptive": recipe.policy.preemptive,
        "dropped": dropped,
    }
    return Outcome.verified(
        instance,
        result.schedule,
        policy=policy_name(policy),
        settings=settings,
        decisions=result.decisions,
        cpu_s=result.cpu_s,
        prices=log,
    )


def policy_name(policy: str | Policy | ForkSettings) -> str:
    """Name by which a policy was asked for."""
    return policy if isinstance(policy, str) else policy.name


def sets_prices(policy: Policy) -> bool:
    """True if a policy can keep the prices it sets."""
    from shadowprice.solvers.hadar.committed import HadarCommitted
    from shadowprice.solvers.hadar.hadar import Hadar

    return isinstance(policy, Hadar | HadarCommitted)


def _logged(policy: Policy) -> tuple[Policy, PriceLog]:
    """The policy with a log of its prices; the log itself is the policy's own if it has one."""
    from shadowprice.solvers.hadar.committed import HadarCommitted
    from shadowprice.solvers.hadar.hadar import Hadar
    from shadowprice.solvers.hadar.prices import PriceLog

    if not isinstance(policy, Hadar | HadarCommitted):
        raise InputError(
            f"policy {policy.name!r} sets no prices, expected one of hadar, hadar-committed, oasis"
        )
    log = PriceLog() if policy.log is None else policy.log
    return replace(policy, log=log), log


OwnLoop = Callable[[Instance, int], Schedule]


def _own_loop(chosen: Semantics, policy: str | Policy) -> OwnLoop | None:
    if chosen.preset is None or not isinstance(policy, str):
        return None
    return find_preset(chosen.preset).loop(policy)


def _by_own_loop(
    loop: OwnLoop, instance: Instance, policy: str, chosen: Semantics, dropped: list[str]
) -> Outcome:
    """Run a preset whose peer has a loop of its own; its switches cannot be changed."""
    fixed = Semantics(preset=chosen.preset, seed=chosen.seed, together=chosen.together)
    if chosen != fixed:
        raise InputError(
            f"preset {chosen.preset}: runs in its own loop, with its own rounds, placement and charges"
        )
    began = time.process_time()
    schedule = loop(instance, chosen.seed)
    cpu_s = time.process_time() - began
    settings = {
        "preset": chosen.preset,
        "seed": chosen.seed,
        "preemptive": True,
        "dropped": dropped,
    }
    return Outcome.verified(instance, schedule, policy=policy, settings=settings, cpu_s=cpu_s)
