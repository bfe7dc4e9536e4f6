"""The schedule of gangs: runs in order of their starts.

Kept are runs that hold GPUs, and jobs that are begun and not complete.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from math import lcm
from typing import Any

from .form import LARGEST, WHOLE_GPU, Record, Rejected, need, whole
from .instance import CertificateInstance
from .limits import MOST_BITS
from .speeds import slower

Held = tuple[tuple[int, int], ...]


class GangProgress:
    """A job that is begun: its last run, what it owes, and its progress at every pace.

    Of a run that goes on: its time without overheads, its progress, that of each of its parts with their paces, and
    what was done before it.
    """

    def __init__(self) -> None:
        self.end, self.owed = 0, 0
        self.held: Held = ()
        self.changes = False
        self.done, self.all = 0, 1
        self.pace = 1
        self.begin()

    def begin(self) -> None:
        """Begin a run."""
        self.elapsed, self.made = 0, 0
        self.parts: list[tuple[int, int]] = []
        self.before = self.done, self.all

    def back_to(self, saved: int) -> None:
        """Count of the last run no more ticks than these, its first."""
        self.done, self.all = self.before
        for pace, ran in self.parts:
            self.pace, saved_ticks = pace, min(ran, saved)
            self.go(saved_ticks)
            saved -= saved_ticks

    def go(self, ticks: int) -> None:
        """Count ticks at the pace of the last run: ``all`` is all of the job, a multiple of its every pace."""
        if self.all % self.pace:
            more = lcm(self.all, self.pace) // self.all
            self.done, self.all = self.done * more, self.all * more
            need(self.all.bit_length() <= MOST_BITS, "a job ran at too many speeds")
        self.done += ticks * (self.all // self.pace)

    def left(self) -> int:
        """Ticks that the job lacks at the pace of its last run, rounded up; negative if they are too many."""
        return -((self.done - self.all) * self.pace // self.all)


OF_PIECES = ("part", "profile", "graph")
"""Fields of jobs of whose runs each piece has an entry, after its node and GPUs, in this order."""


def entry(more: Record, field: str) -> int:
    """Place of the entry of a field in the pieces of a job's runs."""
    return 2 + sum(each in more for each in OF_PIECES[: OF_PIECES.index(field)])


class Holdings:
    """Amounts held of GPUs, parts of them, CPUs and memory, at the start of the last run."""

    def __init__(self, instance: CertificateInstance) -> None:
        self.instance = instance
        self.held: dict[Any, int] = {}
        self.ends: list[tuple[int, int, list[tuple[Any, int]]]] = []
        self.count = 0

    def until(self, start: int) -> None:
        """Give back what was held by runs that end by then."""
        while self.ends and self.ends[0][0] <= start:
            for what, amount in heapq.heappop(self.ends)[2]:
                self.move(what, -amount)

    def take(self, end: int, amounts: list[tuple[Any, int]]) -> None:
        """Hold something until an end."""
        for what, amount in amounts:
            self.move(what, amount)
        self.count += 1
        heapq.heappush(self.ends, (end, self.count, amounts))

    def move(self, what: Any, amount: int) -> None:
        """Hold more or less of a node's GPUs (its number), of a GPU (node, number), or of (node, name)."""
        before = self.held.get(what, 0)
        now = self.held[what] = before + amount
        if type(what) is int:
            most = self.instance.size[what]
            if now > most:
                raise Rejected(f"node {what}: {now} GPUs held, it has {most}")
        elif type(what[1]) is int:
            need(now <= WHOLE_GPU, f"GPU {what[1]} of node {what[0]}: {now} thousandths held")
            if not (before and now):  # Whoever holds a part, the GPU counts once.
                self.move(what[0], 1 if now else -1)
        else:
            # In thousandths of what a node says, for a part of a GPU holds such.
            most, held = self.instance.cpu_memory.get(what, 0), -(-now // WHOLE_GPU)
            fine = held <= most
            need(fine, f"node {what[0]}: {held} thousandths of {what[1]} held, it has {most}")


class QuotaUse:
    """Thousandths of GPUs that are held of each quota, at the start of the last run."""

    def __init__(self, instance: CertificateInstance) -> None:
        self.instance, self.held = instance, [0] * len(instance.quotas)
        self.ends: list[tuple[int, int, int]] = []
        self.begun: set[int] = set()

    def hold(self, j: int, run: Record, amount: int, *, begins: bool) -> None:
        """Hold more until the run ends, of a job that begins or goes on."""
        quota = self.instance.quota_of.get(j)
        if quota is None:  # Cores are nobody's GPUs.
            return
        while self.ends and self.ends[0][0] <= run["start"]:
            _, other, before = heapq.heappop(self.ends)
            self.held[other] -= before
        self.held[quota] += amount
        heapq.heappush(self.ends, (run["end"], quota, amount))
        if begins:
            self.begun.add(quota)

    def expect_within(self, start: int) -> None:
        """Refuse quotas of which a run began at a tick, and with all that began or went on then there is too much."""
        for quota in sorted(self.begun):
            starts, gpus = self.instance.quotas[quota]
            held, most = self.held[quota], WHOLE_GPU * gpus[bisect_right(starts, start) - 1]
            fine = held <= most
            need(fine, f"quota {quota}: {held} thousandths held at tick {start}, it has {most}")
        self.begun.clear()


class GangSchedule:
    """Schedule of jobs that run as one gang each."""

    def __init__(self, instance: CertificateInstance) -> None:
        self.instance, self.held, self.quotas = instance, Holdings(instance), QuotaUse(instance)
        self.stopped, self.latest = instance.header.get("stopped", LARGEST), 0
        self.consolidated = "placement" in instance.header
        self.round = instance.header["round"] if "rounds" in instance.header else 1
        self.restarts, self.once = "preemption" in instance.header, "starts" in instance.header
        self.steps = [most for most, _ in instance.header["restart"]]
        self.begun: dict[int, GangProgress] = {}
        self.ends = [0] * len(instance.arrival)
        self.start = 0
        self.waiting: dict[tuple[int, int], tuple[int, int, Held]] = {}

    def run(self, run: Record) -> None:
        """Take the next run."""
        instance, j = self.instance, run["job"]
        if type(j) is not int or not 0 <= j < len(self.ends):
            raise Rejected(f"a run is of job {j!r:.80}, which there is not")
        start, which = whole(run["start"], f"start of job {j}"), f"job {j} at tick {run['start']}"
        end = whole(run["end"], f"end of {which}", start + 1)
        overhead = whole(run["overhead"], "overhead")
        if start != self.start:
            self.advance(start)
        need(overhead <= end - start, f"{which} is shorter than its overhead")
        need(start >= instance.arrival[j], f"{which} starts before the job arrives")
        need("copy" not in run and "steps" not in run, f"{which} is a copy")
        more = instance.more.get(j)
        held = self.pieces(j, which, run["pieces"], more)
        need(end <= self.stopped, f"{which} goes on after it was stopped")
        need(start % self.round == 0, f"{which} does not begin with a round")
        self.latest = max(self.latest, end)
        if more is None:
            self.held.take(end, run["pieces"])
            need("partner" not in run, f"{which} has a partner")
        else:
            self.hold(run, held, more)
        need(not self.ends[j], f"job {j} holds GPUs after the end of its work")
        job = self.begun.setdefault(j, GangProgress())
        begins = not self.stays(j, job, run, held)
        if instance.quotas:
            part = WHOLE_GPU if more is None else more.get("part", WHOLE_GPU)
            whole_gpus = part * sum(gpus for _, gpus in held)
            self.quotas.hold(j, run, whole_gpus // (1 + ("partner" in run)), begins=begins)
        self.charge(j, job, run, held, begins=begins)
        job.pace = self.pace(j, run, more)
        if begins:
            if self.restarts:  # What was done before is lost.
                job.done = 0
            job.begin()
        self.progress(j, job, run)
        fine = end % self.round == 0 or self.ends[j]
        need(fine, f"{which} ends within a round, and its job does not")

    def advance(self, start: int) -> None:
        """Go on to a later start."""
        need(start > self.start, f"a run from tick {start} is out of order")
        self.alone()
        self.quotas.expect_within(self.start)
        self.held.until(start)
        self.start = start

    def alone(self) -> None:
        """Nobody waits for a partner."""
        for job, partner in self.waiting:
            raise Rejected(f"job {partner} does not share what its partner, job {job}, holds")

    def pieces(self, j: int, which: str, pieces: list[list[Any]], more: Record | None) -> Held:
        """Nodes and GPUs of a run, which are the job's."""
        size = 2 if more is None else 2 + len(more.keys() & set(OF_PIECES))
        last, width = -1, 0
        for piece in pieces:
            need(len(piece) == size, f"{which}: a piece has {len(piece)} entries, not {size}")
            node = whole(piece[0], f"node of {which}", last + 1)
            need(node < len(self.instance.size), f"{which}: node {node} is not there")
            last, width = node, width + whole(piece[1], f"GPUs of {which}", 1)
        gang = self.instance.gang[j]
        widest = gang if more is None or "widths" not in more else self.instance.widest(j)
        need(gang <= width <= widest, f"{which} holds {width} GPUs, not its gang")
        if self.consolidated and len(pieces) > self.instance.fewest(j, width):
            raise Rejected(f"{which} is on {len(pieces)} nodes, which are more than need be")
        return tuple((piece[0], piece[1]) for piece in pieces)

    def hold(self, run: Record, held: Held, more: Record) -> None:
        """Count what a run holds, beyond plain gangs."""
        j, end, pieces = run["job"], run["end"], run["pieces"]
        taken: list[tuple[Any, int]] = list(held)
        if "partner" in run:
            need("beside" in more, f"job {j} has a partner, and no speed beside one")
            here, other = (run["start"], end, held), whole(run["partner"], "partner")
            if (other, j) in self.waiting:
                same = self.waiting.pop((other, j)) == here
                need(same, f"jobs {j} and {other} do not hold the same")
                taken = []  # Whoever of two holds a GPU, it counts once.
            else:
                need(other != j, f"job {j} is its own partner")
                self.waiting[j, other] = here
        if "part" in more:
            number = whole(pieces[0][entry(more, "part")], "GPU")
            need(number < self.instance.size[pieces[0][0]], f"job {j} holds GPU {number} of a node")
            taken = [((pieces[0][0], number), more["part"])]
        if "profile" in more:
            cells, at = self.instance.cells[more["profile"]], entry(more, "profile")
            part = more.get("part", WHOLE_GPU)
            for piece in pieces:
                cpus, memory, _ = cells[whole(piece[at], "row of a profile")]
                node, milli = piece[0], piece[1] * part
                taken += [((node, "cpus"), milli * cpus), ((node, "memory"), milli * memory)]
        self.held.take(end, taken)

    def stays(self, j: int, job: GangProgress, run: Record, held: Held) -> bool:
        """True if a job goes on, on GPUs that it held, while its partner or its CPUs change."""
        before = job.changes
        job.changes = "partner" in run or bool(self.instance.cells)
        on = bool(job.end) and run["start"] == job.end and held == job.held
        on = on and (job.changes or before)
        stated = run.get("goes_on", on)
        fine = type(stated) is bool and (on or not stated)
        need(fine, f"job {j} at tick {run['start']}: goes_on is {stated!r:.80}, and it begins")
        return bool(stated)

    def charge(self, j: int, job: GangProgress, run: Record, held: Held, *, begins: bool) -> None:
        """One run at a time, whose overhead is paid first."""
        header, start = self.instance.header, run["start"]
        if job.end and start < job.end:
            raise Rejected(f"job {j} runs twice at tick {start}")
        if begins:
            job.owed += header["start"]
            if job.end:
                need(not self.once, f"job {j} begins again at tick {start}, and each begins once")
                job.owed += self.restart_of(self.instance.gang[j])
                job.owed += header["migration"] * (held != job.held)
        job.owed -= run["overhead"]
        fine = not job.owed or (job.owed > 0 and run["end"] - start == run["overhead"])
        need(fine, f"job {j} owes {job.owed} ticks of overhead")
        job.end, job.held = run["end"], held

    def restart_of(self, gang: int) -> int:
        """Ticks of overhead of a gang that begins again."""
        place = min(bisect_left(self.steps, gang), len(self.steps) - 1)
        return int(self.instance.header["restart"][place][1])

    def pace(self, j: int, run: Record, more: Record | None) -> int:
        """Ticks that all of the job would take as a run goes."""
        instance, pieces = self.instance, run["pieces"]
        kinds = {instance.type_of[piece[0]] for piece in pieces}
        if more is not None and "graph" in more:
            at = entry(more, "graph")
            rows = tuple(sorted(tuple(whole(n, "replicas") for n in piece[at]) for piece in pieces))
            fine = all(sum(piece[at]) == piece[1] for piece in pieces)
            need(fine, f"job {j} has not a replica on each of its GPUs")
            ticks = instance.graphs[more["graph"]].ticks(more["work"], rows)
            shared = min(self.sharing_times(j, run["partner"], kinds)) if "partner" in run else 1.0
            return slower(ticks, shared, self.fed(pieces, more) if "profile" in more else 1.0)
        times: list[int] = [instance.times[j][kind] for kind in kinds]
        need(all(times), f"job {j} cannot run on node {pieces[0][0]} or another of its nodes")
        if more is None:
            return max(times)
        if "partner" in run:
            times = self.sharing_times(j, run["partner"], kinds)
        if not more.keys() & {"profile", "spread", "widths"}:
            return max(times)
        width = sum(piece[1] for piece in pieces)
        speeds = [1.0, 1.0, 1.0]
        if "profile" in more:
            speeds[0] = self.fed(pieces, more)
        if "spread" in more and len(pieces) > instance.fewest(j, width):
            speeds[1] = more["spread"]
        if "widths" in more:
            speeds[2] = instance.speeds[more["widths"]][width - instance.gang[j]]
        return slower(max(times), *speeds)

    def fed(self, pieces: list[list[Any]], more: Record) -> float:
        """Speed of a run by the row of its job's profile on each of its nodes."""
        cells, at = self.instance.cells[more["profile"]], entry(more, "profile")
        slowest: float = min(cells[whole(piece[at], "row of a profile")][2] for piece in pieces)
        return slowest

    def sharing_times(self, j: int, partner: int, kinds: set[int]) -> list[Any]:
        """Ticks of a job beside another, on types of GPUs; with a graph its speeds against that alone."""
        instance, ticks = self.instance, []
        need(partner < len(self.ends), f"job {j} is beside job {partner}, which there is not")
        need(instance.gang[j] == instance.gang[partner], f"job {j} is beside another gang")
        names = list(instance.types)
        for one, other in ((partner, j), (j, partner)):
            mine, theirs = instance.more.get(one, {}), instance.more.get(other, {})
            rows = [mine.get("beside", {}).get(names[kind], {}) for kind in kinds]
            ticks = [row.get(str(theirs.get("sort")), 0) for row in rows]
            able = "graph" in mine or all(instance.times[one][kind] for kind in kinds)
            fine = all(ticks) and able
            need(fine, f"jobs {j} and {partner} cannot share these GPUs")
        return ticks

    def progress(self, j: int, job: GangProgress, run: Record) -> None:
        """Count a run, which completes its job with the tick that completes its work."""
        start, end, rule = run["start"] + run["overhead"], run["end"], self.instance.checkpoints
        ran, idle, saved, short = end - start, end == start, 0, False
        if rule:
            need(end < rule["until"], f"job {j} runs when nobody knows which nodes are down")
            job.elapsed += ran
            cycles, rest = divmod(job.elapsed, rule["interval"] + rule["cost"])
            saved = cycles * rule["interval"]
            made = saved + min(rest, rule["interval"])
            idle |= bool(rule["cost"]) and (rest == 0 or rest > rule["interval"])
            ran, job.made = made - job.made, made
            job.parts.append((job.pace, ran))
            short = self.instance.cut_short(j, run)
        job.go(ran)
        left = job.left()
        if left > 0:
            if short:
                job.back_to(saved)
            return
        need(left > -1 and not idle, f"job {j} holds GPUs after the end of its work")
        self.ends[j] = end
        del self.begun[j]

    def finish(self) -> list[int]:
        """Completion of every job, after the last run."""
        self.alone()
        self.quotas.expect_within(self.start)
        header, rows, ends = self.instance.header, self.instance.rows(), self.ends
        for j in rows if "stopped" not in header else ():
            if not ends[j]:
                need(j in self.begun, f"job {j} is lost: it never runs")
                short = self.begun[j].left()
                raise Rejected(f"job {j} is {short} ticks short of its work")
        first, last = header.get("window", (0, len(ends)))
        over = max(ends[first:last])
        fine = self.latest <= over or not all(ends[first:last])
        need(fine, f"a run goes on after tick {over}, when all that count are complete")
        return ends
