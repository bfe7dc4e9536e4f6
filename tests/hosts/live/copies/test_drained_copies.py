"""Drained nodes and health checks in runs of copies: others go on, and nothing is counted against a job."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shadowprice.hosts.live.devices import Drains
from shadowprice.hosts.live.ledger import RunLedger
from shadowprice.hosts.log.execution_log import verify_ledger
from shadowprice.hosts.protocol import Exit
from support.fake_copies import CopyHost, CopyRun
from support.fake_run import FakeRun, events, log

pytestmark = pytest.mark.usefixtures("no_power_cuts")


def job(name: str, iterations: int = 120) -> dict[str, Any]:
    return {"name": name, "iterations": iterations, "gpus": 1, "throughput": 10.0}


def wish(act: Callable[[Drains], None]) -> Callable[[FakeRun], None]:
    def change(run: FakeRun) -> None:
        ledger = RunLedger.open(run.state / "run.db")
        with ledger.transaction():
            act(Drains(ledger))
        ledger.close()

    return change


def nodes_after(ledger: RunLedger, time_s: float) -> set[str]:
    return {
        node
        for event in events(ledger, "granted")
        if event["time_s"] > time_s
        for node in event["data"]["node_of"].values()
    }


@settings(max_examples=3, deadline=None)
@given(
    drained_s=st.integers(1, 20),
    lasts_s=st.integers(5, 20),
    now=st.booleans(),
    one=st.booleans(),
    kills=st.lists(st.integers(-30, 30).filter(bool), max_size=2),
)
def test_nobody_gets_a_drained_node_and_all_jobs_finish(
    tmp_path_factory: pytest.TempPathFactory,
    drained_s: int,
    lasts_s: int,
    now: bool,
    one: bool,
    kills: list[int],
) -> None:
    """Also where one of its devices is drained; drivers are killed meanwhile."""
    run = CopyRun(tmp_path_factory.mktemp("drained") / "r", [job("a", 300), job("b")])
    uuids = [device.uuid for device in run.nodes[1].devices][: 1 if one else 2]
    run.faults = [
        (float(drained_s), wish(lambda drains: drains.drain(uuids, "fan", now=now))),
        (float(drained_s + lasts_s), wish(lambda drains: drains.undrain(uuids))),
    ]
    run.kill_at_write = sorted(kills, key=abs)
    ledger = run.execute()
    assert set(run.states(ledger).values()) == {"finished"}, log(ledger)
    verify_ledger(ledger.path)
    ledger.close()


def test_copies_leave_at_once_and_what_they_did_counts(tmp_path: Path) -> None:
    run = CopyRun(tmp_path / "r", [job("a", 600)])
    uuids = [device.uuid for device in run.nodes[1].devices]
    run.faults = [(9.0, wish(lambda drains: drains.drain(uuids, "fan", now=True)))]
    ledger = run.execute()
    assert nodes_after(ledger, 0.0) == {"n0", "n1"}
    assert nodes_after(ledger, 12.0) == {"n0"}
    asked = [e["data"]["why"] for e in events(ledger, "stop-asked")]
    assert "its device is drained: fan" in asked
    assert sum(e["data"]["lost_steps"] for e in events(ledger, "released")) == 0
    verify_ledger(ledger.path)
    ledger.close()


class LameHost(CopyHost):
    """The health check of node n1 fails."""

    def start(self, orders: Any) -> None:
        before = set(self.processes)
        super().start(orders)
        for key in set(self.processes) - before:
            if self.processes[key].order.node == "n1":
                self.processes[key].exit = Exit(127, "unhealthy", detail="ECC")


def test_a_node_that_is_not_healthy_is_drained_and_no_failure_is_counted(tmp_path: Path) -> None:
    run = CopyRun(tmp_path / "r", [job("a", 300), job("b")])
    run.host = LameHost(run.clock, run.nodes, run.host.jobs, run.state)
    run.host.on_poll = run._tick
    ledger = run.execute()
    assert set(run.states(ledger).values()) == {"finished"}, log(ledger)
    assert not events(ledger, "failed")
    drained = {e["data"]["device"]: e["data"]["why"] for e in events(ledger, "quarantined")}
    assert drained == {device.uuid: "drained: ECC" for device in run.nodes[1].devices}
    assert nodes_after(ledger, 8.0) == {"n0"}
    verify_ledger(ledger.path)
    ledger.close()
