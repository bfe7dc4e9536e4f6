"""GPUs that each tenant holds whenever a run of its jobs begins, against its quota of that day."""

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
    yield tenant < 0, lambda k: "the job's tenant has no quota", row
    held = runs.width(s) * jobs.gpu_milli[job]
    begins = np.arange(2 * len(row)) >= len(row)
    time = np.concatenate((s.end_s[row], s.start_s[row]))
    both = np.concatenate((tenant, tenant))
    # At one time GPUs are freed before others are taken.
    order = np.lexsort((begins, time, both))
    total = np.cumsum(np.concatenate((-held, held))[order])
    period = np.searchsorted(np.array(quotas.start_s), time[order], side="right") - 1
    limit = np.array(quotas.gpus, dtype=np.int64)[period, both[order]]

    def say(k: int) -> str:
        return f"its tenant then holds {total[k] / _WHOLE_GPU:g} GPUs, its quota is {limit[k]}"

    bad = begins[order] & (total > limit * _WHOLE_GPU)
    yield bad, say, np.concatenate((row, row))[order]
