"""Rules by which the verifier checks declared terms, and the runs that they see."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from shadowprice.instances.cluster import Cluster
    from shadowprice.instances.workload import Workload


class SeenRun(NamedTuple):
    """A run in a schedule, as a rule sees it.

    ``job`` is a row of ``jobs``, ``pieces`` are pairs of a node's position in ``cluster`` and the GPUs held there;
    ``shared`` says that another job holds the same GPUs, ``goes_on`` that the run is no beginning.
    """

    job: int
    pieces: tuple[tuple[int, int], ...]
    shared: bool
    start_s: float
    end_s: float
    goes_on: bool
    jobs: Workload
    cluster: Cluster

    @property
    def gpus(self) -> int:
        """GPUs that it holds, with a partner or alone."""
        return sum(gpus for _, gpus in self.pieces)


class TermRule(NamedTuple):
    """Rule of a declared term, all that the verifier has to know of it.

    ``faults`` gives, of all runs in order of job and start, the positions of those that break the term and what is
    wrong with each; ``speed`` that of a run, above 0 and at most 1, 1 where it is left out. Both are given the term.
    """

    faults: Callable[[Any, Sequence[SeenRun]], Iterable[tuple[int, str]]]
    speed: Callable[[Any, SeenRun], float] | None = None
