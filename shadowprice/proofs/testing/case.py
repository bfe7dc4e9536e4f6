"""Test case of a law, and the report of a broken one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from shadowprice.execution.engine import Rounds, run
from shadowprice.instances.instance import Instance, Overheads
from shadowprice.instances.schedule import Schedule
from shadowprice.solvers.policy import Policy
from shadowprice.solvers.registry import placement


class LawBroken(AssertionError):
    """A law of the battery does not hold; the message has the instance on which it fails."""


@dataclass(frozen=True, eq=False, repr=False)
class Case:
    """An instance, and how a policy is run on it.

    Parameters
    ----------
    instance : Instance
        What is given.
    placement : str
        By name.
    round_s : float
        Length of the engine's rounds [s]; 0 for a decision at every event.
    factor : float
        By which all times are scaled, in the law of scaling.
    order : tuple of int
        In which the rows are given, in the law of the order of rows.
    """

    instance: Instance
    placement: str = "count"
    round_s: float = 0.0
    factor: float = 1.0
    order: tuple[int, ...] = ()

    def run(self, policy: Policy, instance: Instance | None = None) -> Schedule:
        """The schedule that a policy makes of this, or of another instance in the same way."""
        where, rounds = placement(self.placement), Rounds(self.round_s)
        return run(instance or self.instance, policy, placement=where, rounds=rounds).schedule

    def __repr__(self) -> str:
        """Everything that is not as usual, in a form to copy a test from."""
        jobs = self.instance.workload
        columns = [
            f"arrival_s={jobs.arrival_s.tolist()}",
            f"gpus={jobs.gpus.tolist()}",
            f"work={jobs.work.tolist()}",
        ]
        if jobs.throughput is not None:
            columns.append(f"throughput={jobs.throughput.tolist()}")
        shown = [f"cluster {self.instance.cluster}", f"jobs {', '.join(columns)}"]
        if self.instance.overheads != Overheads():
            shown.append(str(self.instance.overheads))
        if self.instance.together is not None:
            shown.append(f"pairs {dict(self.instance.together.together)}")
        if self.instance.conditions is not None:
            shown.append(str(self.instance.conditions))
        usual = {"placement": "count", "round_s": 0.0, "factor": 1.0, "order": ()}
        for name, value in usual.items():
            if getattr(self, name) != value:
                shown.append(f"{name} {getattr(self, name)}")
        return f"Case({'; '.join(shown)})"


def broken(policy: Policy, law: str, found: str, case: Case, hint: str = "") -> NoReturn:
    """Report that a law is broken.

    Raises
    ------
    LawBroken
        Always.
    """
    __tracebackhide__ = True  # pytest ends its traceback at the law instead
    message = f"{policy.name}: {law}, but {found}\non {case!r}"
    raise LawBroken(f"{message}\n{hint}" if hint else message)
