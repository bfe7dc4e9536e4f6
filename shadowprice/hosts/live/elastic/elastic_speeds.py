"""Speeds of jobs at each width by their tables, and where they are in their epochs by the steps that they report."""

from __future__ import annotations

from fractions import Fraction

from shadowprice.errors import PolicyError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.features import Feature
from shadowprice.instances.goodput.application import Application, packed
from shadowprice.instances.goodput.course import Position, lengths_of
from shadowprice.instances.instance import Instance
from shadowprice.instances.terms.declared import DeclaredRun
from shadowprice.instances.terms.effect import Pieces
from shadowprice.instances.terms.goodput import Goodput
from shadowprice.instances.workload import Workload
from shadowprice.solvers.policy import Decision


def packed_gang(gpus: int, cluster: Cluster) -> tuple[int, ...]:
    """Devices of a gang by node, on as few of the largest nodes as hold it."""
    return packed(gpus, int(cluster.gpus_per_node.max()))


def steps_per_s(known: Application, batch: int, placement: tuple[int, ...]) -> float:
    """Steps a second of an application at a batch, by its tables; 0 where that was not measured."""
    batching = known.batching(batch, sum(placement))
    step = known.step_s(placement, batching.local)
    if step is None:
        return 0.0
    whole_s = batching.whole_step_s(*step)
    return 1.0 / whole_s if whole_s > 0 else 0.0


def steps_at_ends(known: Application, batch: int) -> list[float]:
    """Steps at a batch until the end of each epoch."""
    return [known.iterations(batch, epoch) for epoch in range(len(known.ends))]


class ElasticSpeeds:
    """Speeds of the jobs of a run at each width, and what their steps are in their epochs.

    Parameters
    ----------
    term : Goodput
    cluster : Cluster
    """

    def __init__(self, term: Goodput, cluster: Cluster) -> None:
        self._term, self._cluster = term, cluster

    def speed(self, jobs: Workload, row: int, pieces: Pieces) -> float:
        """Speed of a job on these devices against that on its gang; 1 where it was not measured."""
        known, batch = self._of(jobs, row)
        rate = steps_per_s(known, batch, tuple(gpus for _, gpus in pieces))
        return rate / self.gang_rate(jobs, row) if rate else 1.0

    def gang_rate(self, jobs: Workload, row: int) -> float:
        """Steps a second of a job on its gang, on as few nodes as hold it."""
        known, batch = self._of(jobs, row)
        return steps_per_s(known, batch, packed_gang(int(jobs.gpus[row]), self._cluster))

    def position(self, jobs: Workload, row: int, steps: float) -> Position:
        """Position of a job that has done so many steps: in each epoch its progress grows evenly with them."""
        known, batch = self._of(jobs, row)
        lengths, before = lengths_of(known.ends), 0.0
        for epoch, end in enumerate(steps_at_ends(known, batch)):
            if steps < end:
                share = Fraction(max(steps - before, 0.0)) / Fraction(end - before)
                return Position(epoch, int(lengths[epoch] * share))
            before = end
        return Position(len(lengths))

    def _of(self, jobs: Workload, row: int) -> tuple[Application, int]:
        return self._term.by_name[str(jobs.model[row])], int(jobs.batch_size[row])


def expect_measured_widths(instance: Instance, decision: Decision) -> None:
    """Refuse starts on devices where a job's speed was not measured.

    Raises
    ------
    PolicyError
        Naming the job and its devices.
    """
    term = instance.course
    if term is None:
        return
    fields = decision.fields or {}
    for job, pieces in decision.starts.items():
        run = DeclaredRun(job, pieces, False, instance.workload, instance.cluster)
        if term.proceeding(run, fields[job][Feature.GOODPUT]) is None:
            raise PolicyError(
                f"job {job} is started on {pieces}, where it makes no progress; expected GPUs, and a batch, that were "
                "measured"
            )
