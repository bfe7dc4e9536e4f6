"""ServerFilling-SRPT (``server-filling-srpt``): the jobs with least to do that fill the cluster, widest first.

Source: Grosof, Scully, Harchol-Balter and Scheller-Wolf, Optimal scheduling in the multiserver-job model under heavy
traffic, SIGMETRICS 2023 (arXiv 2211.02762; recalled). Jobs are ordered by remaining size, GPUs times time; the
least prefix that asks for all m GPUs or more is served by decreasing gangs.

Guarantee: with m and all gangs powers of two no GPU is idle while jobs ask for m or more, and nobody starves
(SF-fill), and the flow time exceeds the optimum by less than a constant number of mean services (SF-work);
the mean response time then tends to that of SRPT on one machine of speed m as the load tends to 1, for
Poisson arrivals (the paper's theorem; recalled). With other gangs, for which the paper has
DivisorFilling, GPUs that the prefix leaves over go to the jobs behind it (derived), without a guarantee.
Greedy SRPT (``srtf``, ``srsf``) lets wide gangs wait for as long as narrow ones keep coming.
Knows: durations. Preempts. Cost per decision: O(L log L) for L live jobs, O(1) a job when all fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shadowprice.solvers.classic.srtf import remaining_gpu_s
from shadowprice.solvers.index_policy import IndexPolicy, JobIndex, QueueRule, WhileRunning
from shadowprice.solvers.policy import Knowledge


@dataclass(frozen=True)
class ServerFillingSrpt(IndexPolicy):
    """Least remaining service first as far as it fills the cluster, and of these the widest first."""

    name: str = "server-filling-srpt"
    knows: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.DURATION})
    preemptive: ClassVar[bool] = True

    def job_index(self, service_gpu_s: NDArray[np.float64] | None) -> JobIndex:
        """Order by remaining service."""
        return JobIndex(
            QueueRule.FILLS, remaining_gpu_s, while_running=WhileRunning.ALIKE, elementwise=True
        )


POLICIES = (ServerFillingSrpt(),)
