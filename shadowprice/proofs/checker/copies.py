"""The schedule of jobs that run as copies, round by round."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

from .form import Record, need, whole
from .instance import GivenInstance


class CopySchedule:
    """Schedule of jobs that run as several copies, each on a whole node, round by round."""

    def __init__(self, given: GivenInstance) -> None:
        self.given, self.rules = given, given.copies
        self.ends, self.steps = [0] * len(given.arrival), [0] * len(given.arrival)
        self.last: dict[int, int] = {}
        self.start = -1
        self.round: list[Record] = []

    def run(self, run: Record) -> None:
        """Take the next run, which is a copy for a round."""
        j, start = run["job"], whole(run["start"], "start of a run")
        fine = type(j) is int and 0 <= j < len(self.ends)
        need(fine, f"a run is of job {j!r:.80}, which there is not")
        if start != self.start:
            self.over()
            early = self.start >= 0 and start < self.start + self.rules["round"]
            need(not early, f"a run from tick {start} is out of order, or rounds are too near")
            self.start = start
        need(start >= self.given.arrival[j], f"job {j} starts before the job arrives")
        need("partner" not in run, f"job {j} has a partner and runs as copies")
        self.round.append(run)

    def over(self) -> None:
        """A round is over: one copy a node, numbers below the most, charges, steps."""
        rules, given = self.rules, self.given
        count: dict[int, set[int]] = {}
        nodes: set[int] = set()
        for run in self.round:
            j, copy, ((node, gpus),) = run["job"], whole(run["copy"], "copy"), run["pieces"]
            mine = count.setdefault(j, set())
            need(
                copy < rules["most"] and copy not in mine, f"job {j} has copy {copy} twice or more"
            )
            mine.add(copy)
            need(
                whole(node, "node") < len(given.size) and node not in nodes, f"node {node} has two"
            )
            nodes.add(node)
            need(
                whole(gpus, "GPUs of a copy", 1) <= given.size[node],
                f"node {node}: {gpus} GPUs held",
            )
        for run in self.round:
            j, ((node, gpus),) = run["job"], run["pieces"]
            rate = gpus * given.more[j]["rate"].get(given.type_of[node], Fraction(0))
            need(rate, f"job {j} cannot run on node {node}")
            owed = rules["aggregation"] if len(count[j]) > 1 else 0
            owed += rules["restart"] if self.last.get(node, j) != j else 0
            paid = whole(run["overhead"], "overhead")
            need(paid == owed, f"job {j} owes another overhead than {paid}")
            takes = ceil(whole(run["steps"], "steps", 1) / rate)
            end = whole(run["end"], "end of a run")
            fine = end - self.start - owed == takes and end <= self.start + rules["round"]
            need(fine, f"job {j} ends neither with its steps nor with the round")
            self.last[node] = j
            self.steps[j] += run["steps"]
            self.ends[j] = max(self.ends[j], end)
        self.round = []

    def finish(self) -> list[int]:
        """Completion of every job, after the last run."""
        self.over()
        for j, steps in enumerate(self.steps):
            need(steps, f"job {j} is lost: it never runs")
            whole_job = self.given.more[j]["steps"]
            need(steps == whole_job, f"job {j} does {steps} steps of its work, {whole_job}")
        return self.ends
