"""Schedulers and measures of Tiresias' experiments (NSDI'19, section 6), for the figures beside this file.

YARN-CS is FIFO that blocks at the head with consolidated placement, Best-effort FIFO that does not. ``public`` is
the simulator published with the paper, as the preset ``tiresias`` has it: fifo on ``yarn``, dlas-gpu on ``count``
with its own thresholds of 3,250 and 7,200 GPU-s and late demotion. ``ours`` are the policies of this package.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np

import shadowprice as sp
from shadowprice.errors import InputError
from shadowprice.instances.generators.gpu_time_sample import PUBLIC_GPU_S
from shadowprice.solvers.tiresias.gittins_index import ServiceDistribution

PUBLIC = {
    "YARN-CS": "fifo@yarn",
    "Best-effort": "fjf@yarn",
    "SRTF": "shortest@count",
    "Gandiva": "gandiva",
    "Tiresias-G": "dlas-gpu-gittins@count",
    "Tiresias-L": "dlas-gpu@count",
}
"""Names in the public simulator."""

OURS: Mapping[str, tuple[str, str]] = {
    "YARN-CS": ("fifo", "consolidate"),
    "Best-effort": ("fifo-skip", "consolidate"),
    "SRTF": ("srtf", "count"),
    "Tiresias-G": ("gittins2d:thresholds_gpu_s={limit}", "count"),
    "Tiresias-L": ("las2d:thresholds_gpu_s={limit}", "count"),
}
"""Policy and placement; the threshold [GPU-s] is filled in."""


@cache
def public_samples() -> ServiceDistribution:
    """The sample that the public simulator's Gittins index is built on, by its kept quantiles."""
    return ServiceDistribution(PUBLIC_GPU_S.quantile(np.linspace(0.0, 1.0, 1001)))


def simulate(
    jobs: sp.Workload,
    cluster: str,
    simulator: str,
    scheduler: str,
    *,
    limit: float,
    restart_s: float = 0.0,
) -> sp.Outcome:
    """A verified run of a scheduler in the public simulator or in ours.

    Parameters
    ----------
    limit : float
        Threshold of ours with K = 2 [GPU-s]; the public simulator has its own.
    restart_s : float
        Charge for resuming after a preemption [s]; the public simulator has none.
    """
    if simulator == "public":
        if restart_s:
            raise InputError(f"the public simulator charges nothing, got {restart_s:g} s a restart")
        samples = public_samples() if scheduler == "Tiresias-G" else None
        return sp.simulate(
            jobs, cluster, PUBLIC[scheduler], sp.RunOptions(preset="tiresias", samples=samples)
        )
    policy, placement = OURS[scheduler]
    charges = sp.Overheads(restart_s=restart_s)
    return sp.simulate(
        jobs,
        cluster,
        policy.format(limit=limit),
        sp.RunOptions(placement=placement, overheads=charges),
    )
