"""Fork records: which copy of which job trained how many steps on which node in which round.

A :class:`~shadowprice.instances.schedule.Schedule` has one run of a job at a time. HadarE (arXiv
2503.10918; spec recalled, made precise by us) runs a job as several copies at once, one a node,
whose models are averaged between rounds, hence a record of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.columns import ColumnChecks
from shadowprice.instances.entries import MAX_WHOLE, is_number, known_keys, shown
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.workload import Workload

if TYPE_CHECKING:
    import pandas as pd


_SETTINGS = ("round_s", "restart_s", "aggregation_s", "max_copies")


@dataclass(frozen=True, eq=False)
class Forks:
    """Rows (round, job, copy, node, gpus, start, end, overhead, steps) and the rules they follow.

    Nothing here has been checked: :func:`shadowprice.proofs.hadar.copies_work.verify_forks` does that.

    Parameters
    ----------
    round : ndarray of int
        Number of the round, from 0; rounds in which nothing ran have no number.
    job : ndarray of int
        Row of the job in the workload.
    copy : ndarray of int
        Id of the copy: ``jobs * i + job`` with i from 1 to ``max_copies``, so that the job is
        the id modulo the number of jobs.
    node, gpus : ndarray of int
        Position of the node in the cluster, and GPUs the copy uses there. It holds the node whole.
    start_s, end_s : ndarray
        The copy holds its node in [start, end) [s].
    overhead_s : ndarray
        Part of that without progress [s]: restart and aggregation.
    steps : ndarray of int
        Steps done, in the unit of :func:`total_steps`.
    round_s, restart_s, aggregation_s : float
        Length of a round; charge when a node changes jobs; charge for averaging the models of a
        job that has several copies in a round [s].
    max_copies : int
        k, the largest number of copies of a job in a round.
    """

    round: NDArray[np.int64]
    job: NDArray[np.int64]
    copy: NDArray[np.int64]
    node: NDArray[np.int64]
    gpus: NDArray[np.int64]
    start_s: NDArray[np.float64]
    end_s: NDArray[np.float64]
    overhead_s: NDArray[np.float64]
    steps: NDArray[np.int64]
    round_s: float
    restart_s: float
    aggregation_s: float
    max_copies: int

    def __post_init__(self) -> None:
        for name in self.columns():
            values = getattr(self, name)
            if values.shape != self.job.shape:
                raise InputError(
                    f"forks: column {name!r} has {len(values)} rows, expected {len(self.job)}"
                )
            values.flags.writeable = False

    @classmethod
    def columns(cls) -> list[str]:
        """Names of the columns, in order."""
        return [field.name for field in fields(cls) if field.name not in _SETTINGS]

    @classmethod
    def from_frame(
        cls, frame: pd.DataFrame, settings: Mapping[str, float], *, source: str = "forks"
    ) -> Forks:
        """Inverse of :meth:`to_frame` and :attr:`settings`.

        Raises
        ------
        InputError
            If a column or a setting is missing or is no number.
        """
        check = ColumnChecks(source, np.arange(len(frame)))
        columns: dict[str, Any] = {}
        for name in cls.columns():
            if name not in frame:
                raise InputError(f"{source}: column {name!r} is missing")
            given = frame[name].to_numpy()
            columns[name] = (
                check.reals(name, given)
                if name.endswith("_s")
                else check.integers(name, given, -MAX_WHOLE, MAX_WHOLE)
            ).copy()
        missing = [name for name in _SETTINGS if name not in settings]
        if missing:
            raise InputError(f"{source}: setting {missing[0]!r} is missing")
        known_keys(dict(settings), source, _SETTINGS)
        for name in _SETTINGS:
            value = settings[name]
            if not is_number(value) or (name == "max_copies" and value != int(value)):
                raise InputError(f"{source}: setting {name!r} is {shown(value)}, expected a number")
        times: dict[str, Any] = {name: float(settings[name]) for name in _SETTINGS[:-1]}
        return cls(**columns, **times, max_copies=int(settings["max_copies"]))

    def to_frame(self) -> pd.DataFrame:
        """The rows as a pandas frame."""
        import pandas as pd

        return pd.DataFrame({name: getattr(self, name) for name in self.columns()})

    @property
    def settings(self) -> dict[str, float]:
        """Round length, charges and largest number of copies, by name."""
        return {name: getattr(self, name) for name in _SETTINGS}

    @cached_property
    def rounds(self) -> int:
        """Number of rounds."""
        return int(self.round.max()) + 1 if len(self) else 0

    def __len__(self) -> int:
        return len(self.job)

    def __repr__(self) -> str:
        return f"Forks({len(self)} rows, {self.rounds} rounds)"


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
