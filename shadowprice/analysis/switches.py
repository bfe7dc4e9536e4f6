"""The switches of a run as they are written, in options of a command or in a file: names, numbers, paths and terms."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shadowprice.analysis.terms.written_term import WrittenRun, WrittenTerm
    from shadowprice.instances.cluster import Cluster
    from shadowprice.instances.speeds.throughputs import Throughputs


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
    terms : tuple of WrittenTerm
        In the order in which they are read.
    """

    preset: str | None = None
    placement: str | None = None
    round_s: float | None = None
    first_round_s: float | None = None
    predictor: str | None = None
    samples: Path | None = None
    seed: int = 0
    terms: tuple[WrittenTerm, ...] = ()

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
    ) -> WrittenRun:
        """The cluster and the switches of a run, files read.

        Parameters
        ----------
        table : Throughputs, optional
            Rates, of pairs of jobs among them.
        jobs, origin_s, endless
            As of :class:`WrittenRun`.
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
        from shadowprice.analysis.terms.reading import with_terms
        from shadowprice.analysis.terms.written_term import WrittenRun
        from shadowprice.instances.cluster import Cluster
        from shadowprice.instances.samples import load_samples
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
        return with_terms(WrittenRun(where, plain, jobs, origin_s, endless, drawn_by), self.terms)
