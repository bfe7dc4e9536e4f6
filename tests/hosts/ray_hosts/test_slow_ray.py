"""Ray that is slow or hangs for a while: the run waits for it, without a cluster."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from shadowprice.errors import HostError
from shadowprice.hosts.ray import cluster
from shadowprice.hosts.ray.cluster import PATIENCE_S, ClusterNode, RayNodes
from shadowprice.hosts.ray.nodes import Member


class ActorDiedError(Exception):
    """What Ray says of an actor that was killed."""


class SlowCalls:
    """Makes calls at once, but for those that Ray is too slow for."""

    def __init__(self) -> None:
        self.slow: tuple[str, ...] = ()
        self.made: list[str] = []

    def call(self, what: str, action: Callable[[], Any], timeout_s: float) -> Any:
        if what.startswith(self.slow):
            raise HostError(f"hosts ray: the cluster did not {what} within {timeout_s:g} s")
        self.made.append(what)
        return action()


class Claims:
    """Actors that have died, until they are started anew."""

    def __init__(self, *_: object) -> None:
        self.started = 0

    def stand(self, groups: list[str]) -> bool:
        return True

    def agent(self, node_id: str) -> Any:
        self.started += 1
        return actor(f"agent {self.started}", [])

    def ask(self, questions: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        return questions


def actor(name: str, answer: Any) -> Any:
    """An actor whose methods answer the same."""
    method = SimpleNamespace(remote=lambda *_: answer)
    return SimpleNamespace(name=name, start=method, hold=method, sweep=method)


@pytest.fixture
def nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Nodes of a run with one node, whose actor is dead, and a clock that stands still."""
    clock = SimpleNamespace(now_s=100.0)
    row = {
        **{"Alive": True, "NodeID": "id", "NodeName": "n0", "NodeManagerAddress": "a"},
        **{"NodeManagerHostname": "a", "Resources": {"CPU": 2.0, "memory": 1e9}},
    }
    exceptions = SimpleNamespace(ActorDiedError=ActorDiedError)
    ray = SimpleNamespace(nodes=lambda: [row], exceptions=exceptions)
    monkeypatch.setattr(cluster, "time", SimpleNamespace(monotonic=lambda: clock.now_s))
    monkeypatch.setattr(cluster, "import_ray", lambda: ray)
    monkeypatch.setattr(cluster, "SlotClaims", Claims)
    monkeypatch.setattr(cluster, "RayThread", SlowCalls)
    found = RayNodes(SlowCalls(), tmp_path, "run")  # type: ignore[arg-type]
    member = Member("n0", "id", "a", 2, "cpu", 2.0, 1.0)
    assert found._members(fresh=True) == (member,)
    found._nodes["n0"] = ClusterNode(member, (), actor("first", ActorDiedError()), clock.now_s)
    return SimpleNamespace(ray=found, calls=found._calls, clock=clock, node=found._nodes["n0"])


def test_an_actor_that_is_slow_to_start_is_started_at_a_later_sign_of_life(nodes: Any) -> None:
    for slow in ("start an actor", "hold leases", "list its slots"):
        nodes.calls.slow = (slow,)
        nodes.ray.beat({})
        assert nodes.node.agent.name == "first"
        assert not nodes.node.lost
    nodes.calls.slow = ()
    nodes.ray.beat({})
    assert nodes.node.agent.name.startswith("agent")
    assert nodes.calls.made[-1] == "hold leases"  # what it gives back when no driver comes


def test_a_cluster_that_does_nothing_for_a_minute_is_given_up(nodes: Any) -> None:
    nodes.calls.slow = ("",)
    for nodes.clock.now_s in (100.0, 130.0, 100.0 + PATIENCE_S):
        nodes.ray.beat({})
        nodes.ray.send("sweep", {"n0": ["lease"]})
    nodes.clock.now_s += 1.0
    with pytest.raises(HostError, match="did not start leases"):
        nodes.ray.beat({})


def test_a_minute_counts_from_the_last_success(nodes: Any) -> None:
    nodes.calls.slow = ("",)
    nodes.ray.beat({})
    nodes.calls.slow = ()
    nodes.clock.now_s += PATIENCE_S - 1.0
    nodes.ray.beat({})
    nodes.calls.slow = ("",)
    nodes.clock.now_s += 2.0
    nodes.ray.beat({})  # slow again, but not for long
