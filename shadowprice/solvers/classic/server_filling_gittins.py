"""ServerFilling-Gittins (``server-filling-gittins``): the jobs of highest index that fill the cluster, widest first.

Source: Grosof, Scully, Harchol-Balter and Scheller-Wolf, Optimal scheduling in the multiserver-job model under heavy
traffic, SIGMETRICS 2023 (arXiv 2211.02762; recalled). As ``server-filling-srpt``, where run times are not known:
jobs are ordered by the Gittins index of their attained service, GPUs times time, over the distribution of
service (:mod:`shadowprice.solvers.tiresias.gittins_index`), highest first.

Guarantee: with m and all gangs powers of two no GPU is idle while jobs ask for m or more, and nobody starves
(SF-fill, which holds for any order); the mean response time then tends to the least of all policies that know
no more as the load tends to 1, for Poisson arrivals (the paper's theorem; recalled). That one takes the index
given the gang; here all gangs have one distribution, that of the workload or of a sample, so where service
depends on the gang it does not apply.
Knows: the distribution of service over the workload, but not whose is which; nothing if a sample is given. Preempts.
Cost per decision: O(L (log L + log n)) for L live jobs and n samples, after one sort; O(1) a job when all fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.grid import up_to_grid
from shadowprice.solvers.list_scheduling import serve_in_order, widest_of_prefix_first
from shadowprice.solvers.policy import Decision, JobColumns, Knowledge, State
from shadowprice.solvers.tiresias.gittins_index import ServiceDistribution


@dataclass(frozen=True)
class ServerFillingGittins:
    """Highest Gittins index first as far as it fills the cluster, and of these the widest first.

    While a job runs its index does not fall before the service up to which it is attained. Jobs are ordered anew
    when the first of the running ones is there, if others wait.

    Parameters
    ----------
    least_s : float
        Least time between two decisions that no job's arrival or end calls for [s].
    sample : ServiceDistribution, optional
        A sample of total service [GPU-s], from a history for instance, instead of the workload's.
    """

    name: str = "server-filling-gittins"
    least_s: float = 60.0
    sample: ServiceDistribution | None = field(default=None, repr=False, compare=False)
    preemptive: ClassVar[bool] = True
    takes: ClassVar[frozenset[str]] = frozenset({"samples"})

    def __post_init__(self) -> None:
        if not 1e-3 <= self.least_s <= 1e9:
            raise InputError(
                f"{self.name}: least_s is {self.least_s!r}, expected seconds from 0.001 to 1e9"
            )

    @property
    def knows(self) -> frozenset[Knowledge]:
        """The distribution of the workload, unless a sample is given."""
        return frozenset({Knowledge.DISTRIBUTION}) if self.sample is None else frozenset()

    def with_options(self, values: Mapping[str, Any]) -> ServerFillingGittins:
        """The policy with the sample of a run instead of the workload's own distribution."""
        return replace(self, sample=values["samples"])

    def decide(self, state: State) -> Decision:
        """Serve live jobs in that order; wake where the index of a running one may fall."""
        known, total_gpus = self._distribution(state), state.total_gpus

        def priority(live: JobColumns) -> NDArray[np.int64]:
            index, _ = known.index_until(live.attained_s * live.gpus)
            return widest_of_prefix_first(np.argsort(-index, kind="stable"), live.gpus, total_gpus)

        decision = serve_in_order(state, priority)
        if len(state.waiting) + len(decision.stops) > len(decision.starts):
            stopped = set(decision.stops)
            runs = [*(job for job in state.running if job not in stopped), *decision.starts]
            falls_s = self._falls_in_s(state.columns(runs), known)
            if np.isfinite(falls_s):
                decision.wake_at(state.now_s + max(falls_s, self.least_s))
        return decision

    def _distribution(self, state: State) -> ServiceDistribution:
        if self.sample is not None:
            return self.sample
        return state.notes(ServiceDistribution, lambda: ServiceDistribution(state.service_gpu_s()))

    def _falls_in_s(self, running: JobColumns, known: ServiceDistribution) -> float:
        """Time after which the index of a running job may fall [s]; infinity for never."""
        attained = running.attained_s * running.gpus
        _, until = known.index_until(attained)
        return float(up_to_grid((until - attained) / running.gpus).min(initial=np.inf))


POLICIES = (ServerFillingGittins(),)
