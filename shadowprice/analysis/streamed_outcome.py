"""Outcomes of runs whose schedules stay on disk: verified in segments, totals of jobs in memory."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from shadowprice.analysis.job_totals import JobTotals, TotalsOfSegments
from shadowprice.analysis.outcome import VerifiedRun
from shadowprice.instances.instance import Instance
from shadowprice.proofs.verification.segments import ScheduleSegments, verify_segments

if TYPE_CHECKING:
    from shadowprice.execution.watch import Watch


class StreamedOutcome(VerifiedRun):
    """Outcome of a run whose schedule was read in segments, as :class:`.Outcome` is of one in memory.

    It has metrics and the table of jobs, and no schedule. Making one verifies the schedule first.

    Parameters
    ----------
    instance : Instance
        What was given; one that is verifiable in segments.
    segments : ScheduleSegments
        What was done.
    policy, settings, decisions, cpu_s
        As of :class:`.Outcome`.
    watch : Watch, optional
        Told how many rows have been read.

    Raises
    ------
    VerificationError
        If the schedule breaks a rule; the message names the rule and the first violated row found.
    """

    def __init__(
        self,
        instance: Instance,
        segments: ScheduleSegments,
        policy: str,
        settings: Mapping[str, object],
        decisions: int = 0,
        cpu_s: float = 0.0,
        watch: Watch | None = None,
    ) -> None:
        self.instance, self.policy, self.settings = instance, policy, dict(settings)
        self.segments = segments
        self.decisions, self.cpu_s = decisions, cpu_s
        began = time.process_time()
        if watch is not None:
            watch.begins("verifying")
        totals = TotalsOfSegments(instance)
        if watch is None:
            self.complete = verify_segments(instance, segments, totals.add)
        else:
            self.complete = verify_segments(instance, segments, totals.add, watch.reaches)
        self._totals = totals.whole()
        self.verify_cpu_s = time.process_time() - began

    @property
    def totals(self) -> JobTotals:
        """Totals of every job."""
        return self._totals
