"""The switches of a run as they are written, in options of a command or in a file: names, numbers and paths."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from shadowprice.errors import InputError

if TYPE_CHECKING:
    from shadowprice.analysis.semantics import Semantics
    from shadowprice.instances.cluster import Cluster
    from shadowprice.instances.failures.failures import Failures
    from shadowprice.instances.graphs.iteration_time import Network
    from shadowprice.instances.graphs.named_graphs import NamedGraphs
    from shadowprice.instances.speeds.throughputs import Throughputs

T = TypeVar("T")

PUBLISHED = "published"
"""Word for what was published, where a switch may also name a file."""

BYTES_PER_GB = 1e9


@dataclass(frozen=True)
class WrittenSwitches:
    """Switches of a run before anything of them is looked up or read.

    Parameters
    ----------
    preset, placement, predictor : str, optional
        Names, as of :class:`Semantics`.
    round_s, first_round_s, start_s, restart_s, migration_s : float, optional
        Rounds and charges [s].
    network : str, optional
        ``INTRA:NIC[:SHARING]`` in GB/s.
    job_graphs : Path, optional
        File of graphs of jobs by their names; with ``network``.
    profiles, spread, interference : str, optional
        ``published``, or the path of a file.
    grow : str, optional
        ``WIDEST[:EFFICIENCY]``, or the path of a JSON or TOML file.
    samples : Path, optional
        File of service times.
    failures : str, optional
        Nodes that fail, as of :meth:`Failures.parse`.
    checkpoint_interval_s, checkpoint_cost_s : float, optional
        Progress between checkpoints, and the time of one [s]; with ``failures``.
    preemption : str
        ``resume`` or ``restart``, as of :class:`Preemption`.
    seed : int
    """

    preset: str | None = None
    placement: str | None = None
    round_s: float | None = None
    first_round_s: float | None = None
    start_s: float | None = None
    restart_s: float | None = None
    migration_s: float | None = None
    predictor: str | None = None
    network: str | None = None
    job_graphs: Path | None = None
    profiles: str | None = None
    spread: str | None = None
    grow: str | None = None
    interference: str | None = None
    samples: Path | None = None
    failures: str | None = None
    checkpoint_interval_s: float | None = None
    checkpoint_cost_s: float | None = None
    preemption: str = "resume"
    seed: int = 0

    @property
    def charges_s(self) -> dict[str, Any]:
        """Overheads that were given, by their names in :class:`Overheads` [s]."""
        given = {
            "start_s": self.start_s,
            "restart_s": self.restart_s,
            "migration_s": self.migration_s,
        }
        return {name: seconds for name, seconds in given.items() if seconds is not None}

    def read(
        self, cluster: str | Cluster, table: Throughputs | None = None, **switches: Any
    ) -> tuple[Cluster, Semantics]:
        """The cluster and the switches of a run, files read.

        Parameters
        ----------
        table : Throughputs, optional
            Rates, of pairs of jobs among them.
        switches
            Those of :class:`Semantics` that cannot be written.

        Raises
        ------
        InputError
            If a file or a value is not as expected.
        """
        from shadowprice.analysis.semantics import Semantics
        from shadowprice.instances.cluster import Cluster
        from shadowprice.instances.failures.preemption import Preemption
        from shadowprice.instances.instance import Overheads
        from shadowprice.instances.samples import load_samples
        from shadowprice.instances.speeds.interference import Interference
        from shadowprice.instances.speeds.model_skew import ModelSkews, published_skews
        from shadowprice.instances.speeds.profiles import Profiles
        from shadowprice.instances.speeds.widths import parse_growth
        from shadowprice.solvers.tiresias.gittins_index import ServiceDistribution

        where = cluster if isinstance(cluster, Cluster) else Cluster.load(cluster)
        samples = None
        profiles = _named(self.profiles, Profiles.synthetic, Profiles.load)
        if self.samples is not None:
            samples = ServiceDistribution(load_samples(self.samples))
        return where, Semantics(
            preset=self.preset,
            placement=self.placement,
            round_s=self.round_s,
            first_round_s=self.first_round_s,
            overheads=Overheads(**self.charges_s) if self.charges_s else None,
            samples=samples,
            seed=self.seed,
            pair_throughputs=table,
            predictor=self.predictor,
            network=None if self.network is None else parse_network(self.network, where),
            graphs=self._graphs(),
            profiles=profiles,
            skews=_named(self.spread, published_skews, ModelSkews.load),
            growth=None if self.grow is None else parse_growth(self.grow),
            interference=_named(self.interference, Interference, Interference.load),
            failures=self._failures(),
            preemption=Preemption.parse(self.preemption),
            **switches,
        )

    def _graphs(self) -> NamedGraphs | None:
        """Graphs of jobs by their names."""
        if self.job_graphs is None:
            return None
        from shadowprice.instances.graphs.named_graphs import NamedGraphs

        return NamedGraphs.load(self.job_graphs)

    def _failures(self) -> Failures | None:
        """Faults of nodes and checkpoints of jobs."""
        if self.failures is None:
            for switch, value in (
                ("--checkpoint-interval", self.checkpoint_interval_s),
                ("--checkpoint-cost", self.checkpoint_cost_s),
            ):
                if value is not None:
                    raise InputError(
                        f"{switch}: is about nodes that fail, expected --failures as well (none: checkpoints alone)"
                    )
            return None
        from shadowprice.instances.failures.failures import Failures

        cost_s = self.checkpoint_cost_s or 0.0
        return Failures.parse(self.failures, self.checkpoint_interval_s, cost_s)


def _named(text: str | None, published: Callable[[], T], load: Callable[[Path], T]) -> T | None:
    """Values of a switch: none, the published ones, or those of a file."""
    if text is None:
        return None
    return published() if text == PUBLISHED else load(Path(text))


# Bandwidths from options or from a cluster's nodes; the one place that reads them.


def parse_network(text: str, cluster: Cluster) -> Network:
    """Bandwidths as INTRA:NIC[:SHARING] in GB/s.

    Raises
    ------
    InputError
        If they are written otherwise or not positive, or GPUs are of several types.
    """
    words = text.split(":")
    try:
        intra, nic = (float(word) for word in words[:2])
    except ValueError:
        intra = nic = float("nan")
    if len(words) not in (2, 3) or not (0 < intra < float("inf") and 0 < nic < float("inf")):
        raise InputError(
            f"network {text!r}: expected INTRA:NIC[:SHARING], bandwidths in GB/s, such as 300:12.5:per-job"
        )
    return network_of(cluster, intra, nic, words[2] if len(words) == 3 else "per-gpu")


def network_of(cluster: Cluster, intra: float | None, nic: float | None, sharing: str) -> Network:
    """Bandwidths from options [GB/s], or from the cluster's nodes where they are not given.

    Raises
    ------
    InputError
        If GPUs are of several types, or a bandwidth is not known or differs between nodes.
    """
    if len(cluster.gpu_types) > 1:
        raise InputError(
            f"cluster {cluster}: GPU types {', '.join(cluster.gpu_types)}, expected one: job graphs "
            "are for GPUs of one speed"
        )
    from shadowprice.instances.graphs.iteration_time import Network

    inside = _bandwidth("--intra", intra, (node.intra_gb_per_s for node in cluster.nodes))
    outside = _bandwidth("--nic", nic, (node.nic_gb_per_s for node in cluster.nodes))
    return Network(inside, outside, int(cluster.gpus_per_node.max()), sharing)


def _bandwidth(option: str, given: float | None, of_nodes: Iterable[float]) -> float:
    """Bytes per second."""
    known = sorted(set(of_nodes)) if given is None else [given]
    if len(known) > 1:
        raise InputError(
            f"cluster: bandwidths of nodes go from {known[0]:g} to {known[-1]:g} GB/s, expected one "
            f"for all; give {option} to use another"
        )
    if known == [0.0] and given is None:
        raise InputError(f"cluster: does not say its bandwidth; give {option} GB/s")
    if not 0 < known[0] < float("inf"):
        raise InputError(f"{option} is {known[0]:g}, expected GB/s > 0")
    return known[0] * BYTES_PER_GB
