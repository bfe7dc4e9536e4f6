"""Schedulers that the engine does not run: they have a loop of their own.

Each requires the features of an instance that its loop knows, by a ``KNOWS`` of its own as the engine has one, and
refuses the rest. HadarE keeps such a loop: its jobs are in several runs at a time, which the engine, its ledger and
its charges rule out, and its steps are whole numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import shadowprice.execution
from shadowprice.brief import Brief
from shadowprice.instances.offers import Offers
from shadowprice.solvers.policy import Knowledge

if TYPE_CHECKING:
    from shadowprice.instances.cluster import Cluster
    from shadowprice.instances.features import Feature
    from shadowprice.instances.instance import Instance
    from shadowprice.instances.schedule import Schedule
    from shadowprice.instances.terms.copies import CopyRules


@dataclass(frozen=True, repr=False)
class Simulator(Brief):
    """A scheduler with its own rounds, placement and charges.

    Parameters
    ----------
    schedule : callable
        From an instance to what is done there, unverified.
    takes : frozenset of str
        Options of a run that it follows; those that it leaves aside are in ``ignores``.
    ignores : frozenset of str
        Data that most policies make no use of, and this one neither.
    refusal : callable
        Message about any other option, from its name and value.
    settings : mapping
        What its outcome says of the run beside the jobs that were dropped.
    copies : callable, optional
        From a cluster to the rules under which jobs run as several copies there; not given where each
        job runs as one gang.
    reads : frozenset of Feature
        Features of instances that it knows; an instance with another is refused.
    """

    schedule: Callable[[Instance], Schedule]
    takes: frozenset[str]
    refusal: Callable[[str, object], str]
    settings: Mapping[str, object]
    ignores: frozenset[str] = frozenset()
    copies: Callable[[Cluster], CopyRules] | None = None
    reads: frozenset[Feature] = frozenset()


@runtime_checkable
class HasSimulator(Protocol):
    """A scheduler with a loop of its own, known by name as policies are."""

    @property
    def name(self) -> str:
        """Name on the command line."""

    @property
    def knows(self) -> frozenset[Knowledge]:
        """Knowledge of the scheduler beyond the past."""

    @property
    def preemptive(self) -> bool:
        """True if it ever stops a running job."""

    def simulator(self, values: Mapping[str, Any]) -> Simulator:
        """The loop under values of options of a run, by name; it refuses what it does not take."""


def schedulers() -> Mapping[str, HasSimulator]:
    """Schedulers with a loop of their own by name: the ``SCHEDULERS`` of the files of execution."""
    return Offers(shadowprice.execution, "SCHEDULERS")
