"""HadarE on real hosts: rounds in which a job runs as several copies whose models are averaged.

Source: Sultana et al., HadarE (arXiv 2503.10918), recalled; precise version derived. As in
:mod:`shadowprice.execution.copies.simulation`, of which this is the real counterpart:

* A round begins at a multiple of its length, up to half a round late, and ends at the next.
  Jobs take part if they arrived by then.
* A copy holds one node whole. All start from the job's last checkpoint; each stops after its share
  of the steps, or when the round ends, with a checkpoint in a folder of its own.
* When all copies of a job are over, their parameters are averaged, with their steps as weights,
  and committed as the job's checkpoint: at the sum of the steps, under the epoch of the copies.

What a copy does belongs to its job only from that commit on. It is done once for each epoch: before
it the journal says which steps are counted, and a driver that takes over looks whether the job's
checkpoint has the epoch. Whatever is killed, a job loses at most what it did in one round.
"""

from __future__ import annotations

from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial

from shadowprice.execution.copies.hadare import HadarE
from shadowprice.hosts.live.copies.leases import CopyLeases
from shadowprice.hosts.live.copies.live import LiveCopies
from shadowprice.hosts.live.copies.rates import CopyRates
from shadowprice.hosts.live.copies.rounds import RoundEvents
from shadowprice.hosts.live.copies.state import CopyState
from shadowprice.hosts.live.replay import Journal
from shadowprice.hosts.live.run import RealRun
from shadowprice.instances.features import Feature, require

KNOWS = frozenset({Feature.RATES, Feature.TYPES, Feature.AMOUNTS})
"""Features of the instances of such runs; a copy has all CPUs and memory of its node."""


class CopyEngine:
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
        require(run.measuring.instance, KNOWS, "real runs of copies")
        self.run, self.policy, self.round_s = run, policy, round_s
        self.leases = CopyLeases(run)
        rates = CopyRates(run.measuring.instance, run.devices.nodes, policy)
        self.state = CopyState(run, rates, self.leases.of)
        self._averaging = averaging

    def loop(self) -> None:
        """From event to event until every job is over; goes on where the journal ends.

        Raises
        ------
        HostError
            If jobs wait for nodes that do not come back.
        PolicyError
            If the order of jobs returns no scores, or the journal is of another program.
        """
        given = self._averaging
        with ThreadPoolExecutor(1, "averaging") if given is None else nullcontext(given) as where:
            live = LiveCopies(self.state, self.leases, self.policy, self.round_s, where)
            journal = Journal(self.run.ledger, live.observer.keep_alive, live.take_over)
            # Jobs that were given up may have been taken up again.
            while not self.state.over or journal.ahead or self.run.ledger.retried():
                events = journal.ask("events", RoundEvents, live.events)
                self.state.take_in(events)
                live.start_granted()
                for each in events.concluded:
                    journal.act(partial(self.leases.clean, each.outcome.row))
            journal.act(live.clean)
