"""Baselines of A-SRPT: ``spjf``, ``spwf``, ``wcs-duration``, ``wcs-workload``, ``wcs-subtime``.

Source: the names are those of the evaluation in Luo, Liu, Lee, Shroff (arXiv 2501.05563); their
definitions are derived from the names and unverified. SPJF and SPWF start waiting jobs in order of
predicted run time, or of that times GPUs, and the first that does not fit blocks; the
work-conserving WCS rules start every job that fits, in order of predicted run time, predicted work
or submission. Each runs with any placement of job graphs, so that the effects of order and of
placement can be told apart. The predicted run time is at alpha_min.

Guarantee: none. None preempts; WCS may starve wide gangs. Knows: what its predictor does.
Cost per decision: O(d + log n) a start for d gang sizes, beside predictor and placement.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shadowprice.errors import InputError
from shadowprice.solvers.asrpt.predicted_jobs import GraphStarts, PredictedJobs, knowledge
from shadowprice.solvers.list_scheduling import Backlog
from shadowprice.solvers.policy import Decision, Knowledge, State

ORDERS = ("duration", "workload", "submission")
"""By predicted run time, by that times GPUs, by arrival."""


class _Waiting:
    """Notes of one run."""

    def __init__(self, state: State, predictor: str, placement: str) -> None:
        self.predicted = PredictedJobs(predictor)
        self.starts = GraphStarts(state, placement)
        self.backlog: Backlog[float] = Backlog()

    def update(self, state: State, order: str) -> None:
        """Learn, predict, and put what arrived into the queue."""
        self.predicted.update(state)
        for job in state.finished:
            # Cancelled jobs of real runs leave before they started.
            self.backlog.discard(job)
        if not state.arrived:
            return
        shortest_s, _ = self.predicted.run_s(state, state.arrived)
        for job, run_s in zip(state.arrived, shortest_s, strict=True):
            gang = state.gang[job]
            # Rows are in order of arrival, and ties go to the earlier row.
            key = {"duration": run_s, "workload": run_s * gang, "submission": 0.0}[order]
            self.backlog.push(gang, key, job)


@dataclass(frozen=True)
class PredictedOrder:
    """Start waiting jobs in a fixed order of predictions.

    Parameters
    ----------
    predictor, placement : str
        By name; see :mod:`shadowprice.solvers.predictors.predictor` and :mod:`.graph_placement`.
    order : {"duration", "workload", "submission"}
        What comes first: the shortest predicted duration, the least duration times gang, the first arrival.
    backfill : bool
        Whether jobs that fit may pass those that do not.
    """

    name: str
    predictor: str = "oracle"
    placement: str = "heavy-edge"
    order: str = "duration"
    backfill: bool = False
    preemptive: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.order not in ORDERS:
            raise InputError(
                f"{self.name}: order is {self.order!r}, expected one of {', '.join(ORDERS)}"
            )

    @property
    def knows(self) -> frozenset[Knowledge]:
        """Durations, if the predictor is told the truth."""
        return knowledge(self.predictor)

    def decide(self, state: State) -> Decision:
        """Start jobs in order; those that do not fit block, or are passed over."""
        waiting = state.notes(_Waiting, lambda: _Waiting(state, self.predictor, self.placement))
        waiting.update(state, self.order)
        decision, backlog = Decision(state), waiting.backlog
        refused: list[tuple[int, float, int]] = []
        while backlog and decision.free_gpus:
            found = backlog.pop(decision.free_gpus if self.backfill else None)
            if found is None:
                break
            if waiting.starts.start(state, decision, found[2]):
                continue
            refused.append(found)
            if not self.backfill:
                break
        for gang, key, job in refused:
            backlog.push(gang, key, job)
        return decision


POLICIES = (
    PredictedOrder("spjf", order="duration"),
    PredictedOrder("spwf", order="workload"),
    PredictedOrder("wcs-duration", order="duration", backfill=True),
    PredictedOrder("wcs-workload", order="workload", backfill=True),
    PredictedOrder("wcs-subtime", order="submission", backfill=True),
)
