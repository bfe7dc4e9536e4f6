"""State of a service at one moment, as its page, its users and its metrics see it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from shadowprice.analysis.real_runs.run import OVER, RunReader
from shadowprice.analysis.real_runs.status import event_words, status_record
from shadowprice.execution.real.event_log import OF_POLICY
from shadowprice.execution.real.ledger import RunLedger
from shadowprice.execution.real.state_directory import LEDGER

_EVENTS = 12
LAST_OVER = 200
"""Jobs that are over of which a snapshot tells, the latest."""


class ServiceReader:
    """Reader of a service's ledger; of one thread.

    Attributes
    ----------
    kinds : Counter
        Events so far, by kind.
    """

    def __init__(self, state: Path) -> None:
        self._run = RunReader(state)
        self._ledger = RunLedger.open(state / LEDGER, readonly=True)
        self.kinds = Counter(str(event["kind"]) for event in self._ledger.events())

    def close(self) -> None:
        """Close the ledger."""
        self._run.close()
        self._ledger.close()

    def snapshot(self) -> dict[str, Any]:
        """Jobs, nodes, prices and last events, for JSON; O(jobs + leases)."""
        self.kinds.update(str(event["kind"]) for event in self._run.refresh())
        record = status_record(self._run, events=0)
        owners = self._ledger.owners()
        jobs = [job | {"user": owners.get(job["name"], "")} for job in record["jobs"]]
        over = [job for job in jobs if job["state"] in OVER]
        kept = {job["name"] for job in over[-LAST_OVER:]}
        last = list(self._run.last_events)[-_EVENTS:]
        return record | {
            "jobs": [job for job in jobs if job["state"] not in OVER or job["name"] in kept],
            "left_out": len(over) - len(kept),
            "prices": self._ledger.value("prices"),
            "events": [
                {
                    "time_s": event["time_s"],
                    "user": owners.get(event["job"], ""),
                    "words": event_words(self._run, event),
                }
                for event in reversed(last)
            ],
        }

    def counts(self) -> dict[tuple[str, str], int]:
        """All jobs by state and user."""
        owners = self._ledger.owners()
        found: Counter[tuple[str, str]] = Counter()
        for row in self._run.jobs:
            found[str(row["state"]), owners.get(str(row["name"]), "")] += 1
        return dict(found)

    def completion_s(self) -> list[float]:
        """Job completion times of all jobs that finished [s]."""
        return [
            float(row["finish_s"]) - float(row["arrival_s"])
            for row in self._run.jobs
            if row["state"] == "finished" and row["finish_s"] is not None
        ]

    def totals(self) -> tuple[int, int]:
        """Leases so far, and steps that were lost."""
        holds = self._run.timeline.holds.values()
        return len(holds), sum(hold.lost_steps for hold in holds)


def for_user(snapshot: dict[str, Any], user: str) -> dict[str, Any]:
    """A snapshot as one of several users may see it.

    Of others' jobs it has no reasons but those of the policy, and no events: these may have last
    lines of what the jobs wrote.
    """
    jobs = []
    for job in snapshot["jobs"]:
        told = job["user"] == user or job["why"].startswith(OF_POLICY)
        if not told:
            job = job | {"why": ""}
            job["because"] = why(job)
        jobs.append(job)
    events = [event for event in snapshot["events"] if event["user"] in ("", user)]
    return snapshot | {"jobs": jobs, "events": events}


def why(job: dict[str, Any]) -> str:
    """Reason that a job does not run, or what it holds, in words.

    >>> why({"state": "running", "devices": ["n1:0", "n1:1"], "why": ""})
    'runs on n1:0 n1:1'
    """
    state, devices = str(job["state"]), job["devices"]
    if state == "running" and devices:
        return f"runs on {' '.join(devices)}"
    if state == "expected":
        return "was submitted; the next decision sees it"
    reason = f": {job['why']}" if job["why"] else ""
    return f"is {state}{reason}"
