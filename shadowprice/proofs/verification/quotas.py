"""GPUs that each tenant holds whenever a run of its jobs begins, against its quota of that day.

Jobs that share GPUs hold half of them each, jobs on cores none. Who goes on, on GPUs that are its own again or with
other CPUs, does not begin. A copy of a job holds all GPUs of its node, and goes on where the job had a copy on that
node in the round that this one follows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from shadowprice.instances.instance import Instance
    from shadowprice.instances.schedule import Schedule
    from shadowprice.proofs.verification.speeds import Runs

_WHOLE_GPU = 1000
_ENDS, _GOES_ON, _BEGINS = 0, 1, 2

Fault = tuple[NDArray[np.bool_], Callable[[int], str], NDArray[np.int64]]
"""Entries that break the rule, what to say of each, and their rows."""


def beyond_quotas(instance: Instance, schedule: Schedule, runs: Runs) -> Iterator[Fault]:
    """Runs of jobs whose tenant has no quota, then those that begin beyond it; O(R log R)."""
    quotas = instance.cluster.quotas
    if quotas is None:
        return
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


def copies_beyond_quotas(
    instance: Instance, schedule: Schedule, steps: NDArray[np.int64], round_s: float
) -> Iterator[Fault]:
    """Copies of jobs whose tenant has no quota, then those that begin beyond it; O(R log R)."""
    quotas = instance.cluster.quotas
    if quotas is None:
        return
    s, rows = schedule, np.arange(len(schedule))
    place = {name: k for k, name in enumerate(quotas.tenants)}
    of_job = [place.get(name, -1) for name in instance.workload.tenant.tolist()]
    tenant = np.array(of_job, dtype=np.int64)[s.job]
    yield tenant < 0, lambda k: "the job's tenant has no quota", rows
    size = np.array([node.gpus for node in instance.cluster.nodes], dtype=np.int64)
    held: dict[tuple[int, float], int] = {}
    at = list(zip(tenant.tolist(), s.start_s.tolist(), strict=True))
    for key, gpus in zip(at, size[s.node].tolist(), strict=True):
        held[key] = held.get(key, 0) + gpus
    total = np.array([held[key] for key in at], dtype=np.int64)
    # A copy without steps was cut: its node is gone, or the run over.
    columns = (each[steps > 0].tolist() for each in (s.job, s.node, s.start_s))
    had = set(zip(*columns, strict=True))
    before_s = (s.start_s - round_s).tolist()
    asked = zip(s.job.tolist(), s.node.tolist(), before_s, strict=True)
    begins = np.array([each not in had for each in asked], dtype=bool)
    period = np.searchsorted(np.array(quotas.start_s), s.start_s, side="right") - 1
    limit = np.array(quotas.gpus, dtype=np.int64)[period, tenant]

    def say(k: int) -> str:
        return f"its tenant then holds nodes of {total[k]} GPUs, its quota is {limit[k]}"

    yield begins & (total > limit), say, rows
