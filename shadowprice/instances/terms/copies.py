"""Rules under which jobs run as several copies at once, a copy on each of several whole nodes.

HadarE (arXiv 2503.10918, recalled, where it is called forking; made precise by us) trains a job as copies
whose models are averaged between rounds. An instance with such rules is run by copies and by
nothing else: rows of its schedules say which copy did how many steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.cluster import MAX_NODES
from shadowprice.instances.entries import shown
from shadowprice.instances.features import Feature
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.terms.term import SeenInstance, Term

if TYPE_CHECKING:
    from shadowprice.instances.workload import Workload

_LONGEST_S = 2.0**31


@dataclass(frozen=True)
class CopyRules:
    """Rounds, charges and number of copies.

    All copies of a round begin with it, hold their nodes whole, and end within it. A round begins at
    least ``round_s`` after the one before.

    Parameters
    ----------
    round_s : float
        Length of a round [s].
    restart_s, aggregation_s : float
        Charge when a node changes jobs; charge for averaging the models of a job that has several
        copies in a round [s]. Together they are shorter than a round.
    max_copies : int
        k, the largest number of copies of a job in a round.

    Raises
    ------
    InputError
        If a time is negative or off the grid, the charges fill the round, or ``max_copies`` is below 1.
    """

    round_s: float
    restart_s: float
    aggregation_s: float
    max_copies: int

    def __post_init__(self) -> None:
        for name in ("round_s", "restart_s", "aggregation_s"):
            value = getattr(self, name)
            if not 0 <= value < _LONGEST_S or value * TICKS_PER_S != int(value * TICKS_PER_S):
                raise InputError(
                    f"copies: {name} is {value!r}, expected seconds >= 0, a multiple of 2**-20"
                )
        if not self.charges_s < self.round_s:
            raise InputError(
                f"copies: round_s is {self.round_s!r}, expected more than restart_s + aggregation_s, "
                f"{self.charges_s!r}"
            )
        if not 1 <= self.max_copies <= MAX_NODES:
            raise InputError(
                f"copies: max_copies is {shown(self.max_copies)}, expected 1 to {MAX_NODES}"
            )

    @property
    def charges_s(self) -> float:
        """Most that a copy can owe in a round [s]."""
        return self.restart_s + self.aggregation_s


def total_steps(workload: Workload) -> NDArray[np.int64]:
    """Whole steps of every job, shape (n,).

    A step is an iteration; without throughputs it is a tick (2**-20 s) of the gang's run time.

    Raises
    ------
    InputError
        If a job's iterations are not whole: steps are what copies share.
    """
    work = workload.work if workload.throughput is not None else workload.work * TICKS_PER_S
    steps: NDArray[np.int64] = work.astype(np.int64)
    bad = np.flatnonzero(steps != work)
    if len(bad):
        job = int(bad[0])
        raise InputError(
            f"{workload.source}: job {workload.id[job]!r}: work is {float(workload.work[job])!r}, expected "
            "a whole number of iterations, which its copies can share"
        )
    return steps


class CopiesTerm(Term[CopyRules]):
    """Rules of copies; schedulers with a loop of their own run them, the engine does not."""

    feature: ClassVar[Feature] = Feature.COPIES
    entry: ClassVar[str] = "copies"
    record: ClassVar[Any] = CopyRules
    origin: ClassVar[str] = "--policy hadare"

    def check(self, value: CopyRules, instance: SeenInstance) -> None:
        """Refuse steps that are not whole, and checkpoints."""
        total_steps(instance.workload)
        if instance.failures is not None:
            who = f"{instance.workload.source}: jobs run as copies"
            instance.failures.checkpoints.expect_none(who, "what was averaged is saved")
