"""View of jobs with goodput for policies: how far they are, what they report, and what they would do elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from shadowprice.errors import PolicyError
from shadowprice.instances.goodput.application import Application, Batching
from shadowprice.instances.goodput.course import UNIT, Course, Position
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.terms.goodput import BatchField, Goodput
from shadowprice.solvers.knowledge import Knowledge

if TYPE_CHECKING:
    from shadowprice.instances.cluster import Cluster
    from shadowprice.solvers.job_table import JobTable
    from shadowprice.solvers.placement.protocol import Pieces

_MODEL = 2
"""Position of ``model`` among the texts of a job."""


class Report(NamedTuple):
    """Measurements of a running job: its steps [s] and the noise of its gradients, at its batch and epoch."""

    placement: tuple[int, ...]
    batching: Batching
    step_s: float
    sync_s: float
    grad_sqr: float
    grad_var: float


class PresentState(Protocol):
    """State of which jobs with goodput are a part, as far as they read it."""

    now_s: float

    @property
    def total_gpus(self) -> int:
        """GPUs of the cluster."""

    def require(self, knowledge: Knowledge) -> None:
        """Refuse a policy that has not declared this knowledge."""

    def require_arrived(self, *jobs: int) -> None:
        """Refuse jobs that have not arrived."""


@dataclass
class _Run:
    """A run as it goes on: pieces, field, course, when it makes progress from, and its steps as timed [s]."""

    pieces: Pieces
    field: BatchField
    course: Course | None
    from_s: float
    timed_s: float | None = None


class GoodputJobs:
    """Jobs with goodput that have arrived: ``state.goodput``, None where jobs have none.

    Placements are GPUs by node, in the order in which the nodes of a run are: ``(4, 2)``.
    """

    def __init__(
        self, term: Goodput, jobs: JobTable, cluster: Cluster, state: PresentState
    ) -> None:
        self._term, self._jobs, self._state = term, jobs, state
        self._largest = int(cluster.gpus_per_node.max())
        self._position: dict[int, Position] = {}
        self._runs: dict[int, _Run] = {}

    # What everyone sees.

    def application(self, job: int) -> Application:
        """Application of a job: its batches, epochs, and limits.

        Its tables of step times and of noise are for policies that declare ``speed-up``; what a job reports by
        itself is in :meth:`report`.
        """
        self._state.require_arrived(job)
        return self._term.by_name[self._jobs.texts[job][_MODEL]]

    def batch_size(self, job: int) -> int:
        """Batch that a job keeps; 0 if it may have any."""
        self._state.require_arrived(job)
        return int(self._jobs.counts("batch_size")[job])

    def widest(self, job: int) -> int:
        """Most GPUs that a job may hold, of those of the cluster."""
        gpus = self._state.total_gpus
        return min(self.application(job).widest(self.batch_size(job)), gpus)

    @property
    def node_gpus(self) -> int:
        """GPUs of the largest node, by which a policy can think of placements before it has one."""
        return self._largest

    def epoch(self, job: int) -> int:
        """Epochs that are over, which is the number of the present one, counted from 0."""
        return self._at(job).epoch

    def progress(self, job: int) -> float:
        """Progress so far, in steps at the smallest batch; O(epochs that ended since its run began)."""
        at, ends = self._at(job), self.application(job).ends
        before = ends[at.epoch - 1] if at.epoch else 0.0
        return float(before + at.done / UNIT)

    def batching(self, job: int, width: int) -> Batching:
        """Batch of a job on so many GPUs where no policy says otherwise: its own, or the smallest."""
        return self.application(job).batching(self.batch_size(job), width)

    def present(self, job: int) -> Batching | None:
        """Batch of a running job as it is made up; None if it waits."""
        run = self._runs.get(job)
        return None if run is None else run.field.batching

    def report(self, job: int) -> Report | None:
        """Measurements of a running job at present; None if it waits."""
        run, application = self._runs.get(job), self.application(job)
        if run is None:
            return None
        placement = tuple(gpus for _, gpus in run.pieces)
        step = application.step_s(placement, run.field.batching.local)
        epoch = min(self.epoch(job), len(application.ends) - 1)
        noise = application.noise(run.field.batching.total(sum(placement)), epoch)
        assert step is not None, "a job runs where it was not measured"
        assert noise is not None, "a job runs at a batch that was not measured"
        step_s, sync_s = step
        if run.timed_s is not None:
            factor = run.timed_s / run.field.batching.whole_step_s(step_s, sync_s)
            step_s, sync_s = step_s * factor, sync_s * factor
        return Report(placement, run.field.batching, step_s, sync_s, *noise)

    # What is for those that declare it.

    def rate(self, job: int, placement: Iterable[int], batching: Batching | None = None) -> float:
        """Goodput of a job on a placement in its present epoch, progress a second; 0 where it cannot run.

        Needs ``speed-up``. Interference by others is not in it.

        Parameters
        ----------
        placement : iterable of int
            GPUs on each of its nodes.
        batching : Batching, optional
            Local batch and accumulations; as :meth:`batching` has them if not given.

        Raises
        ------
        PolicyError
            If the policy does not declare ``speed-up``, or the job has not arrived.
        """
        self._state.require(Knowledge.SPEED_UP)
        ring, application = tuple(placement), self.application(job)
        width = sum(ring)
        if not 1 <= width <= application.widest(self.batch_size(job)):
            return 0.0
        epoch = min(self.epoch(job), len(application.ends) - 1)
        return application.rate(ring, batching or self.batching(job, width), epoch)

    def step_s(self, job: int, placement: Iterable[int], batching: Batching) -> float | None:
        """Time of a step with its accumulations on a placement [s]; None where it cannot run. Needs ``speed-up``."""
        self._state.require(Knowledge.SPEED_UP)
        known = self.application(job).step_s(placement, batching.local)
        if known is None:
            return None
        return batching.whole_step_s(*known)

    def iterations_left(self, job: int) -> float:
        """Steps at its batch from the end of the present epoch to that of the last one; needs ``duration``.

        Raises
        ------
        PolicyError
            If the policy does not declare ``duration``, the job has not arrived, or may have any batch.
        """
        self._state.require(Knowledge.DURATION)
        application, batch = self.application(job), self.batch_size(job)
        if not batch:
            raise PolicyError(f"job {job} may have any batch, of which steps left are asked")
        last = len(application.ends) - 1
        if self.epoch(job) >= last:
            return 0.0
        return application.iterations(batch, last) - application.iterations(batch, self.epoch(job))

    # The engine's side.

    def begun(self, job: int) -> tuple[Position, _Run | None]:
        """Engine: where a job was when its present run began, and that run; None if it waits."""
        return self._position.get(job, Position()), self._runs.get(job)

    def started(self, job: int, pieces: Pieces, from_s: float, field: BatchField) -> None:
        """Engine: a job runs, and makes progress from then on."""
        placement = tuple(gpus for _, gpus in pieces)
        course = self._term.run(self.application(job), placement, field)
        self._runs[job] = _Run(pieces, field, course, from_s)

    def ran(self, job: int, ran_s: float) -> None:
        """Engine: a job made progress for so long since it started, or was told of it."""
        run = self._runs[job]
        assert run.course is not None, "a job runs where it makes no progress"
        before = self._position.get(job, Position())
        self._position[job] = run.course.after(before, int(ran_s * TICKS_PER_S))

    def stopped(self, job: int, ran_s: float) -> None:
        """Engine: a job was preempted."""
        self.ran(job, ran_s)
        del self._runs[job]

    def continued(self, job: int, ran_s: float, from_s: float, field: BatchField | None) -> None:
        """Engine: a job goes on with another field, or the same if None."""
        self.ran(job, ran_s)
        run = self._runs[job]
        self.started(job, run.pieces, from_s, field or run.field)

    def reached(self, job: int, position: Position) -> None:
        """Engine: a job is there now, as it says itself, wherever it was expected."""
        self._position[job] = position
        if job in self._runs:
            self._runs[job].from_s = self._state.now_s

    def timed(self, job: int, step_s: float) -> None:
        """Engine: a step of a running job takes so long, with its accumulations, wherever the tables have it [s]."""
        self._runs[job].timed_s = step_s

    def forget(self, job: int) -> None:
        """Engine: a job has finished."""
        self._runs.pop(job, None)
        self._position.pop(job, None)

    def _at(self, job: int) -> Position:
        self._state.require_arrived(job)
        before, run = self._position.get(job, Position()), self._runs.get(job)
        if run is None or run.course is None:
            return before
        elapsed_s = max(self._state.now_s - run.from_s, 0.0)
        return run.course.after(before, int(elapsed_s * TICKS_PER_S))
