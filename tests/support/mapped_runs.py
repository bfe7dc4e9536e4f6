"""Real runs of jobs with graphs on a host in memory, and a policy that places replicas at random."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from shadowprice.hosts.protocol import LaunchSpec, LeaseKey
from shadowprice.instances.graphs.job_graph import StageMapping
from shadowprice.solvers.policy import Decision, Knowledge, State
from support.fake_host import FakeHost, two_nodes
from support.fake_run import FakeRun

NODES = tuple(replace(node, gpu_type="A100", cpus=8.0, memory_gb=16.0) for node in two_nodes(3))
NETWORK = {"intra_gb_per_s": 300, "nic_gb_per_s": 1}


def graph(encoders: int = 2, decoders: int = 1, name: str = "translation") -> dict[str, Any]:
    """A graph of two stages, as a job file says it."""
    return {
        "name": name,
        "stages": [
            {
                "name": "encoder",
                "replicas": encoders,
                "forward_s": 0.03,
                "backward_s": 0.06,
                "parameter_bytes": 4e7,
            },
            {
                "name": "decoder",
                "replicas": decoders,
                "forward_s": 0.04,
                "backward_s": 0.05,
                "parameter_bytes": 2e7,
            },
        ],
        "links": [{"from": "encoder", "to": "decoder", "bytes_per_replica": 2e6}],
    }


def mapped(name: str, iterations: int = 60, **more: Any) -> dict[str, Any]:
    """An entry of a job file."""
    return {"name": name, "iterations": iterations, "graph": graph(), **more}


class RankedHost(FakeHost):
    """A host that sees whether each rank is told its own replicas, and all of them those of the gang."""

    def start(self, orders: Sequence[LaunchSpec]) -> None:
        super().start(orders)
        gangs: dict[tuple[str, int], dict[LeaseKey, LaunchSpec]] = defaultdict(dict)
        for order in orders:
            gangs[order.key.job, order.key.epoch][order.key] = order
        for gang in gangs.values():
            ranks = [gang[key] for key in sorted(gang)]
            told = [json.loads(order.env["SHADOWPRICE_NODE_REPLICAS"]) for order in ranks]
            assert [len(each) for each in told] == [len(order.devices) for order in ranks]
            whole = [tuple(replica) for here in told for replica in here]
            for k, order in enumerate(ranks):
                assert json.loads(order.env["SHADOWPRICE_REPLICAS"]) == [list(r) for r in whole]
                assert (order.env["PET_RDZV_BACKEND"], order.env["PET_NODE_RANK"]) == (
                    "static",
                    str(k),
                )
            of_stage: dict[str, list[int]] = defaultdict(list)
            for stage, number in whole:
                of_stage[stage].append(number)
            assert all(numbers == list(range(len(numbers))) for numbers in of_stage.values())


def run_of(path: Path, jobs: Sequence[dict[str, Any]], **more: Any) -> FakeRun:
    """A run of jobs with graphs."""
    given = {"policy": "asrpt", "nodes": NODES, "more": {"network": NETWORK}, **more}
    run = FakeRun(path, jobs, **given)
    host = run.host
    run.host = RankedHost(host.clock, host.nodes, host.jobs, host.state)
    run.host.on_poll = host.on_poll
    return run


@dataclass
class _Draws:
    random: random.Random


@dataclass(frozen=True)
class Shuffles:
    """Starts jobs under random mappings, and now and then stops one to place it anew."""

    seed: int
    name: str = "shuffles"
    knows: frozenset[Knowledge] = field(default=frozenset())
    preemptive: bool = True

    def decide(self, state: State) -> Decision:
        draws = state.notes(_Draws, lambda: _Draws(random.Random(self.seed)))
        decision = Decision(state)
        for job in list(state.running):
            if draws.random.random() < 0.15:
                decision.stop(job)
        for job in [*decision.stops, *state.waiting]:
            mapping = self._mapping(state, job, draws.random)
            if mapping is not None:
                decision.start_mapped(job, mapping)
        return decision

    def _mapping(self, state: State, job: int, draw: random.Random) -> StageMapping | None:
        free = [n for n, gpus in enumerate(state.free_gpus_by_node()) for _ in range(int(gpus))]
        stages = [
            s for s, each in enumerate(state.graph_of(job).stages) for _ in range(each.replicas)
        ]
        if len(free) < len(stages):
            return None
        where = draw.sample(free, len(stages))
        counts: dict[int, list[int]] = {}
        for node, stage in zip(where, stages, strict=True):
            counts.setdefault(node, [0] * len(state.graph_of(job).stages))[stage] += 1
        return tuple((node, tuple(row)) for node, row in counts.items())
