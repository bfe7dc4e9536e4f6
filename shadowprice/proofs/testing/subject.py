"""A policy under test, with what its author declares about it."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from typing import NoReturn

from shadowprice.errors import InputError
from shadowprice.execution.engine import Rounds, run
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule
from shadowprice.instances.terms.charges import Overheads
from shadowprice.solvers.knowledge import OF_RUN_TIMES
from shadowprice.solvers.policy import Knowledge, Policy
from shadowprice.solvers.policy_checks import expect_policy
from shadowprice.solvers.registry import placement


class Scaling(Enum):
    """Effect on a schedule of scaling all times of its instance, and of its policy."""

    EXACT = "exact"
    """It is scaled: to the last tick by powers of two, up to the time grid by other factors."""

    ROUNDED = "rounded"
    """It is scaled up to the time grid, because the policy rounds times of its own."""

    NONE = "none"
    """Nothing is promised, because a tick may decide who goes first, or rounds begin at fixed times."""


@dataclass(frozen=True)
class PolicyUnderTest:
    """A policy and its declarations; see :func:`shadowprice.proofs.testing.laws`.

    Of one whose code a process of its own can look up ``written`` is its name; of an object it is empty.

    Raises
    ------
    InputError
        If the policy is no policy, or has no such times.
    """

    policy: Policy
    waits: bool = False
    times: tuple[str, ...] = ()
    scaling: Scaling = Scaling.EXACT
    commits: bool = False
    written: str = ""

    def __post_init__(self) -> None:
        expect_policy(self.policy, "laws")
        self._check_times()

    def _check_times(self) -> None:
        own: set[str] = set()
        if is_dataclass(self.policy):
            own = {each.name for each in fields(self.policy)}
        for name in self.times:
            if name not in own:
                raise InputError(
                    f"laws: {self.policy.name}: times has {name!r}, expected a field of its "
                    f"dataclass: one of {', '.join(sorted(own)) or 'none, it is no dataclass'}"
                )

    @property
    def knows_no_run_times(self) -> bool:
        """True if it is told nothing of how long jobs run, beyond the past."""
        return not self.policy.knows & OF_RUN_TIMES

    @property
    def knows_distribution(self) -> bool:
        """True if it is told of jobs that have not arrived."""
        return Knowledge.DISTRIBUTION in self.policy.knows

    def scaled(self, factor: float) -> Policy:
        """The same policy with its own times scaled."""
        if not self.times or not is_dataclass(self.policy):
            return self.policy
        values = {name: getattr(self.policy, name) for name in self.times}
        changed: Policy = replace(
            self.policy,
            **{
                name: tuple(each * factor for each in value)
                if isinstance(value, tuple)
                else value * factor
                for name, value in values.items()
            },
        )
        return changed


# Test case of a law, and the report of a broken one.


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
        if self.instance.sharing_rates is not None:
            shown.append(f"pairs {dict(self.instance.sharing_rates.pairs)}")
        speeds = (self.instance.sensitivity, self.instance.locality, self.instance.elasticity)
        shown += [str(each) for each in speeds if each is not None]
        failures = self.instance.failures
        if failures is not None:
            faults = zip(
                failures.node.tolist(),
                failures.down_s.tolist(),
                failures.up_s.tolist(),
                strict=True,
            )
            shown.append(f"faults {list(faults)}, {failures.checkpoints}")
        usual = {"placement": "count", "round_s": 0.0, "factor": 1.0, "order": ()}
        for name, value in usual.items():
            if getattr(self, name) != value:
                shown.append(f"{name} {getattr(self, name)}")
        return f"Case({'; '.join(shown)})"


def broken(policy: Policy, law: str, seen: str, case: Case, hint: str = "") -> NoReturn:
    """Report that a law is broken.

    Raises
    ------
    LawBroken
        Always.
    """
    __tracebackhide__ = True  # pytest ends its traceback at the law instead
    message = f"{policy.name}: {law}, but {seen}\non {case!r}"
    raise LawBroken(f"{message}\n{hint}" if hint else message)
