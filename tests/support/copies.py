"""Runs of HadarE on instances that have no rules of copies yet."""

from __future__ import annotations

from dataclasses import replace

from shadowprice.execution.copies.hadare import HadarE
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule


def in_copies(instance: Instance, policy: HadarE | None = None) -> tuple[Instance, Schedule]:
    """The instance under the rules of the policy, and what this does on it; nobody verified it."""
    policy = policy or HadarE()
    instance = replace(instance, copies=policy.rules(instance.cluster))
    return instance, policy.schedule(instance)
