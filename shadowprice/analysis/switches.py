"""The switches of a run as they are written, in options of a command or in a file: names, numbers, paths and terms."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from shadowprice.analysis.semantics import Semantics
    from shadowprice.instances.cluster import Cluster
    from shadowprice.instances.speeds.throughputs import Throughputs
    from shadowprice.instances.terms.settings import TermSettings


class ReadSwitches(NamedTuple):
    """Cluster and switches of a run, files read."""

    cluster: Cluster
    semantics: Semantics


@dataclass(frozen=True)
class WrittenSwitches:
    """Switches of a run before anything of them is looked up or read.

    Parameters
    ----------
    preset, placement, predictor : str, optional
        Names, as of :class:`Semantics`.
    round_s, first_round_s : float, optional
        Rounds [s].
    samples : Path, optional
        File of service times.
    seed : int
    terms : tuple of TermSettings
        In the order in which they are read.
    """

    preset: str | None = None
    placement: str | None = None
    round_s: float | None = None
    first_round_s: float | None = None
    predictor: str | None = None
    samples: Path | None = None
    seed: int = 0
    terms: tuple[TermSettings, ...] = ()

    def read(
        self,
        cluster: str | Cluster,
        table: Throughputs | None = None,
        *,
        jobs: str,
        origin_s: float | None = None,
        endless: bool = False,
        drawn_by: int = 0,
        **switches: Any,
    ) -> ReadSwitches:
        """The cluster and the switches of a run, files read.

        Parameters
        ----------
        table : Throughputs, optional
            Rates, of pairs of jobs among them.
        jobs, origin_s, endless
            As of :class:`TermContext`.
        drawn_by : int
            Seed of what terms draw, where they say no other.
        switches
            Those of :class:`Semantics` that cannot be written.

        Raises
        ------
        InputError
            If a file or a value is not as expected.
        """
        from shadowprice.analysis.semantics import Semantics
        from shadowprice.instances.cluster import Cluster
        from shadowprice.instances.samples import load_samples
        from shadowprice.instances.terms.options.reading import with_terms
        from shadowprice.instances.terms.settings import TermContext
        from shadowprice.solvers.tiresias.gittins_index import ServiceDistribution

        samples = None
        if self.samples is not None:
            samples = ServiceDistribution(load_samples(self.samples))
        plain = Semantics(
            preset=self.preset,
            placement=self.placement,
            round_s=self.round_s,
            first_round_s=self.first_round_s,
            samples=samples,
            seed=self.seed,
            pair_throughputs=table,
            predictor=self.predictor,
            **switches,
        )
        where = cluster if isinstance(cluster, Cluster) else Cluster.load(cluster)
        read = with_terms(TermContext(where, jobs, origin_s, endless, drawn_by), self.terms)
        return ReadSwitches(read.cluster, replace(plain, **read.switches))
