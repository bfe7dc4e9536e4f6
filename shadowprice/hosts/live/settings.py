"""Settings of an execution of jobs, as a person asks for them."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from shadowprice.errors import InputError
from shadowprice.execution.simulator import schedulers
from shadowprice.hosts.live.limits import Limits
from shadowprice.instances.grid import MAX_TIME_S, to_grid
from shadowprice.solvers.policy import Policy
from shadowprice.solvers.policy_checks import expect_policy
from shadowprice.solvers.registry import name_with_parameters
from shadowprice.solvers.registry import policy as find_policy
from shadowprice.user_code import files_sha256, runs_a_file


@dataclass(frozen=True)
class Settings:
    """One execution; the same settings resume it.

    Parameters
    ----------
    jobs : Path
        Job file; see :mod:`shadowprice.hosts.live.job_file`.
    policy : str or Policy
        Name of a policy, parameters after a colon, or a policy of your own.
    hosts : str
        ``local``, ``local:4``, ``ray``, ``slurm`` and so on; see
        :mod:`shadowprice.hosts`.
    state : Path
        State directory.
    round_s : float
        Length of a round [s]; 0 for a decision at every event. Rounded to the time grid.
    placement : str
        Name of a placement.
    throughputs : Path, optional
        Table of rates that are assumed before they are measured.
    share : float, optional
        Lets any two jobs of equal gangs share their GPUs, each assumed to keep this part of its
        own rate until that is measured; beside what the table says of pairs.
    limits : Limits
        How long to wait for what.
    health_check : tuple of str
        Program and arguments that have to end with 0 on a node before a lease begins there; else
        its devices are drained. None if empty.
    """

    jobs: Path
    policy: str | Policy
    hosts: str
    state: Path
    round_s: float = 60.0
    placement: str = "count"
    throughputs: Path | None = None
    share: float | None = None
    limits: Limits = field(default_factory=Limits)
    health_check: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.round_s < MAX_TIME_S:
            raise InputError(f"round is {self.round_s!r}, expected seconds >= 0")
        if self.share is not None and not 0 < self.share <= 1:
            raise InputError(f"share is {self.share!r}, expected a number above 0, at most 1")
        object.__setattr__(self, "round_s", float(to_grid(self.round_s)))

    @property
    def policy_name(self) -> str:
        """Name of the policy, with its parameters."""
        return name_with_parameters(self.policy)

    def acting_policy(self) -> Policy:
        """The policy, looked up if it is given by its name.

        Raises
        ------
        InputError
            If the name is unknown, or it is none; or of a scheduler with a loop of its own.
        """
        name = self.policy_name.partition(":")[0]
        if name in schedulers():
            raise InputError(
                f"policy {name}: has a simulator of its own, and is simulated only (`simulate --policy {name}`); real "
                "hosts run policies that one loop asks, as hadar: `shadowprice policies` lists them"
            )
        policy = self.policy
        return find_policy(policy) if isinstance(policy, str) else expect_policy(policy)

    def _throughputs_sha256(self) -> str | None:
        if self.throughputs is None:
            return None
        try:
            return hashlib.sha256(self.throughputs.read_bytes()).hexdigest()
        except OSError as error:
            raise InputError(f"{self.throughputs}: cannot be read: {error.strerror}") from error

    @property
    def checkpoint_s(self) -> float:
        """Interval of checkpoints asked of jobs [s]: two a round, at least one a minute.

        Who has to go back to the checkpoint before the last, since that is damaged, then still loses
        no more than a round.
        """
        return min(self.round_s / 2.0 or math.inf, 60.0)

    def identity(self, jobs_sha256: str) -> Mapping[str, object]:
        """Settings that must be the same when a run is resumed.

        Raises
        ------
        InputError
            If the table of rates cannot be read, or a file that is run.
        """
        names = " ".join((self.policy_name, self.placement))
        own_code = {"code_sha256": files_sha256(names)} if runs_a_file(names) else {}
        return {
            **own_code,
            "throughputs_sha256": self._throughputs_sha256(),
            "jobs_sha256": jobs_sha256,
            "policy": self.policy_name,
            "hosts": self.hosts,
            "round_s": self.round_s,
            "placement": self.placement,
            "share": self.share,
        }
