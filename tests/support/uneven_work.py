"""Jobs whose times are off the grid, and a policy that disturbs them at random."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, ClassVar

from hypothesis import strategies as st

from shadowprice.instances.cluster import Cluster
from shadowprice.instances.instance import Instance
from shadowprice.instances.terms.charges import Overheads
from shadowprice.instances.workload import Workload
from shadowprice.proofs.testing.cases import charges
from shadowprice.solvers.policy import Decision, Knowledge, State
from support.states import Stops


@dataclass(frozen=True)
class Fickle:
    """Stops, moves and joins jobs at random, and wakes at times that are off the grid."""

    seed: int
    name: str = "fickle"
    knows: ClassVar[frozenset[Knowledge]] = frozenset()
    preemptive: ClassVar[bool] = True

    def decide(self, state: State) -> Decision:
        draw = state.notes(random.Random, lambda: random.Random(self.seed))
        stops = state.notes(Stops)
        decision = Decision(state)
        for job in list(state.running):
            # Not for ever: who is charged for every start would never get on.
            if draw.random() < 0.3 and stops.left:
                stops.left -= 1
                decision.stop(job)
        waiting = [*state.waiting, *decision.stops]
        draw.shuffle(waiting)
        for job in waiting:
            pools = list(state.pools[job])
            draw.shuffle(pools)
            hosts = list(decision.starts)
            hosts += [job for job in state.running if job not in decision.stops]
            joins = state.sharing and draw.random() < 0.5
            if not (joins and any(decision.join(job, other) for other in hosts if other != job)):
                any(decision.start_on(job, pool) for pool in pools)
        if stops.left and (state.running or decision.starts):
            decision.wake_at(state.now_s + draw.choice([0.1, 1 / 3, 0.7, 2.3]))
        return decision


@st.composite
def uneven(draw: st.DrawFn, charged: bool = True) -> Instance:
    """Milliseconds of work at rates of three digits, on two GPU types."""
    n = draw(st.integers(1, 5))

    def column(values: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(values, min_size=n, max_size=n))

    rate = st.integers(100, 9000).map(lambda each: each / 1000)
    workload = Workload.from_columns(
        arrival_s=column(st.sampled_from([0, 0, 0.37, 1.9])),
        gpus=column(st.sampled_from([1, 1, 2])),
        work=column(st.integers(10, 200_000).map(lambda each: each / 10_000)),
        throughput=column(st.tuples(rate, rate).map(list)),
        gpu_types=("a", "b"),
    )
    return Instance(
        Cluster.parse("1x2:a,1x2:b"), workload, draw(charges) if charged else Overheads()
    )
