"""The options of a run: one record, every option with one meaning whatever the policy."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from shadowprice.brief import Brief
from shadowprice.errors import InputError
from shadowprice.instances.entries import shown
from shadowprice.instances.failures.preemption import Preemption

if TYPE_CHECKING:
    from shadowprice.instances.cluster import Cluster
    from shadowprice.instances.failures.failures import Failures
    from shadowprice.instances.graphs.generated_graphs import TrainingSetting
    from shadowprice.instances.graphs.named_graphs import NamedGraphs
    from shadowprice.instances.graphs.network import Network
    from shadowprice.instances.graphs.workload_graphs import JobGraphs
    from shadowprice.instances.speeds.interference import Interference
    from shadowprice.instances.speeds.model_skew import ModelSkews
    from shadowprice.instances.speeds.profiles import Profiles
    from shadowprice.instances.speeds.sensitivity import Sensitivity
    from shadowprice.instances.speeds.throughputs import Throughputs
    from shadowprice.instances.terms.charges import Overheads
    from shadowprice.instances.terms.declared import DeclaredTerm
    from shadowprice.instances.terms.spread import Locality
    from shadowprice.instances.terms.widths import Elasticity, Growth, ModelGrowth
    from shadowprice.instances.terms.window import JobWindow
    from shadowprice.instances.workload import Workload
    from shadowprice.solvers.tiresias.gittins_index import ServiceDistribution

_BY_VALUE = (
    "overheads",
    "network",
    "training",
    "graphs",
    "profiles",
    "skews",
    "growth",
    "interference",
    "until_complete",
    "failures",
    "preemption",
    "declared",
)
"""Options that say what is given rather than how it is run."""
OF_THE_ENGINE = ("placement", "round_s", "first_round_s", "sealed", *_BY_VALUE)
"""Options that the engine follows, whatever the policy; a scheduler with a loop of its own takes
those that it has a parameter for, and refuses the others."""
OF_THE_POLICY = ("predictor", "graph_placement", "prices")
"""Choices that are the policy's to follow: one that does not take them refuses them. A placement of job
graphs is one, given as ``placement``."""
DATA = ("samples", "seed", "sharing_rates")
"""What may be known of jobs, and a seed: of use to some policies, and left aside by the others."""
OF_THE_INSTANCE = ("preset", "sharing_rates", *_BY_VALUE)
"""Options that an instance which is given says itself."""


@dataclass(frozen=True, repr=False)
class RunOptions(Brief):
    """The options of a run; every one has a name and a clean default.

    Parameters
    ----------
    preset : str, optional
        A published simulator whose policy names and semantics to use; None for the clean ones.
    placement : str, optional
        Which nodes a gang gets; by default ``count``, or what the preset does.
    round_s : float, optional
        Seconds between decisions; 0 for a decision at every event, None for the preset's. With
        ``hadare``, which has rounds of its own, the length of these.
    first_round_s : float, optional
        Time of the first round boundary [s]; None for the preset's, or 0.
    overheads : Overheads, optional
        Start, restart and migration charges; None for the preset's, or none.
    samples : ServiceDistribution, optional
        A sample of service times, for presets that need one, and for ``gittins2d`` instead of the
        workload's own.
    seed : int
        Seed of policies that draw random numbers.
    sharing_rates : Throughputs, optional
        Rates of pairs of jobs that share GPUs, for policies that let them.
    predictor : str, optional
        Predictor of iterations, for policies that take one: ``forest``, ``noisy:2`` ...
    network : Network, optional
        Bandwidths; given, every job gets the graph of its model, its work counts iterations, and
        ``placement`` may name a placement of job graphs.
    training : TrainingSetting, optional
        How the models are trained, for their graphs.
    graphs : NamedGraphs, optional
        Graphs of jobs by their names, instead of those of their models; with ``network``.
    profiles : Profiles, optional
        Speeds of models by CPUs and memory, which are then handed out beside GPUs; the cluster
        must say how many its nodes have.
    skews : ModelSkews, optional
        How much slower models are when their gangs are spread over nodes, and how skewed they
        are for placement ``skew``.
    growth : Growth or ModelGrowth, optional
        How many more GPUs jobs may hold than their gang, all or by model, for policies that widen them.
    interference : Interference, optional
        Rates of jobs that share GPUs by how busy they keep them, instead of ``sharing_rates``.
    until_complete : JobWindow, optional
        Jobs, in order of arrival, whose completion ends the run; arrivals go on until then.
    failures : Failures, optional
        When nodes go down and come up, and what jobs save of their work.
    preemption : Preemption
        Whether a job that is preempted keeps its work.
    declared : tuple of DeclaredTerm
        What else holds or slows runs, such as racks or a term of one's own.
    prices : bool
        Whether to keep the prices over time, of policies that set some.
    sealed : bool
        Whether the policy's code runs in a process of its own, which is sent what the policy may see and holds nothing
        else (:class:`shadowprice.execution.sealed.policy.SealedPolicy`).
    """

    preset: str | None = None
    placement: str | None = None
    round_s: float | None = None
    first_round_s: float | None = None
    overheads: Overheads | None = None
    samples: ServiceDistribution | None = None
    seed: int = 0
    sharing_rates: Throughputs | None = None
    predictor: str | None = None
    network: Network | None = None
    training: TrainingSetting | None = None
    graphs: NamedGraphs | None = None
    profiles: Profiles | None = None
    skews: ModelSkews | None = None
    growth: Growth | ModelGrowth | None = None
    interference: Interference | None = None
    until_complete: JobWindow | None = None
    failures: Failures | None = None
    preemption: Preemption = Preemption.RESUME
    declared: tuple[DeclaredTerm, ...] = ()
    prices: bool = False
    sealed: bool = False

    def expect_of_runs_alone(self, source: str) -> None:
        """Raise InputError for an option that says what an instance, which is given, says itself."""
        for option in fields(self):
            value = getattr(self, option.name)
            if option.name in OF_THE_INSTANCE and value != option.default:
                raise InputError(
                    f"{source}: an instance is given, and {option.name} by the options as well, {shown(value)}; "
                    "expected it in the instance alone"
                )

    def sensitivity(self, workload: Workload, cluster: Cluster) -> Sensitivity | None:
        """Speeds of jobs by CPUs and memory, None if they do not depend on these."""
        return None if self.profiles is None else self.profiles.of(workload, cluster)

    def locality(self, workload: Workload) -> Locality | None:
        """Speeds of spread gangs, None if they are as fast as others."""
        if self.skews is None:
            return None
        from shadowprice.instances.terms.spread import locality_of

        return locality_of(workload, self.skews)

    def elasticity(self, workload: Workload, cluster: Cluster) -> Elasticity | None:
        """Widths of jobs, None if nobody grows."""
        return None if self.growth is None else self.growth.of(workload, cluster)

    def job_graphs(self, workload: Workload) -> JobGraphs | None:
        """Graphs of jobs, None if they have none.

        Raises
        ------
        InputError
            If graphs are given and no network, a job has none of them, or names no known model.
        """
        if self.network is None:
            if self.graphs is not None:
                raise InputError(
                    f"{self.graphs.source}: graphs are given, expected a network as well"
                )
            return None
        if self.graphs is not None:
            return self.graphs.on(workload, self.network)
        from shadowprice.instances.graphs.generated_graphs import workload_graphs

        return workload_graphs(workload, self.network, self.training)

    def sharing(self, workload: Workload, cluster: Cluster) -> Throughputs | None:
        """Rates of jobs that share GPUs, None if nobody may.

        Raises
        ------
        InputError
            If both a table and interference are given.
        """
        if self.interference is None:
            return self.sharing_rates
        if self.sharing_rates is not None:
            raise InputError(
                f"rates of jobs that share GPUs are given twice, by {self.sharing_rates.source} and by "
                "interference; expected one of the two"
            )
        return self.interference.of(workload, cluster)
