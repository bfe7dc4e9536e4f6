"""The engine on nodes that fail: what happens beside arrivals and completions.

A node that goes down loses what runs on it back to the last checkpoints: those jobs leave, and arrive
again at that moment with the work that they had not saved. Its GPUs are not free before it is up. At one
moment completions come first, then nodes come up, then others go down, then jobs arrive; the policy decides
last. It sees which nodes are down now, and nothing of faults to come.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from shadowprice.errors import PolicyError
from shadowprice.execution.engine import KNOWS as SOUND_KNOWS
from shadowprice.execution.engine import Engine, EngineRun, Rounds
from shadowprice.execution.engine import run as run_on_sound_nodes
from shadowprice.execution.simulated_hosts import SimulatedHosts
from shadowprice.instances.failures.node_failures import NodeFailures
from shadowprice.instances.features import Feature
from shadowprice.instances.instance import Instance
from shadowprice.solvers.placement.count import Count
from shadowprice.solvers.placement.protocol import Placement
from shadowprice.solvers.policy import Decision, Policy

if TYPE_CHECKING:
    from shadowprice.execution.watch import Watch

KNOWS = SOUND_KNOWS | {Feature.FAILURES}
"""Features of instances that are run here."""

_UP, _DOWN = 0, 1
"""Kinds of events, in the order in which they happen at one moment."""


class NodeEvents:
    """Nodes that go down and come up, in order of time, as far as anybody asks.

    Attributes
    ----------
    failures : NodeFailures
        What is known of them so far.
    """

    def __init__(self, failures: NodeFailures) -> None:
        self._taken = 0
        self._know(failures)

    def _know(self, failures: NodeFailures) -> None:
        # What was taken is before the time that was known, and of this time nothing is new.
        self.failures = failures
        count = len(failures)
        times = np.concatenate((failures.up_s, failures.down_s))
        kinds = np.repeat((_UP, _DOWN), count)
        nodes = np.concatenate((failures.node, failures.node))
        order = np.lexsort((nodes, kinds, times))
        order = order[np.isfinite(times[order])]
        self._events = list(
            zip(times[order].tolist(), kinds[order].tolist(), nodes[order].tolist(), strict=True)
        )

    def next_s(self, until_s: float) -> float:
        """Time of the next event [s]; if that is after a time, perhaps only a time after it.

        Raises
        ------
        InputError
            If nobody knows what happens until then.
        """
        while True:
            events, known_s = self._events, self.failures.known_until_s
            time_s = events[self._taken][0] if self._taken < len(events) else math.inf
            if time_s < known_s or until_s < known_s or known_s == math.inf:
                return time_s
            self._know(self.failures.longer())

    def take(self) -> tuple[float, bool, int]:
        """Take the next event: its time [s], whether the node goes down, and the node."""
        time_s, kind, node = self._events[self._taken]
        self._taken += 1
        return time_s, kind == _DOWN, node


class FailingEngine(Engine):
    """The loop of a simulation in which nodes fail."""

    knows: ClassVar[frozenset[Feature]] = KNOWS

    def __init__(
        self, instance: Instance, policy: Policy, placement: Placement, rounds: Rounds
    ) -> None:
        super().__init__(instance, policy, placement, rounds)
        assert instance.failures is not None
        assert isinstance(self.hosts, SimulatedHosts)
        self._simulated = self.hosts
        self.events = NodeEvents(instance.failures)

    def result(self, cpu_s: float) -> EngineRun:
        """Everything done so far; its instance knows all faults until now."""
        made = super().result(cpu_s)
        return replace(made, instance=replace(made.instance, failures=self.events.failures))

    def _await(self, wake_s: float) -> float:
        state, event_s = self.state, super()._await(wake_s)
        if not (state.waiting if event_s == math.inf else state.waiting or state.running):
            # Nobody is there to whom it makes a difference before then.
            return event_s
        if event_s == math.inf and not state.down_nodes:
            # Whom no policy starts on a whole cluster it does not start on a part of it.
            return event_s
        return min(event_s, self.events.next_s(event_s))

    def _sense(self, now_s: float) -> None:
        hosts, events = self.hosts, self.events
        while True:
            end_s, event_s = hosts.next_end_s, events.next_s(now_s)
            if min(end_s, event_s) > now_s:
                break
            if end_s <= event_s:
                self._depart(*hosts.finish_next())
            else:
                self._change(*events.take())
        self.next_end_s = hosts.next_end_s
        if self.next_arrival_s <= now_s:
            self._admit(now_s)

    def _change(self, at_s: float, down: bool, node: int) -> None:
        """Take a node out, with all that runs there, or give it back."""
        state = self.state
        everything = ((node, state.environment.cluster.nodes[node].gpus),)
        if not down:
            state.down_nodes.remove(node)
            state.allocator.give_back(everything)
            return
        lost = [
            job
            for job, pieces in state.running.items()
            if any(place == node for place, _ in pieces)
        ]
        for job in lost:
            pieces = state.running[job]
            state.fail(job, at_s, *self._simulated.fail(job, at_s))
            state.release(job, pieces)
        taken = state.allocator.take_exact(everything)
        assert taken, "a node that goes down is held by a run"
        state.down_nodes.add(node)

    def _decide(self) -> Decision:
        decision = super()._decide()
        if decision.partners:
            raise PolicyError(
                f"{self.policy.name} at {self.state.now_s} s: lets jobs share GPUs of nodes that fail, of which "
                "no rule says what they save; expected each job alone"
            )
        return decision

    def _starved(self) -> None:
        down = len(self.state.down_nodes)
        if not down:
            super()._starved()
        raise PolicyError(
            f"{self.policy.name} at {self.state.now_s} s: {len(self.state.waiting)} jobs wait for ever, "
            f"{down} of {self.state.nodes} nodes stay down; expected nodes that come up again, or drop the jobs"
        )


def run(
    instance: Instance,
    policy: Policy,
    *,
    placement: Placement | None = None,
    rounds: Rounds | None = None,
    watch: Watch | None = None,
) -> EngineRun:
    """Run a policy in the engine, on nodes that fail where the instance has some.

    Parameters
    ----------
    placement, rounds, watch
        As :func:`shadowprice.execution.engine.run` takes them.

    Returns
    -------
    EngineRun
        Its instance knows all faults until the end of the run.

    Raises
    ------
    InputError
        Also if the run goes on for longer than faults are known.
    PolicyError
        Also if jobs wait for nodes that stay down.
    """
    if instance.failures is None:
        return run_on_sound_nodes(instance, policy, placement=placement, rounds=rounds, watch=watch)
    began = time.process_time()
    engine = FailingEngine(instance, policy, placement or Count(), rounds or Rounds())
    engine.watch = watch
    engine.loop()
    return engine.result(time.process_time() - began)
