"""Quotas of tenants in compiled code: who may begin, and when that changes.

What :mod:`shadowprice.solvers.placement.tenant_quotas` says of jobs that hold whole GPUs: limits are of beginnings, and
who goes on needs room only where another of the tenant begins.
"""

from __future__ import annotations

import numpy as np

from shadowprice.execution.kernel.arrays import NOBODY, Arrays
from shadowprice.execution.kernel.compiling import apart, inlined


@inlined
def may_begin(a: Arrays, tenant: int, gpus: int) -> bool:
    """True if a tenant may begin a run on so many GPUs; NOBODY is one without a quota."""
    return tenant == NOBODY or a.tenants[tenant].held + gpus <= a.tenants[tenant].quota


@inlined
def may_go_on(a: Arrays, tenant: int, gpus: int) -> bool:
    """True if a run that was stopped in this decision may go on after all, as far as its tenant goes."""
    if tenant == NOBODY or a.tenants[tenant].began != a.run[0].decisions:
        return True
    return may_begin(a, tenant, gpus)


@inlined
def count_begun(a: Arrays, tenant: int, gpus: int) -> None:
    """Count the GPUs of a run that begins."""
    if tenant != NOBODY:
        a.tenants[tenant].held += gpus
        a.tenants[tenant].began = a.run[0].decisions


@inlined
def count_ended(a: Arrays, tenant: int, gpus: int) -> None:
    """Count the GPUs of a run no more."""
    if tenant != NOBODY:
        a.tenants[tenant].held -= gpus


@inlined
def next_period_s(a: Arrays) -> float:
    """Time at which quotas change next [s], infinity for never."""
    following = (a.run[0].period + 1) * len(a.tenants)
    return a.quotas[following].start_s if following < len(a.quotas) else np.inf


@apart
def change_quotas(a: Arrays) -> None:
    """Let the quotas of now hold."""
    run = a.run[0]
    if next_period_s(a) > run.now_s:
        return
    while next_period_s(a) <= run.now_s:
        run.period += 1
    tenants = len(a.tenants)
    for tenant in range(tenants):
        a.tenants[tenant].quota = a.quotas[run.period * tenants + tenant].gpus
