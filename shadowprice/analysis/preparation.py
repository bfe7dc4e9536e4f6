"""From a workload, a policy and options to a run: all that is decided before it begins.

Every run of the package is prepared here and nowhere else, once: simulations, comparisons, adversaries and
studies differ in what they do with the :class:`PreparedRun`. What an option does to which policy is one rule:

- an option that is about when decisions are due, what runs are charged, where gangs go and on what speeds
  depend is the engine's: every policy that runs in the engine takes it;
- a choice that is the policy's to follow goes to its parameter of that name, or to what it says it takes
  (:mod:`shadowprice.solvers.registry`); a policy that has neither refuses it;
- a scheduler with a loop of its own has no engine: it takes the options that it has a parameter for, such as
  the length of its rounds, or that say of the instance what it knows, and refuses all others;
- data about jobs (samples, rates of pairs) and the seed are for those that use them.

:func:`options_of` says what follows from it for a policy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from shadowprice.analysis.jobs_and_cluster import JobsAndCluster, Problem, Where
from shadowprice.analysis.run_options import DATA, OF_THE_ENGINE, OF_THE_POLICY, RunOptions
from shadowprice.brief import Brief
from shadowprice.errors import InputError
from shadowprice.execution.engine import Rounds, SeesRunsBegin
from shadowprice.execution.preset import RunSetup
from shadowprice.execution.preset_registry import preset as find_preset
from shadowprice.execution.simulator import HasSimulator, Simulator, schedulers
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.failures.preemption import Preemption
from shadowprice.instances.features import require
from shadowprice.instances.grid import MAX_TIME_S
from shadowprice.instances.instance import Instance
from shadowprice.instances.terms.charges import Overheads
from shadowprice.solvers import registry
from shadowprice.solvers.graph_placement.protocol import graph_placements
from shadowprice.solvers.offline.bounds import KNOWS as RELAXED_KNOWS
from shadowprice.solvers.placement.count import Count
from shadowprice.solvers.policy_checks import expect_policy
from shadowprice.solvers.predictors.predictor import predictor
from shadowprice.solvers.price_log import KeepsPrices, PriceLog
from shadowprice.solvers.registry import configured, taken

if TYPE_CHECKING:
    from shadowprice.execution.sealed.policy import SealedPolicy
    from shadowprice.instances.failures.checkpointing import Checkpointing
    from shadowprice.instances.speeds.sensitivity import Sensitivity
    from shadowprice.instances.terms.copies import CopyRules
    from shadowprice.instances.workload import Workload
    from shadowprice.solvers.placement.protocol import Placement
    from shadowprice.solvers.policy import Policy

BOUNDED_KNOWS = RELAXED_KNOWS
"""Features of runs whose costs are compared with bounds."""


@dataclass(frozen=True, eq=False, repr=False)
class PreparedRun(Brief):
    """All that is prepared of a run before it begins.

    Parameters
    ----------
    name : str
        By which the policy was asked for.
    instance : Instance
        Cluster, jobs, charges, and what speeds depend on.
    policy : Policy or None
        With its options; None where a scheduler has a loop of its own.
    placement : Placement
        Which nodes a gang gets.
    rounds : Rounds
        When decisions are due.
    simulator : Simulator or None
        What runs the instance instead of the engine, if anything does.
    settings : mapping
        What the outcome says of the run: preset, placement, round_s, seed, dropped jobs ...
    prices : PriceLog or None
        Where the policy keeps its prices, if it was asked to.
    """

    name: str
    instance: Instance
    policy: Policy | None
    placement: Placement = field(default_factory=Count)
    rounds: Rounds = field(default_factory=Rounds)
    simulator: Simulator | None = None
    settings: Mapping[str, object] = field(default_factory=dict)
    prices: PriceLog | None = None

    def keeping_prices(self) -> PreparedRun:
        """The same run, whose policy keeps its prices if it sets any."""
        policy = self.policy
        if not isinstance(policy, KeepsPrices):
            return self
        log = PriceLog() if policy.log is None else policy.log
        return replace(self, policy=policy.keeping(log), prices=log)


def prepare_run(
    jobs: Problem,
    cluster: Where | None,
    policy: str | Policy | HasSimulator,
    options: RunOptions | None = None,
    *,
    drop_infeasible: bool = False,
) -> PreparedRun:
    """Settle a run: names looked up, options handed to whom they concern, the instance built unless it was given.

    Parameters
    ----------
    jobs : Problem
        Jobs or an instance, as in :func:`shadowprice.simulate`.
    cluster : Where, optional
        A cluster, its short notation (``16x4``), or a TOML file; an instance has one.
    drop_infeasible : bool
        Leave out jobs that can never run, instead of refusing.

    Raises
    ------
    InputError
        If a name is unknown, what is given is no policy, a job can never fit, the policy does not take an option, or
        an instance is given and an option says what it says itself.
    """
    chosen, inputs = options or RunOptions(), JobsAndCluster.of(jobs, cluster)
    if inputs.instance is not None:
        chosen.expect_of_runs_alone(inputs.instance.workload.source)
    if isinstance(policy, type) or not isinstance(policy, str | HasSimulator):
        policy = expect_policy(policy)
    name, simulator = policy_name(policy), _simulator(policy, chosen)
    # All jobs of an instance can run.
    drops = drop_infeasible and inputs.instance is None
    where, runnable, dropped = runnable_jobs(inputs.ending(), inputs.cluster, drops)
    if simulator is not None:
        shared = "sharing_rates" in simulator.takes
        copies = None if simulator.copies is None else simulator.copies(where)
        if inputs.instance is None:
            known = chosen.sensitivity(runnable, where)
            instance = _instance(
                chosen, where, runnable, Overheads(), known, shared=shared, copies=copies
            )
        else:
            instance = _with_copies(inputs.instance, copies, name)
        require(instance, simulator.reads, f"{name}, which runs in a loop of its own")
        settings = {**simulator.settings, **_run_settings(chosen, inputs), "dropped": dropped}
        return PreparedRun(name, instance, None, simulator=simulator, settings=settings)
    assert not isinstance(policy, HasSimulator)  # It has a loop of its own.
    setup = _setup(policy, chosen, runnable, where)
    sealed = (
        {"sealed": list(setup.policy.enforced)} if isinstance(setup.policy, SeesRunsBegin) else {}
    )
    settings = {
        "preset": chosen.preset,
        "placement": setup.placement.name,
        "round_s": setup.rounds.length_s,
        "first_round_s": setup.rounds.first_s,
        "seed": chosen.seed,
        "preemptive": setup.policy.preemptive,
        "dropped": dropped,
        **sealed,
    }
    if inputs.instance is None:
        if setup.declared is not None:
            chosen = replace(chosen, declared=setup.declared)
        instance = _instance(
            chosen, where, setup.workload, setup.overheads, setup.sensitivity, shared=True
        )
    else:
        instance = inputs.instance
    run = PreparedRun(name, instance, setup.policy, setup.placement, setup.rounds, None, settings)
    run = replace(run, settings={**settings, **_run_settings(chosen, inputs)})
    if not chosen.prices:
        return run
    if not isinstance(run.policy, KeepsPrices):
        raise InputError(
            f"policy {setup.policy.name!r} sets no prices, expected one of {', '.join(_priced())}"
        )
    return run.keeping_prices()


@dataclass(frozen=True)
class PolicyOptions:
    """Options of a run that a policy takes, and those that it refuses.

    Parameters
    ----------
    takes : tuple of str
        Options that it follows, those that the engine follows for it included.
    refuses : tuple of str
        Options with which a run of it is refused. The others are data that it leaves aside.
    """

    takes: tuple[str, ...]
    refuses: tuple[str, ...]

    @classmethod
    def of(cls, takes: frozenset[str]) -> PolicyOptions:
        """Both in the order in which options are listed."""
        choices = (*OF_THE_ENGINE, *OF_THE_POLICY)
        return cls(
            tuple(name for name in (*choices, *DATA) if name in takes),
            tuple(name for name in choices if name not in takes),
        )


def options_of(policy: Policy | HasSimulator) -> PolicyOptions:
    """Options that a policy takes and refuses, by the rule that :func:`prepare_run` follows."""
    if isinstance(policy, HasSimulator):
        return PolicyOptions.of(policy.simulator({}).takes)
    return PolicyOptions.of(_taken(policy) | {*OF_THE_ENGINE})


def require_taken(policy: str | Policy | HasSimulator, options: RunOptions) -> None:
    """Refuse options that a policy does not take, before there are jobs to run it on.

    Raises
    ------
    InputError
        Naming the policy, or its preset, and the option.
    """
    if _simulator(policy, options) is not None:
        return
    if options.preset is not None:
        find_preset(options.preset).require_known(policy, options.placement)
        return
    if options.sealed:
        return  # The policy is not looked up here, and refuses what it does not take where it runs.
    acting = registry.policy(policy) if isinstance(policy, str) else policy
    assert not isinstance(acting, HasSimulator)  # It has a loop of its own.
    if options.predictor is not None:
        predictor(options.predictor)
    configured(acting, _of_policy(acting, options))
    _placement(options)


def policy_name(policy: str | Policy | HasSimulator) -> str:
    """Name by which a policy was asked for."""
    return policy if isinstance(policy, str) else policy.name


def runnable_jobs(
    workload: Workload, cluster: Where, drop_infeasible: bool
) -> tuple[Cluster, Workload, list[str]]:
    """Cluster, jobs that are run, and the names of those left out."""
    where = cluster if isinstance(cluster, Cluster) else Cluster.load(cluster)
    if not drop_infeasible:
        return where, workload, []
    feasible, names = Instance.feasible(where, workload)
    return where, feasible.workload, names.tolist()


def require_bounded(run: PreparedRun) -> None:
    """Raise InputError for a run of which no bound of the package holds.

    That is one of an instance with features that are not in ``BOUNDED_KNOWS``.
    """
    require(
        run.instance, BOUNDED_KNOWS, f"bounds of what {run.name!r} costs; simulate has its metrics"
    )


def _instance(
    chosen: RunOptions,
    cluster: Cluster,
    workload: Workload,
    overheads: Overheads,
    sensitivity: Sensitivity | None = None,
    *,
    shared: bool,
    copies: CopyRules | None = None,
) -> Instance:
    """The one place in which a run's instance is built; nobody shares GPUs unless jobs may."""
    together = chosen.sharing(workload, cluster) if shared else None
    failures = None
    if chosen.failures is not None:
        failures = chosen.failures.of(cluster, _likely_end_s(cluster, workload))
    return Instance(
        cluster,
        workload,
        overheads,
        together,
        chosen.job_graphs(workload),
        sensitivity,
        chosen.locality(workload),
        chosen.elasticity(workload, cluster),
        copies,
        chosen.until_complete,
        failures,
        preemption=chosen.preemption,
        declared=chosen.declared,
    )


def _with_copies(instance: Instance, rules: CopyRules | None, name: str) -> Instance:
    """An instance that was given, whose jobs run as copies if those of a scheduler do."""
    if rules is None or instance.copies == rules:
        return instance
    if instance.copies is not None:
        raise InputError(
            f"{instance.workload.source}: jobs run as copies by other rules than those of {name}, "
            f"got {instance.copies}, expected {rules}"
        )
    return replace(instance, copies=rules)


def _run_settings(chosen: RunOptions, inputs: JobsAndCluster) -> dict[str, object]:
    """Settings of nodes that fail, and of jobs that restart from nothing."""
    settings: dict[str, object] = {}
    preemption = chosen.preemption if inputs.instance is None else inputs.instance.preemption
    if chosen.failures is not None:
        settings = _failure_settings(chosen.failures.name, chosen.failures.checkpoints)
    elif inputs.instance is not None and inputs.instance.failures is not None:
        settings = _failure_settings(
            inputs.instance.failures.source, inputs.instance.failures.checkpoints
        )
    if preemption is Preemption.RESTART:
        settings["preemption"] = str(preemption)
    return settings


def _failure_settings(name: str, rule: Checkpointing) -> dict[str, object]:
    """Faults and checkpoints as the settings of a run have them; None for no checkpoints."""
    interval_s = None if rule.interval_s == math.inf else rule.interval_s
    return {
        "failures": name,
        "checkpoint_interval_s": interval_s,
        "checkpoint_cost_s": rule.cost_s,
    }


def _likely_end_s(cluster: Cluster, workload: Workload) -> float:
    """Time until which faults are drawn at first [s]; a run that takes longer has more drawn."""
    if not len(workload):
        return 1.0
    processing_s = workload.processing_s(cluster).min(axis=1)
    finite = np.isfinite(processing_s)
    gpu_s = float((workload.gpus * processing_s)[finite].sum())
    end_s = float(workload.arrival_s[-1] + processing_s[finite].max(initial=0.0))
    return min(max(math.ceil(end_s + gpu_s / cluster.total_gpus), 1.0), MAX_TIME_S)


def _setup(
    policy: str | Policy, chosen: RunOptions, workload: Workload, cluster: Cluster
) -> RunSetup:
    """Policy, placement, rounds and charges for the engine, and what a preset makes of the jobs."""
    if chosen.preset is None:
        acting = _acting(policy, chosen)
        known = chosen.sensitivity(workload, cluster)
        setup = RunSetup(workload, acting, _placement(chosen), sensitivity=known)
    elif chosen.sealed:
        raise InputError(
            f"preset {chosen.preset}: its policies are of this process, and the run is sealed; expected one of the two"
        )
    elif isinstance(policy, str):
        known = chosen.sensitivity(workload, cluster)
        setup = find_preset(chosen.preset).recipe(
            policy,
            workload,
            chosen.placement,
            chosen.samples,
            cluster,
            known,
            chosen.declared,
        )
        # Without a sensitivity of its own the original gives every run its share, at which all have speed 1.
    else:
        raise InputError(
            f"preset {chosen.preset}: takes the name of one of its policies, got {policy!r}"
        )
    rounds = setup.rounds if chosen.round_s is None else setup.rounds.of_length(chosen.round_s)
    if chosen.first_round_s is not None:
        rounds = replace(rounds, first_s=chosen.first_round_s)
    overheads = setup.overheads if chosen.overheads is None else chosen.overheads
    return replace(setup, rounds=rounds, overheads=overheads)


def _acting(policy: str | Policy, chosen: RunOptions) -> Policy:
    """The policy with its options, here or in a process of its own."""
    if chosen.sealed:
        return _sealed(policy, chosen)
    acting = registry.policy(policy) if isinstance(policy, str) else policy
    return configured(acting, _of_policy(acting, chosen))


def _sealed(policy: str | Policy, chosen: RunOptions) -> SealedPolicy:
    """The policy in a process of its own, which looks it up and gives it its options.

    Raises
    ------
    InputError
        If it is an object of this process, there is no such policy, or it does not take an option.
    """
    from shadowprice.execution.sealed.policy import SealedOptions, SealedPolicy

    if isinstance(policy, SealedPolicy):
        return policy
    name = policy if isinstance(policy, str) else registry.registered_name(policy)
    if name is None:
        raise InputError(
            f"policy {policy_name(policy)!r}: is an object of this process, and the run is sealed; expected its name, "
            "such as FILE.py:NAME"
        )
    if chosen.prices:
        raise InputError(
            f"policy {name!r}: its prices stay in its process, and the run is sealed; expected one of the two"
        )
    of_graphs = chosen.placement in graph_placements()
    options = SealedOptions(
        chosen.predictor,
        chosen.placement if of_graphs else None,
        None if chosen.samples is None else tuple(chosen.samples.samples_gpu_s.tolist()),
    )
    return SealedPolicy(name, options=options)


def _placement(chosen: RunOptions) -> Placement:
    """The placement of gangs, which goes on counting GPUs where job graphs have one of their own."""
    if chosen.placement is None or chosen.placement in graph_placements():
        return Count()
    place = registry.placement(chosen.placement)
    values = {} if chosen.skews is None else {"skews": chosen.skews}
    return configured(place, {name: values[name] for name in taken(place, values)})


def _of_policy(policy: Policy, chosen: RunOptions) -> dict[str, Any]:
    """Values of the policy's parameters that the options set; data of no use to it is left aside.

    Raises
    ------
    InputError
        If it does not take one that is a choice.
    """
    of_graphs = chosen.placement in graph_placements()
    wanted = {
        "predictor": chosen.predictor,
        "placement": chosen.placement if of_graphs else None,
    }
    values: dict[str, Any] = {name: value for name, value in wanted.items() if value}
    takes = _taken(policy)
    for name, value in values.items():
        what = f"{name} of job graphs" if name == "placement" else name
        if ("graph_placement" if name == "placement" else name) not in takes:
            raise InputError(f"policy {policy.name!r} takes no {what}, got {value!r}")
    if chosen.samples is not None and "samples" in takes:
        values["samples"] = chosen.samples
    return values


def _taken(policy: Policy) -> frozenset[str]:
    """Options that a policy takes, beside those of the engine."""
    names = set(taken(policy, ("predictor", "placement", "samples")))
    if "placement" in names:
        names = names - {"placement"} | {"graph_placement"}
    if isinstance(policy, KeepsPrices):
        names.add("prices")
    return frozenset(names)


def _simulator(policy: str | Policy | HasSimulator, chosen: RunOptions) -> Simulator | None:
    """The loop of a scheduler that the engine does not run, under options that it takes.

    Raises
    ------
    InputError
        If it does not take one that differs from the default.
    """
    values = {each.name: getattr(chosen, each.name) for each in fields(RunOptions)}
    known = schedulers()
    if isinstance(policy, str) and policy.partition(":")[0] in known:
        policy = registry.resolve("policy", policy, known)
    simulator: Simulator | None = None
    if isinstance(policy, HasSimulator):
        simulator = policy.simulator(values)
    elif chosen.preset is not None and isinstance(policy, str):
        simulator = find_preset(chosen.preset).simulator(policy, chosen.seed)
    if simulator is None:
        return None
    for option in fields(RunOptions):
        followed = option.name in simulator.takes or option.name in simulator.ignores
        if values[option.name] != option.default and not followed:
            raise InputError(simulator.refusal(option.name, values[option.name]))
    return simulator


def _priced() -> list[str]:
    """Policies that set prices."""
    return sorted(
        name for name, each in registry.policies().items() if isinstance(each, KeepsPrices)
    )
