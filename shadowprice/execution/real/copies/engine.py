"""HadarE on real hosts: rounds in which a job runs as several copies whose models are averaged.

Source: Sultana et al., HadarE (arXiv 2503.10918), recalled; precise version derived. As in
:mod:`shadowprice.execution.copies.simulation`, of which this is the real counterpart:

* A round begins at a multiple of ``round_s``, up to half a round late, and ends at the next.
  Jobs take part if they arrived by then.
* A copy holds one node whole. All start from the job's last checkpoint; each stops after its share
  of the steps, or when the round ends, with a checkpoint in a folder of its own.
* When all copies of a job are over, their parameters are averaged, with their steps as weights,
  and committed as the job's checkpoint: at the sum of the steps, under the epoch of the copies.

What a copy does belongs to its job only from that commit on. It is done once for each epoch: before
it the ledger says which steps are counted, and a driver that takes over looks whether the job's
checkpoint has the epoch. Whatever is killed, a job loses at most what it did in one round.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import asdict
from typing import Any

from shadowprice.execution.copies.hadare import HadarE
from shadowprice.execution.real.copies.books import (
    CONCLUDED,
    COUNTED,
    ROUND,
    Books,
    Copy,
    Fork,
)
from shadowprice.execution.real.copies.conclusion import (
    ROUND_ENDS,
    conclude_fork,
    contributes,
    copy_ending,
)
from shadowprice.execution.real.copies.leases import ForkLeases
from shadowprice.execution.real.copies.plan import Candidate, plan_round
from shadowprice.execution.real.copies.rates import ForkRates
from shadowprice.execution.real.copies.watch import ForkWatch
from shadowprice.execution.real.lease import JobRecord
from shadowprice.execution.real.run import RealRun


class ForkEngine:
    """The loop of a real run of HadarE.

    Parameters
    ----------
    round_s : float
        Length of a round [s].
    averaging : Executor, optional
        Where averages are made; a thread of its own if not given, so that leases are looked after
        meanwhile.
    """

    def __init__(
        self, run: RealRun, policy: HadarE, round_s: float, averaging: Executor | None = None
    ) -> None:
        self.run, self.policy, self.round_s = run, policy, round_s
        rates = ForkRates(run.measuring.instance, run.devices.nodes, policy)
        self.leases = ForkLeases(run)
        self.books = Books(run, rates, self.leases.lease)
        self.watch = ForkWatch(run, self.books, rates)
        self._averaging = averaging
        self._averages: dict[int, Future[str]] = {}
        self._why: dict[str, str] = {}
        self._stuck_s = math.inf

    def loop(self) -> None:
        """Round after round until every job is over; goes on where the ledger ends.

        Raises
        ------
        HostError
            If jobs wait for nodes that do not come back.
        PolicyError
            If the order of jobs returns no scores.
        """
        self.books.read()
        self.run.take_over()
        self._clean()
        if self._averaging is not None:
            self._rounds(self._averaging)
        else:
            with ThreadPoolExecutor(1, "averaging") as averaging:
                self._rounds(averaging)
        self._clean()

    def _clean(self) -> None:
        """Remove what a driver that died left, or a copy that was lost from sight for a while."""
        for tracked in self.run.tracked:
            self.leases.clean(tracked.row)

    def _rounds(self, averaging: Executor) -> None:
        run = self.run
        while not all(tracked.over for tracked in run.tracked):
            now_s = self.watch.look()
            self._end_round(now_s)
            for fork in list(self.books.forks.values()):
                self._after(fork, now_s, averaging)
            if not self.books.forks:
                self._begin_round(now_s)
            self._sleep(now_s)

    def _sleep(self, now_s: float) -> None:
        if all(tracked.over for tracked in self.run.tracked):
            return
        ends_s = [fork.end_s for fork in self.books.forks.values() if fork.end_s > now_s]
        next_s = min(ends_s, default=(math.floor(now_s / self.round_s) + 1) * self.round_s)
        self.run.clock.sleep(max(min(self.run.limits.poll_s, next_s - now_s), 0.001))

    def _end_round(self, now_s: float) -> None:
        """Ask copies to stop when the round is over."""
        leases = [
            lease
            for fork in self.books.forks.values()
            if now_s >= fork.end_s
            for lease in fork.leases
        ]
        self.run.ask_stop(leases, ROUND_ENDS)

    def _after(self, fork: Fork, now_s: float, averaging: Executor) -> None:
        """After all copies are over: count, average, conclude; each in its turn, each once."""
        if fork.row in self._averages:
            if self._averages[fork.row].done():
                self._conclude(fork, self._averages.pop(fork.row).result(), now_s)
            return
        if fork.steps is None:
            if not all(self.run.watch.over(lease) for lease in fork.leases):
                return
            self._count(fork)
        if not fork.steps:
            self._conclude(fork, "", now_s)
            return
        self._averages[fork.row] = averaging.submit(self.leases.average, fork, fork.steps)
        if self._averages[fork.row].done():
            self._after(fork, now_s, averaging)

    def _count(self, fork: Fork) -> None:
        """Decide what is averaged, before anything is."""
        ends = [copy_ending(lease) for lease in fork.leases]
        done = {k: self.leases.done(fork, k) for k, end in enumerate(ends) if contributes(end)}
        steps = {k: count for k, count in done.items() if count}
        for k, end in enumerate(ends):
            if end is None:
                self.leases.bar(fork, k)
        entry = {
            "row": fork.row,
            "steps": steps,
            "ends": [None if end is None else asdict(end) for end in ends],
        }
        with self.books.keep(COUNTED, entry):
            pass  # there is no event of it

    def _conclude(self, fork: Fork, trouble: str, now_s: float) -> None:
        run, tracked = self.run, self.run.tracked[fork.row]
        end, what = conclude_fork(tracked, fork, trouble, now_s, run.limits)
        entry: dict[str, Any] = {"conclusion": asdict(what)}
        with self.books.keep(CONCLUDED, entry):
            entry["measured"] = self.watch.concluded(fork, end, what, now_s)
        self.leases.clean(fork.row)

    def _begin_round(self, now_s: float) -> None:
        """Begin the round of this time, unless there was one or it is half over."""
        number = math.floor(now_s / self.round_s)
        began_s = number * self.round_s
        if number <= self.books.round or now_s - began_s > self.round_s / 2.0:
            return
        waiting = [
            tracked
            for tracked in self.books.waiting()
            if tracked.job.arrival_s <= began_s
            and (tracked.return_s == math.inf or tracked.return_s <= now_s)
        ]
        if not waiting:
            return
        end_s = began_s + self.round_s
        cpu_s = time.process_time()
        steps, plan = self._plan(waiting, now_s, end_s - now_s)
        cpu_s = time.process_time() - cpu_s
        forks = [
            Fork(
                row,
                self.run.tracked[row].epoch + 1,
                steps[row],
                self.run.tracked[row].step,
                now_s,
                end_s,
                copies,
            )
            for row, copies in plan.items()
        ]
        self._mind_standstill(bool(forks), now_s)
        self._carry_out(number, forks, cpu_s)

    def _plan(
        self, waiting: Sequence[JobRecord], now_s: float, length_s: float
    ) -> tuple[dict[int, int], dict[int, tuple[Copy, ...]]]:
        """The step from which each job goes on, and the copies of those that do.

        Checkpoints are looked at only where they are needed: if the last one of a job was damaged,
        it has more to do, and the plan is made again.
        """
        nodes = [
            k
            for k, node in enumerate(self.run.devices.nodes)
            if self.run.devices.find(k, len(node.devices))
        ]
        steps = {tracked.row: tracked.step for tracked in waiting}
        while True:
            jobs = [Candidate(tracked, steps[tracked.row]) for tracked in waiting]
            plan = plan_round(self.books, self.policy, jobs, nodes, now_s, length_s)
            found = {row: self.leases.start_of(row) for row in plan}
            if all(steps[row] == step for row, step in found.items()):
                return steps, plan
            steps |= found

    def _carry_out(self, number: int, forks: Sequence[Fork], cpu_s: float) -> None:
        """Write a round down, then start it."""
        run, names = self.run, [tracked.job.name for tracked in self.run.tracked]
        rows = {fork.row for fork in forks}
        why = {
            tracked.job.name: self._reason(tracked)
            for tracked in self.books.waiting()
            if tracked.row not in rows
        }
        if not forks and why == self._why:
            return
        self._why = why
        starts = {
            names[fork.row]: [[copy.node, copy.gpus] for copy in fork.copies] for fork in forks
        }
        entry = {"number": number, "forks": [fork.record() for fork in forks]}
        with self.books.keep(ROUND, entry) if forks else run.ledger.transaction():
            run.record.decided({"starts": starts, "stops": [], "cpu_s": cpu_s}, why)
            for fork in forks:
                fork.leases = [self.leases.lease(fork, k) for k in range(len(fork.copies))]
                self.watch.granted(fork)
        for row in rows:
            self.leases.start(self.books.forks[row])

    def _reason(self, tracked: JobRecord) -> str:
        """Reason that a job waits, as far as it can be seen from outside."""
        if tracked.return_s < math.inf and tracked.tries:
            return "waits before it is tried again"
        lost = self.run.devices.lost
        if lost:
            return f"no node is left for it; {', '.join(sorted(lost))} do not answer"
        return "arrived during the round, or others are served first in it"

    def _mind_standstill(self, begins: bool, now_s: float) -> None:
        """Give up when jobs wait for nodes that do not come back."""
        self._stuck_s = math.inf if begins else min(self._stuck_s, now_s)
        if now_s - self._stuck_s > self.run.limits.node_s:
            self.run.give_up(len(self.books.waiting()))
