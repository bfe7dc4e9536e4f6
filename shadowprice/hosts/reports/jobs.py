"""A table of the jobs of a real run: where each stands, what it waited for, what it measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shadowprice.hosts.reports.run import RunReader
from shadowprice.hosts.reports.timeline import Hold, waiting_spans


@dataclass(frozen=True)
class JobRow:
    """One job.

    Parameters
    ----------
    devices : tuple of str
        ``NODE:INDEX`` of what it holds now.
    shares_with : tuple of str
        Jobs on the same devices now.
    jct_s, waited_s : float or None
        From arrival to end, and the part of it without devices [s]; of a job that is not over,
        until now.
    leases : int
        Grants so far; moves and restarts are one less.
    measured, predicted : float or None
        Iterations per second.
    """

    name: str
    state: str
    step: int
    iterations: int
    gpus: int
    devices: tuple[str, ...]
    shares_with: tuple[str, ...]
    tries: int
    leases: int
    arrival_s: float
    first_start_s: float | None
    finish_s: float | None
    jct_s: float | None
    waited_s: float
    lost_steps: int
    measured: float | None
    predicted: float | None
    why: str

    @property
    def done(self) -> float:
        """Part of its iterations that is done, 0 to 1."""
        return min(self.step / self.iterations, 1.0) if self.iterations else 0.0

    @property
    def because(self) -> str:
        """Devices that it holds, or the reason why it waits or ended; empty if nothing is known."""
        if self.devices:
            return " ".join(self.devices)
        return self.why or ("the next decision sees it" if self.state == "expected" else "")


def job_rows(run: RunReader) -> list[JobRow]:
    """All jobs, in the order of the workload; O(jobs + leases)."""
    now_s = run.now_s
    waits = waiting_spans(run.timeline, now_s)
    leases: dict[str, int] = {}
    lost: dict[str, int] = {}
    in_vain: dict[str, int] = {}
    for hold in run.timeline.holds.values():
        if hold.step is not None:
            in_vain[hold.job] = in_vain.get(hold.job, 0) + 1 if _in_vain(hold) else 0
        leases[hold.job] = leases.get(hold.job, 0) + 1
        lost[hold.job] = lost.get(hold.job, 0) + hold.lost_steps
    current = {hold.job: hold for hold in run.timeline.current() if hold.failed_s is None}
    holders = run.timeline.holders()
    rows = []
    for job in run.jobs:
        name = str(job["name"])
        held = current.get(name)
        over_s = run.timeline.over_s.get(name)
        # Of the job, as in replays; the driver notes it when it next looks.
        arrival_s = float(job["arrival_s"])
        unseen_s = max(run.timeline.arrived_s.get(name, arrival_s) - arrival_s, 0.0)
        end_s = job["finish_s"] if job["finish_s"] is not None else over_s
        rows.append(
            JobRow(
                name,
                str(job["state"]),
                int(job["step"]),
                int(job["iterations"]),
                int(job["gpus"]),
                () if held is None else tuple(map(run.device_label, held.held)),
                () if held is None else _sharers(held, holders),
                int(job["tries"]),
                leases.get(name, 0),
                arrival_s,
                job["first_start_s"],
                job["finish_s"],
                None if end_s is None else float(end_s) - arrival_s,
                unseen_s + sum(end - start for start, end in waits.get(name, [])),
                lost.get(name, 0),
                job["measured_rate"],
                job["predicted_rate"],
                _why(str(job["state"]), str(job["why"]), in_vain.get(name, 0)),
            )
        )
    return rows


IN_VAIN = 2
"""Leases in a row without a step that is kept, after which the reason says so."""


def _in_vain(hold: Hold) -> bool:
    """True if a lease was stopped for others and nothing of what it did was kept."""
    assert hold.step is not None
    return hold.reason == "stopped" and hold.step - hold.lost_steps <= hold.from_step


def _why(state: str, why: str, in_vain: int) -> str:
    """The reason why a job waits, with what a longer round would mend."""
    if state != "waiting" or in_vain < IN_VAIN:
        return why
    return f"{why}; stopped {in_vain} times before a step was kept, expected a longer --round"


def _sharers(hold: Hold, holders: Mapping[str, Sequence[Hold]]) -> tuple[str, ...]:
    """Jobs that hold a device of this lease too."""
    found = {other.job for uuid in hold.held for other in holders[uuid]}
    return tuple(sorted(found - {hold.job}))


def counts(rows: list[JobRow]) -> dict[str, int]:
    """Jobs by state, in the order of a job's life."""
    found = {state: sum(row.state == state for row in rows) for state in _STATES}
    return {state: number for state, number in found.items() if number}


_STATES = ("expected", "waiting", "backing-off", "running", "finished", "failed", "cancelled")
