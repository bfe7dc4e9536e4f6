"""GPUs that each tenant holds whenever a run of its jobs begins, against its quota of that day.

Jobs that share GPUs hold half of them each, jobs on cores none. Who goes on, on GPUs that are its own again or with
other CPUs, does not begin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from shadowprice.instances.clusters.quotas import Quotas
    from shadowprice.instances.instance import Instance
    from shadowprice.instances.schedule import Schedule
    from shadowprice.proofs.verification.speeds import Runs

_WHOLE_GPU = 1000
_ENDS, _GOES_ON, _BEGINS = 0, 1, 2

Fault = tuple[NDArray[np.bool_], Callable[[int], str], NDArray[np.int64]]
"""Entries that break the rule, what to say of each, and their rows."""


def beyond_quotas(
    instance: Instance, quotas: Quotas, schedule: Schedule, runs: Runs
) -> Iterator[Fault]:
    """Runs of jobs whose tenant has no quota, then those that begin beyond it; O(R log R)."""
    s, jobs = schedule, instance.workload
    place = {name: k for k, name in enumerate(quotas.tenants)}
    of_job = [place.get(name, -1) for name in jobs.tenant.tolist()]
    job, row = s.job[runs.row], runs.row
    tenant = np.array(of_job, dtype=np.int64)[job]
    on_cores = jobs.on_cores[job]
    yield (tenant < 0) & ~on_cores, lambda k: "the job's tenant has no quota", row
    held = runs.width(s) * jobs.gpu_milli[job] // np.where(s.partner[row] >= 0, 2, 1)
    held[on_cores] = 0
    # At one time GPUs are freed first, then held by those who go on, then by those who begin.
    begins = np.where(runs.goes_on(s) | on_cores, _GOES_ON, _BEGINS)
    kind = np.concatenate((np.full(len(row), _ENDS), begins))
    time = np.concatenate((s.end_s[row], s.start_s[row]))
    both = np.concatenate((tenant, tenant))
    order = np.lexsort((kind, time, both))
    total = np.cumsum(np.concatenate((-held, held))[order])
    period = np.searchsorted(np.array(quotas.start_s), time[order], side="right") - 1
    limit = np.array(quotas.gpus, dtype=np.int64)[period, both[order]]

    def say(k: int) -> str:
        return f"its tenant then holds {total[k] / _WHOLE_GPU:g} GPUs, its quota is {limit[k]}"

    bad = (kind[order] == _BEGINS) & (total > limit * _WHOLE_GPU)
    yield bad, say, np.concatenate((row, row))[order]
