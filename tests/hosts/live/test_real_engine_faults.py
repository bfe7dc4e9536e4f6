"""Faults at awkward moments: what one turn has at once, what is left over, what is not there any more."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shadowprice.errors import HostError, InputError, PolicyError
from shadowprice.hosts.absent import LAST_S
from shadowprice.hosts.live.driver import _wind_down
from shadowprice.hosts.live.ledger import RunLedger
from shadowprice.hosts.live.real_hosts import RealHosts
from shadowprice.hosts.live.run import RealRun
from shadowprice.hosts.live.settings import Settings
from shadowprice.hosts.live.state_directory import open_ledger
from shadowprice.hosts.log.execution_log import verify_ledger
from shadowprice.hosts.protocol import DiscoveredNode, LeaseKey
from shadowprice.solvers.policy import Decision
from support.fake_host import two_nodes
from support.fake_run import LIMITS, FakeRun, KilledDriver, events, log
from support.in_memory_runs import job


class Script:
    """A policy that decides by a function."""

    knows, preemptive, name = frozenset[Any](), True, "script"

    def __init__(self, decide: Callable[[Any, Any], None]) -> None:
        self._decide = decide

    def decide(self, state: Any) -> Any:
        decision = Decision(state)
        self._decide(state, decision)
        return decision


def naps(run: FakeRun) -> list[float]:
    """What the driver asked to sleep [s], filled as it runs."""
    asked: list[float] = []
    sleep = run.clock.sleep
    run.clock.sleep = lambda seconds: (asked.append(seconds), sleep(seconds))[1]  # type: ignore[method-assign,func-returns-value]
    return asked


def test_after_a_preemption_the_driver_sleeps_as_long_as_before(tmp_path: Path) -> None:
    jobs = [job("a", 300, 2), job("b", 100, 2, arrival_s=6.0)]
    run = FakeRun(tmp_path / "run", jobs, "srtf", nodes=two_nodes()[:1])
    asked = naps(run)
    ledger = run.execute()
    assert any(row["data"]["reason"] == "stopped" for row in events(ledger, "released"))
    assert sum(seconds < 0.01 for seconds in asked) <= 2, len(asked)


def test_a_back_off_that_is_over_does_not_keep_the_driver_awake_until_the_round_ends(
    tmp_path: Path,
) -> None:
    run = FakeRun(
        tmp_path / "run",
        [job("a", 100)],
        "fifo",
        round_s=32.0,
        faults=[(3.0, lambda run: run.host.crash(LeaseKey("a", 1)))],
    )
    asked = naps(run)
    run.execute()
    assert sum(seconds < 0.01 for seconds in asked) <= 2


def test_a_policy_that_never_starts_a_preempted_job_again_is_told_so(tmp_path: Path) -> None:
    def once(state: Any, decision: Any) -> None:
        if state.now_s < 4.0:
            decision.start_all()
            decision.wake_at(8.0)
        for row in list(state.running):
            if state.now_s >= 8.0:
                decision.stop(row)

    run = FakeRun(tmp_path / "run", [job("a", 900)], Script(once))
    with pytest.raises(PolicyError, match="leaves 1 jobs waiting for ever"):
        run.execute()


def test_a_lease_on_a_node_that_is_back_is_stopped(tmp_path: Path) -> None:
    jobs = [job("a", 2000)]
    run = FakeRun(
        tmp_path / "run",
        jobs,
        "fifo",
        faults=[
            (5.0, lambda run: run.host.down.add(run.host.starts[0][1].node)),
            (10.0, lambda run: run.host.down.clear()),
        ],
    )
    ledger = run.execute()
    back_s = events(ledger, "node-back")[0]["time_s"]
    first = events(ledger, "released")[0]
    assert first["epoch"] == 1
    assert first["time_s"] < back_s + 10.0, log(ledger)
    assert run.host.processes[LeaseKey("a", 1)].stop_at_s < back_s + 5.0
    verify_ledger(run.state / "run.db")


def test_a_driver_that_resumes_stops_what_was_written_off_too(tmp_path: Path) -> None:
    run = FakeRun(
        tmp_path / "run",
        [job("a", 2000)],
        "fifo",
        kill_at_s=[10.0],
        faults=[
            (5.0, lambda run: run.host.down.add(run.host.starts[0][1].node)),
            (10.0, lambda run: run.host.down.clear()),
        ],
    )
    run.execute()
    assert run.drivers == 2
    assert run.host.processes[LeaseKey("a", 1)].stop_at_s < 20.0


def test_a_lease_that_was_written_off_says_nothing_of_its_job(tmp_path: Path) -> None:
    def back(run: FakeRun) -> None:
        run.host.down.clear()
        run.host.processes[LeaseKey("a", 1)].deaf = run.host.processes[LeaseKey("a", 1)].hangs = (
            True
        )

    run = FakeRun(
        tmp_path / "run",
        [job("a", 200), job("b", 900)],
        "fifo",
        round_s=8.0,
        faults=[
            (5.0, lambda run: run.host.down.add(run.host.starts[0][1].node)),
            (60.0, back),
        ],
    )
    ledger = run.execute()
    found = {row["name"]: row["step"] for row in ledger.jobs()}
    assert found == {"a": 200, "b": 900}, log(ledger)


def test_both_leases_of_a_job_end_in_one_turn(tmp_path: Path) -> None:
    def crash_both(run: FakeRun) -> None:
        run.host.down.clear()
        for epoch in (1, 2):
            run.host.crash(LeaseKey("a", epoch))
        # The one that counts had committed.
        folder = run.state / "jobs" / "a" / "checkpoints"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "LATEST").write_text("step-000000000060.epoch-2\n")
        run.host.jobs["a"].committed = 60

    run = FakeRun(
        tmp_path / "run",
        [job("a", 500)],
        "fifo",
        round_s=8.0,
        faults=[
            (5.0, lambda run: run.host.down.add(run.host.starts[0][1].node)),
            (26.0, crash_both),
        ],
    )
    ledger = run.execute()
    grants = events(ledger, "granted")
    assert [row["data"]["from_step"] for row in grants] == [0, 0, 60], log(ledger)
    verify_ledger(run.state / "run.db")


def test_a_device_that_is_gone_when_a_run_is_resumed_is_quarantined(tmp_path: Path) -> None:
    jobs = [job(f"j{k}", 150, 1, arrival_s=2.0 * k) for k in range(8)]
    run = FakeRun(tmp_path / "run", jobs, "fifo", kill_at_s=[14.0, 30.0])
    whole = run.nodes
    with pytest.raises(KilledDriver):
        run.drive()
    granted = run.host.starts[0][1].devices[0]
    assert granted.uuid == "n1/0" or granted.uuid == "n0/0"
    run.host.nodes = (two_nodes(1)[0], whole[1])
    before = len(run.host.starts)
    with pytest.raises(KilledDriver):
        run.drive()
    assert all(
        device.uuid != "n0/1" for _, order in run.host.starts[before:] for device in order.devices
    )
    before = len(run.host.starts)
    run.host.nodes = whole
    ledger = run.execute()
    assert set(run.states(ledger).values()) == {"finished"}
    verify_ledger(run.state / "run.db")


@pytest.mark.parametrize("absent", ["device", "node"])
def test_what_is_absent_when_a_run_is_resumed_comes_back(tmp_path: Path, absent: str) -> None:
    jobs = [job("a", 100), job("wide", 50, 2, arrival_s=4.0)]
    run = FakeRun(tmp_path / "run", jobs, "fifo", nodes=two_nodes()[:1], kill_at_s=[4.0])
    (whole,) = run.nodes
    other = replace(
        whole,
        name="n9",
        devices=tuple(replace(d, node="n9", uuid="n9/0") for d in whole.devices[:1]),
    )
    if absent == "node":
        run.nodes = run.host.nodes = (whole, other)
        left: tuple[DiscoveredNode, ...] = (other,)
    else:
        left = (replace(whole, devices=whole.devices[:1]),)
    with pytest.raises(KilledDriver):
        run.drive()
    run.host.nodes = left
    back_s = run.clock.time_s + 60.0

    def back(run: FakeRun) -> None:
        run.host.nodes = run.nodes

    run.faults.append((back_s, back))
    ledger = run.execute()
    assert run.states(ledger) == {"a": "finished", "wide": "finished"}, log(ledger)
    grant = next(row for row in events(ledger, "granted") if row["job"] == "wide")
    assert back_s < grant["time_s"] < back_s + LAST_S + LIMITS.poll_s + run.round_s
    asked = run.host.asked_again
    assert 5 <= asked <= 8, "after 1, 2, 4 ... 30 s, and no more when all are there"
    verify_ledger(run.state / "run.db")


def test_a_driver_that_waits_for_word_of_what_is_absent_was_not_stopped(tmp_path: Path) -> None:
    run = FakeRun(tmp_path / "run", [job("a", 300)], "fifo", kill_at_s=[4.0])
    with pytest.raises(KilledDriver):
        run.drive()
    run.host.nodes = run.nodes[:1]
    discover = run.host.discover

    def slowly() -> tuple[DiscoveredNode, ...]:
        run.clock.time_s += 4.0
        return discover()

    run.host.discover = slowly  # type: ignore[method-assign]
    ledger = run.execute()
    assert run.host.asked_again >= 2
    assert not [row for row in events(ledger, "note") if "gap_s" in row["data"]]
    ledger.close()


def test_who_went_back_to_an_earlier_checkpoint_and_lost_its_report(tmp_path: Path) -> None:
    """What it committed says so alone, as where supervisor and driver are killed and the report is torn."""
    jobs = [job("long", 400), job("short", 20, arrival_s=4.0)]
    run = FakeRun(tmp_path / "run", jobs, "srtf", nodes=two_nodes(1)[:1])
    lost: list[LeaseKey] = []
    seen = run.host._seen

    def without_report(key: LeaseKey) -> Any:
        return replace(seen(key), report={}) if key in lost else seen(key)

    def tear(run: FakeRun) -> None:
        (key,) = run.host.running()
        assert (key.job, key.epoch) == ("long", 2)
        run.host.crash(key)
        run.host.jobs["long"].committed = 7
        checkpoints = run.state / "jobs" / "long" / "checkpoints"
        (checkpoints / "LATEST").write_text("step-000000000007.epoch-2\n")
        lost.append(key)

    run.host._seen = without_report  # type: ignore[method-assign]
    run.faults.append((20.0, tear))
    ledger = run.execute()
    assert run.states(ledger) == {"long": "finished", "short": "finished"}
    (told,) = events(ledger, "damaged")
    assert (told["job"], told["epoch"], told["data"]) == ("long", 2, {"step": 7})
    verify_ledger(run.state / "run.db")


def test_a_run_whose_jobs_are_over_does_not_wait_for_a_lost_node(tmp_path: Path) -> None:
    run = FakeRun(
        tmp_path / "run",
        [job("a", 200)],
        "fifo",
        faults=[(5.0, lambda run: run.host.down.add(run.host.starts[0][1].node))],
    )
    ledger = run.execute()
    assert run.states(ledger) == {"a": "finished"}
    assert ledger.last_s() < 120.0
    verify_ledger(run.state / "run.db")


def test_a_policy_that_wakes_does_not_hide_that_nothing_can_run(tmp_path: Path) -> None:
    def wake(state: Any, decision: Any) -> None:
        decision.start_all()
        decision.wake_at(state.now_s + 8.0)

    run = FakeRun(
        tmp_path / "run",
        [job("a", 400)],
        Script(wake),
        nodes=two_nodes(1)[:1],
        faults=[(5.0, lambda run: run.host.down.add("n0"))],
    )
    with pytest.raises(HostError, match="1 jobs wait for n0 since 600 s"):
        run.execute()


def test_a_job_that_cannot_join_is_not_tried_without_pause(tmp_path: Path) -> None:
    def cling(run: FakeRun) -> None:
        process = run.host.processes[LeaseKey("b", 1)]
        process.hangs, stop = True, run.host.stop
        run.host.stop = lambda keys, *rest: stop(  # type: ignore[method-assign]
            [key for key in keys if key != LeaseKey("b", 1)], *rest
        )

    def join(state: Any, decision: Any) -> None:
        for row in list(state.waiting):
            alone = [other for other in state.running if decision.partner_of(other) is None]
            if not (alone and decision.join(row, alone[0])):
                decision.start(row)

    jobs = [job("a", 400), job("b", 400, arrival_s=1.0), job("c", 100, arrival_s=3.0)]
    run = FakeRun(
        tmp_path / "run",
        jobs,
        Script(join),
        round_s=0.0,
        share=0.5,
        nodes=two_nodes(1)[:1],
        faults=[(4.0, cling)],
    )
    with pytest.raises(HostError, match="quarantine"):
        run.execute()
    ledger = RunLedger.open(run.state / "run.db", readonly=True)
    joins = [row for row in events(ledger, "decided") if row["data"]["starts"]]
    assert len(joins) < 200, len(joins)
    assert run.states(ledger)["a"] == "finished"


def test_a_checkpoint_folder_that_cannot_be_copied_fails_the_job_only(tmp_path: Path) -> None:
    jobs = [job("bad", 900, command=["x", "{checkpoint_dir}"]), job("good", 300)]
    run = FakeRun(tmp_path / "run", jobs, "fifo", kill_at_s=[9.0, 20.0])
    state = run.state

    def spoil(run: FakeRun) -> None:
        place = state / "jobs" / "bad" / "plain" / "e1"
        os.mkfifo(place / "pipe")
        (place.parent / "ADOPTED").write_text("e1\n")
        run.host.crash(LeaseKey("bad", 1))

    run.faults = [(5.0, spoil)]
    ledger = run.execute()
    assert run.states(ledger) == {"bad": "failed", "good": "finished"}, log(ledger)
    assert "pipe" in {row["name"]: row["why"] for row in ledger.jobs()}["bad"]
    verify_ledger(state / "run.db")


def test_the_end_of_a_driver_leaves_finished_jobs_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[RealRun] = []

    def noted(run: RealRun) -> RealHosts:
        made.append(run)
        return RealHosts(run)

    monkeypatch.setattr("shadowprice.hosts.live.engine.RealHosts", noted)
    run = FakeRun(
        tmp_path / "run",
        [job("a", 200), job("b", 900)],
        "fifo",
        kill_at_s=[40.0],
        faults=[(5.0, lambda run: run.host.down.add("n0"))],
    )
    wind_down = lambda _: _wind_down(made[-1])  # noqa: E731
    run.faults.append((39.0, wind_down))
    with pytest.raises(KilledDriver):
        run.drive()
    ledger = RunLedger.open(run.state / "run.db", readonly=True)
    assert run.states(ledger)["a"] == "finished", log(ledger)


def test_a_ledger_that_was_not_even_made_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KilledDriver

    for name in ("_settle", "set"):
        with monkeypatch.context() as patch:
            patch.setattr(RunLedger, name, killed)
            with pytest.raises(KilledDriver):
                open_ledger(tmp_path, {"policy": "fifo"})
    for suffix in ("", "-journal"):
        (tmp_path / f"run.db.new{suffix}").write_text("torn")
    ledger, resumed = open_ledger(tmp_path, {"policy": "fifo"})
    assert not resumed
    assert ledger.value("policy") == "fifo"
    assert (tmp_path / "run.db").stat().st_mode & 0o777 == 0o600


def test_leases_are_renewed_while_others_are_slow_to_start(tmp_path: Path) -> None:
    jobs = [job(f"j{k}", 300, arrival_s=0.0 if k < 8 else 8.0) for k in range(16)]
    run = FakeRun(tmp_path / "run", jobs, "fifo", nodes=two_nodes(8))
    renewed: list[float] = []
    start = run.host.start

    def slow(orders: Any) -> None:
        run.clock.sleep(2.0)
        start(orders)

    run.host.start = slow  # type: ignore[method-assign]
    run.host.renew = lambda keys: renewed.append(run.clock.now_s())  # type: ignore[method-assign]
    run.execute()
    assert max(b - a for a, b in itertools.pairwise(renewed)) <= 4.0


def test_time_after_an_end_is_no_service(tmp_path: Path) -> None:
    attained: list[float] = []

    def note(state: Any, decision: Any) -> None:
        decision.start_all()
        attained.extend(state.columns(state.finished).attained_s.tolist())

    run = FakeRun(tmp_path / "run", [job("a", 100)], Script(note), round_s=32.0)
    run.execute()
    assert attained == [pytest.approx(10.0, abs=0.6)]


def test_a_job_that_waited_and_was_cancelled_had_no_service(tmp_path: Path) -> None:
    attained: dict[int, float] = {}

    def note(state: Any, decision: Any) -> None:
        decision.start_all()
        attained_s = state.columns(state.finished).attained_s.tolist()
        attained.update(zip(state.finished, attained_s, strict=True))

    def cancel(run: FakeRun) -> None:
        ledger = RunLedger.open(run.state / "run.db")
        ledger.update_job("b", cancel=1)
        ledger.close()

    run = FakeRun(
        tmp_path / "run",
        [job("a", 400), job("b", 400)],
        Script(note),
        nodes=two_nodes(1)[:1],
        faults=[(20.0, cancel)],
    )
    run.execute()
    assert min(attained.values()) == 0.0


def test_time_goes_on_from_whatever_was_written_down_last(tmp_path: Path) -> None:
    ledger = RunLedger.create(tmp_path / "run.db")
    ledger.event(3.0, "note")
    assert ledger.last_s() == 3.0
    ledger.sample(
        time_s=9.0, job="a", epoch=1, step=1, rate=None, co_runner="", gpu_type="g", gpus=1, nodes=1
    )
    assert ledger.last_s() == 9.0
    ledger.answer("await", 12.0)
    ledger.answer("events", {})
    assert ledger.last_s() == 12.0
    ledger.answer("await", math.inf)
    assert ledger.last_s() == 12.0


def test_a_start_that_is_late_in_its_round_has_its_time_to_start(tmp_path: Path) -> None:
    jobs = [job("a", 900), job("b", 100, arrival_s=5.0)]
    run = FakeRun(tmp_path / "run", jobs, "fifo", round_s=32.0, kill_at_s=[6.0])
    with pytest.raises(KilledDriver):
        run.drive()
    run.clock.time_s = 62.0
    run.host.start_s = 2.0
    ledger = run.execute()
    assert LIMITS.start_s < 62.0 - 32.0
    assert not events(ledger, "failed"), log(ledger)


def test_a_lease_that_never_began_is_not_said_to_have_run(tmp_path: Path) -> None:
    run = FakeRun(
        tmp_path / "run",
        [job("a", 100)],
        "fifo",
        nodes=two_nodes()[:1],
        faults=[
            (0.0, lambda run: run.host.down.add("n0")),
            (3.0, lambda run: run.host.down.clear()),
        ],
    )
    ledger = run.execute()
    granted = [row["epoch"] for row in events(ledger, "granted")]
    assert len(granted) > 1
    assert [row["epoch"] for row in events(ledger, "running")] == granted[-1:], log(ledger)


def test_a_run_goes_on_when_the_disk_is_no_longer_full(tmp_path: Path) -> None:
    full: list[bool] = []

    def fill(run: FakeRun) -> None:
        full.append(True)

    run = FakeRun(
        tmp_path / "run", [job(f"j{k}", 300) for k in range(6)], "las2d", faults=[(9.0, fill)]
    )
    watch = run._watch_writes

    def watched(ledger: RunLedger) -> None:
        event = ledger.event

        def write(*about: Any, **data: Any) -> None:
            if full:
                pages = ledger._db.execute("PRAGMA page_count").fetchone()[0]
                ledger._db.execute(f"PRAGMA max_page_count = {pages}")
                for _ in range(100):
                    event(0.0, "note", text="x" * 4096)
            event(*about, **data)

        ledger.event = write  # type: ignore[method-assign]
        watch(ledger)

    run._watch_writes = watched  # type: ignore[method-assign]
    with pytest.raises(HostError, match=r"run.db: cannot be written: .*full"):
        run.drive()
    full.clear()
    ledger = run.execute()
    assert set(run.states(ledger).values()) == {"finished"}
    verify_ledger(run.state / "run.db")


def test_jobs_that_share_a_device_listen_at_different_ports(tmp_path: Path) -> None:
    def join(state: Any, decision: Any) -> None:
        if 0 in state.waiting:
            decision.start(0)
            decision.join(1, 0)

    jobs = [job("a", 200), job("b", 200)]
    run = FakeRun(tmp_path / "run", jobs, Script(join), nodes=two_nodes(1)[:1], share=0.9)
    run.execute()
    ports = {order.key.job: order.env["MASTER_PORT"] for _, order in run.host.starts}
    assert len(run.host.starts) == 2
    assert ports["a"] != ports["b"]


def test_another_table_of_rates_does_not_resume_a_run(tmp_path: Path) -> None:
    table = tmp_path / "rates.json"
    table.write_text("{}")
    made = Settings(tmp_path / "jobs.yaml", "fifo", "local", tmp_path / "state", throughputs=table)
    before = made.identity("0")
    table.write_text('{"more": 1}')
    assert made.identity("0") != before
    with pytest.raises(InputError, match=r"rates\.json"):
        replace(made, throughputs=tmp_path / "none" / "rates.json").identity("0")


def test_leases_are_renewed_while_a_long_record_is_replayed(tmp_path: Path) -> None:
    class SlowToDecide:
        name, knows, preemptive = "slow", frozenset[Any](), False
        clock: Any = None

        def decide(self, state: Any) -> Any:
            if self.clock is not None:
                self.clock.time_s += 3.0  # longer than a quarter of the TTL, which is 8 s
            return Decision(state).start_all()

    policy = SlowToDecide()
    jobs = [job("long", 3000)] + [job(f"j{k}", 10, arrival_s=4.0 * k) for k in range(8)]
    run = FakeRun(tmp_path / "run", jobs, policy, kill_at_s=[40.0])  # type: ignore[arg-type]
    with pytest.raises(KilledDriver):
        run.drive()
    renewed: list[tuple[float, set[str]]] = []
    renew = run.host.renew
    run.host.renew = lambda keys: (  # type: ignore[method-assign]
        renewed.append((run.clock.time_s, {key.job for key in keys})),
        renew(keys),
    )[1]
    policy.clock, began_s = run.clock, run.clock.time_s
    run.drive().close()
    times = [at_s for at_s, names in renewed if "long" in names and at_s < began_s + 24.0]
    assert len(times) > 4
    assert max(b - a for a, b in zip([began_s, *times[:-1]], times, strict=True)) <= 3.0
    assert len([1 for _, order in run.host.starts if order.key.job == "long"]) == 1


def test_a_lease_is_seen_to_run_once_however_many_drivers_look(tmp_path: Path) -> None:
    run = FakeRun(tmp_path / "run", [job("a", 400), job("b", 400)], kill_at_s=[5.0, 9.0, 20.0])
    ledger = run.execute()
    leases = [(row["job"], row["epoch"]) for row in events(ledger, "running")]
    assert sorted(leases) == [("a", 1), ("b", 1)]
    ledger.close()
