"""The schedule of jobs that run as copies, round by round."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from fractions import Fraction
from math import ceil
from typing import Any

from .form import LARGEST, Record, need, whole
from .instance import CertificateInstance


class CopySchedule:
    """Schedule of jobs that run as several copies, each on a whole node, round by round."""

    def __init__(self, instance: CertificateInstance) -> None:
        self.instance, self.rules = instance, instance.copies
        self.ends, self.steps = [0] * len(instance.arrival), [0] * len(instance.arrival)
        self.last: dict[int, tuple[int, int]] = {}
        self.start, self.latest = -1, 0
        self.restarts = "preemption" in instance.header
        self.ran: dict[int, tuple[int, int]] = {}
        self.cut: set[int] = set()
        self.had: set[tuple[int, int]] = set()
        self.follows = False
        self.cut_steps: dict[int, int] = {}
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
            self.follows = start == self.start + self.rules["round"]
            self.start = start
        need(start >= self.instance.arrival[j], f"job {j} starts before the job arrives")
        need("partner" not in run, f"job {j} has a partner and runs as copies")
        self.round.append(run)

    def over(self) -> None:
        """A round is over: one copy a node, numbers below the most, charges, steps."""
        rules, instance = self.rules, self.instance
        count: dict[int, set[int]] = {}
        nodes: set[int] = set()
        for run in self.round:
            j, copy, ((node, gpus, *_),) = run["job"], whole(run["copy"], "copy"), run["pieces"]
            mine = count.setdefault(j, set())
            need(
                copy < rules["most"] and copy not in mine, f"job {j} has copy {copy} twice or more"
            )
            mine.add(copy)
            need(
                whole(node, "node") < len(instance.size) and node not in nodes,
                f"node {node} has two",
            )
            nodes.add(node)
            need(
                whole(gpus, "GPUs of a copy", 1) <= instance.size[node],
                f"node {node}: {gpus} GPUs held",
            )
        before = {j: self.begin(j) for j in count}
        for run in self.round:
            j, ((node, gpus, *cell),) = run["job"], run["pieces"]
            rate = gpus * instance.more[j]["rate"].get(instance.type_of[node], Fraction(0))
            rate *= self.fed(j, node, gpus, cell)
            need(rate, f"job {j} cannot run on node {node}")
            owed = rules["aggregation"] if len(count[j]) > 1 else 0
            downs = bisect_left(instance.faults.get(node, ([], []))[0], self.start)
            same = self.last.get(node, (j, downs)) == (j, downs)
            owed += 0 if same else rules["restart"]
            self.last[node] = j, downs
            self.copy(run, owed, rate)
            self.steps[j] += run["steps"]
        for j in count:
            self.ran[j] = self.start, self.steps[j] - before[j]
            planned = self.steps[j] + self.cut_steps.pop(j, 0)
            most = instance.more[j]["steps"]
            need(planned <= most, f"job {j} does {planned} steps of its work, {most}")
        self.expect_within_quotas()
        self.had = {(run["job"], run["pieces"][0][0]) for run in self.round if run["steps"]}
        self.round = []

    def fed(self, j: int, node: int, gpus: int, cell: list[Any]) -> Fraction:
        """Speed of a copy by a row of its job's profile, for which its node has the CPUs and memory."""
        number = self.instance.more[j].get("profile")
        need(
            len(cell) == (number is not None),
            f"job {j} has a row of a profile that is not its, or none",
        )
        if number is None:
            return Fraction(1)
        *least, speed = self.instance.cells[number][whole(cell[0], "row of a profile")]
        for field, each in zip(("cpus", "memory"), least, strict=True):
            fine = gpus * each <= self.instance.cpu_memory.get((node, field), 0)
            need(fine, f"node {node}: job {j} has not the {field} of its row")
        return Fraction(speed)

    def begin(self, j: int) -> int:
        """Steps of a job before a round: none if it begins anew where no copy went on in the round before."""
        start, did = self.ran.get(j, (self.start, 0))
        if self.restarts and not (did and start + self.rules["round"] == self.start):
            fine = self.steps[j] < self.instance.more[j]["steps"]
            need(fine, f"job {j} runs again after all steps of its work")
            self.steps[j] = 0
        return self.steps[j]

    def expect_within_quotas(self) -> None:
        """Refuse quotas of which a copy takes a node that its job did not have, where all nodes are too much."""
        held: dict[int, int] = {}
        begun: set[int] = set()
        for run in self.round if self.instance.quotas else ():
            quota, ((node, *_),) = self.instance.quota_of[run["job"]], run["pieces"]
            held[quota] = held.get(quota, 0) + self.instance.size[node]
            if not self.follows or (run["job"], node) not in self.had:
                begun.add(quota)
        for quota in sorted(begun):
            starts, gpus = self.instance.quotas[quota]
            most = gpus[bisect_right(starts, self.start) - 1]
            fine = held[quota] <= most
            need(
                fine, f"quota {quota}: {held[quota]} GPUs held at tick {self.start}, it has {most}"
            )

    def copy(self, run: Record, owed: int, rate: Fraction) -> None:
        """A copy ends with its steps, or is cut and has none: one more would fit its round."""
        j, steps, length = run["job"], whole(run["steps"], "steps"), self.rules["round"]
        end = whole(run["end"], "end of a run", self.start + 1)
        lasts, paid = end - self.start, whole(run["overhead"], "overhead")
        struck = self.instance.cut_short(j, run)
        known = self.instance.checkpoints.get("until", LARGEST)
        need(end < known, f"job {j} runs when nobody knows which nodes are down")
        need(paid == owed or not steps, f"job {j} owes another overhead than {paid}")
        if steps:
            fine = lasts - owed == ceil(steps / rate) and lasts <= length
            self.ends[j] = max(self.ends[j], end)
        else:
            need(paid == min(owed, lasts), f"job {j} owes another overhead than {paid}")
            more = int((lasts - paid) * rate) + 1
            fine = owed + ceil(more / rate) <= length
            if not struck:
                self.cut.add(end)
            self.cut_steps[j] = self.cut_steps.get(j, 0) + more
        need(fine, f"job {j} ends neither with its steps nor with the round")
        self.latest = max(self.latest, end)

    def finish(self) -> list[int]:
        """Completion of every job, after the last run; 0 of jobs that are not complete."""
        self.over()
        header, rows = self.instance.header, set(self.instance.rows())
        for j, steps in enumerate(self.steps):
            whole_job, required = (
                self.instance.more[j]["steps"],
                j in rows and "stopped" not in header,
            )
            need(steps or not required, f"job {j} is lost: it never runs")
            fine = steps == whole_job or not required
            need(fine, f"job {j} does {steps} steps of its work, {whole_job}")
            self.ends[j] *= steps == whole_job
        first, last = header.get("window", (0, len(self.ends)))
        until, ends = header.get("stopped", LARGEST), self.ends[first:last]
        until = min(until, max(ends)) if all(ends) else until
        need(self.latest <= until, f"a copy goes on after tick {until}, when the run is over")
        need(self.cut <= {until}, f"a copy is cut before tick {until}, when the run is over")
        return self.ends
