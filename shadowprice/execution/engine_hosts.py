"""Interface of the engine to hosts, simulated or real."""

from __future__ import annotations

from typing import Protocol

from shadowprice.instances.terms.effect import NO_FIELDS, Fields, Pieces


class Hosts(Protocol):
    """Carries out the decisions of a run and knows when runs end.

    Jobs are rows of the workload. Progress and rates are those of the job's fastest GPU type.
    """

    @property
    def next_end_s(self) -> float:
        """Time [s] of the next completion that is known, infinity if none is."""

    def finish_next(self) -> tuple[int, float, Pieces]:
        """Take the next completion: job, time [s], and the GPUs it held."""

    def end_s(self, job: int) -> float:
        """Time at which a running job ends if nothing changes [s]."""

    def start(
        self, job: int, pieces: Pieces, now_s: float, fields: Fields = NO_FIELDS
    ) -> tuple[float, float]:
        """Begin a run, of which terms are told these fields; returns when progress begins [s] and its rate."""

    def stop(self, job: int, now_s: float) -> tuple[float, float, float]:
        """Preempt a run; returns the progress made, the work left and the debt, all in seconds."""

    def continue_run(
        self, job: int, fields: Fields, at_s: float
    ) -> tuple[float, float, float, float]:
        """Continue a run with other values of some fields.

        Returns the progress made [s], the work left [s], when progress continues [s] and its rate.
        """
