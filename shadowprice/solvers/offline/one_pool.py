"""Instances of which the exact models of schedules speak: gangs that run alone, on one pool of GPUs of one speed."""

from __future__ import annotations

from dataclasses import replace

from shadowprice.errors import InputError
from shadowprice.instances.features import Feature, missing, require
from shadowprice.instances.instance import Instance
from shadowprice.instances.sharing_gain import SharingGain

KNOWS = frozenset(
    {
        Feature.RATES,
        Feature.TYPES,  # where every job is as fast on all of them
        Feature.CHARGES,  # of starts, one a job; who is not preempted pays no others
        Feature.SHARING,  # where no two of the jobs may
        Feature.RESTART,  # nobody is preempted
    }
)


def alone_at_one_speed(instance: Instance) -> bool:
    """True if each job takes equal time wherever it runs, and no two may share GPUs."""
    return instance.equal_speeds and SharingGain.of(instance) is None


def describes(instance: Instance) -> bool:
    """True if the exact models here describe an instance.

    They know one pool of GPUs of equal speed, rigid gangs that run alone and at one speed, and one
    start charge a job.
    """
    return not missing(instance, KNOWS) and alone_at_one_speed(instance)


def describes_unfailing(instance: Instance) -> bool:
    """True if the exact models here describe an instance whose nodes never fail: faults only restrict schedules."""
    return describes(replace(instance, failures=None))


def require_exact(instance: Instance) -> None:
    """Refuse an instance that the exact models do not describe.

    Raises
    ------
    InputError
        Naming what they do not describe.
    """
    require(instance, KNOWS, "the exact optimum, of jobs that run alone on GPUs of equal speed")
    if not alone_at_one_speed(instance):
        what = (
            "jobs that can share their GPUs"
            if instance.equal_speeds
            else "GPUs that differ in speed"
        )
        raise InputError(
            f"{instance.workload.source}: has {what}; the exact optimum is for jobs that run alone "
            "on GPUs of equal speed"
        )
