"""Bounds from prices and new schedules for the master, for all jobs of a node at once.

A schedule pays, by round, the prices of the rows of capacity that its level asks and those of the
cuts of :mod:`hadar_offline_packing` in which the level has a weight; its completion pays those of
:mod:`hadar_offline_conflicts`. All are known by round and level, or by completion, so the shortest
paths of :mod:`hadar_pricing` stay exact.

Complexity: that of the shortest paths.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shadowprice.solvers.hadar.offline.branching import Node
from shadowprice.solvers.hadar.offline.master import Master, Relaxed
from shadowprice.solvers.hadar.offline.pricing import Paths, States

_PER_JOB = 4
"""Schedules added for a job at a time, each with another completion."""


class Pricing:
    """Prices schedules for a master.

    Parameters
    ----------
    master : Master
        Gets the schedules.
    states : sequence of States
        By job.
    """

    def __init__(self, master: Master, states: Sequence[States]) -> None:
        self.master, self.paths = master, Paths(states, master.jobs.rounds)
        # Levels of all jobs in one array; what a job has not is never allowed.
        width = (self.paths.levels, len(master.demand.capacity))
        self.asked = np.zeros((master.jobs.jobs, *width))
        for job, asked in enumerate(master.demand.gpus):
            self.asked[job, : len(asked)] = asked

    def price(self, node: Node, relaxed: Relaxed) -> tuple[float, NDArray[np.float64], int]:
        """What the duals of a relaxed master are worth, and schedules that it lacks.

        Returns
        -------
        value : float
            Bound of the node by weak duality.
        payoffs : ndarray, shape (jobs, rounds + 1)
            Best payoff by completion, -inf where there is none.
        new : int
            Schedules added.
        """
        jobs, master, paths = self.master.jobs, self.master, self.paths
        value = float((relaxed.price @ master.demand.capacity).sum() + relaxed.cuts @ master.limits)
        worth = jobs.utility.values - np.tensordot(relaxed.cuts, master.weights, axes=1)
        price = np.tensordot(relaxed.price, self.asked, axes=(1, 2))
        paid = np.flatnonzero(relaxed.cuts)
        np.add.at(price, master.at[paid],
                  relaxed.cuts[paid, None, None] * master.running[paid, :, :-1])  # fmt: skip
        price = price.transpose(0, 2, 1)
        cost = np.where(node.allowed[:, :, :-1].transpose(1, 2, 0), price, np.inf)
        idle = np.where(node.allowed[:, :, -1].T, 0.0, np.inf)
        before, complete = paths.forward(cost, idle)
        payoffs = np.where(node.ends, worth, -np.inf)
        payoffs[:, :-1] -= complete
        value += float(payoffs.max(axis=1).sum())
        order = np.argsort(-payoffs[:, :-1], axis=1, kind="stable")[:, :_PER_JOB]
        wanted = [
            (job, end)
            for job, ends in enumerate(order.tolist())
            for end in ends
            if payoffs[job, end] > relaxed.payoff[job] + 1e-7
        ]
        found = paths.schedules(cost, idle, before, wanted)
        new = [(job, end, path) for (job, end), path in zip(wanted, found, strict=True)]
        return value, payoffs, master.add(new)
