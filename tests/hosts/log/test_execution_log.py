"""The verifier of execution logs: what a correct driver writes passes, and whatever is changed does not."""

from __future__ import annotations

import ast
import copy
import json
import random
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from shadowprice.hosts.live.ledger import RunLedger
from shadowprice.hosts.log import execution_log, log_mappings
from shadowprice.hosts.log import execution_log as execution_ledger
from shadowprice.hosts.log.execution_log import HANDLERS, LogRejected, verify_ledger, verify_log
from shadowprice.proofs import graph_time
from support.execution_logs import NODE_OF, NODES, ROUND_STEPS, Event, Miniature

Mutation = Callable[[list[Event], random.Random], None]
# Seeds: a run draws hundreds of numbers, a hundred times slower from Hypothesis itself.
RNG = st.builds(random.Random, st.integers(0, 2**64 - 1))


def check(run: Miniature, events: list[Event], *, ended: bool = True) -> dict[str, int]:
    loss = dict.fromkeys(run.gpus, ROUND_STEPS)
    return verify_log(
        events, NODES, gpus=run.gpus, iterations=run.iterations, allowed_loss=loss, ended=ended
    )


@given(RNG, st.integers(0, 25))
def test_what_a_correct_driver_writes_passes(rng: random.Random, turns: int) -> None:
    run = Miniature(rng)
    events = run.whole(turns)
    counts = check(run, events)
    assert counts["events"] == len(events)
    assert counts["leases"] == sum(event["kind"] == "granted" for event in events)
    # So does every beginning of it, of a run that is not over; and less may be known of it.
    check(run, events[: rng.randint(0, len(events))], ended=False)
    verify_log(events, NODES, ended=True)


def test_miniatures_write_everything_there_is() -> None:
    kinds = {event["kind"] for k in range(60) for event in Miniature(random.Random(k)).whole(20)}
    assert kinds == HANDLERS.keys()
    shared = [
        e
        for k in range(60)
        for e in Miniature(random.Random(k)).whole(20)
        if e["data"].get("partner")
    ]
    assert len(shared) > 20


def some(events: list[Event], rng: random.Random, *kinds: str) -> int:
    """Position of an event of such a kind."""
    found = [k for k, event in enumerate(events) if event["kind"] in kinds]
    assume(found)
    return rng.choice(found)


def lease_of(events: list[Event], k: int) -> tuple[str, int]:
    return events[k]["job"], events[k]["epoch"]


def drop(*kinds: str) -> Mutation:
    def mutate(events: list[Event], rng: random.Random) -> None:
        del events[some(events, rng, *kinds)]

    return mutate


def repeat(*kinds: str) -> Mutation:
    def mutate(events: list[Event], rng: random.Random) -> None:
        k = some(events, rng, *kinds)
        events.insert(k + 1, copy.deepcopy(events[k]))

    return mutate


def change(kind: str, key: str, how: Callable[[Any], Any]) -> Mutation:
    def mutate(events: list[Event], rng: random.Random) -> None:
        event = events[some(events, rng, kind)]
        event["data"][key] = how(event["data"][key])

    return mutate


def lower_epoch(events: list[Event], rng: random.Random) -> None:
    second = [
        k
        for k, e in enumerate(events)
        if e["kind"] == "granted" and e["epoch"] > 2 and e["data"]["from_step"]
    ]
    earlier = [
        k
        for k in second
        if any(e["kind"] == "granted" and e["job"] == events[k]["job"] for e in events[:k])
    ]
    assume(earlier)
    k = rng.choice(earlier)
    job, epoch = lease_of(events, k)
    before = max(e["epoch"] for e in events[:k] if e["kind"] == "granted" and e["job"] == job)
    for event in events[k:]:
        if (event["job"], event["epoch"]) == (job, epoch):
            event["epoch"] = before - rng.randint(0, 1)


def swap_device(events: list[Event], rng: random.Random) -> None:
    """The lease gets a device that another holds, and gives it back."""
    found = []
    held: dict[str, set[str]] = {}
    for k, event in enumerate(events):
        job = f"{event['job']} {event['epoch']}"
        if event["kind"] == "granted":
            others = set().union(*held.values()) - set(event["data"]["devices"])
            if others and event["data"]["partner"] is None:
                found.append((k, sorted(others)[0]))
            held[job] = set(event["data"]["devices"])
        elif event["kind"] == "released":
            held.pop(job, None)
    assume(found)
    k, device = rng.choice(found)
    key = lease_of(events, k)
    own = events[k]["data"]["devices"][0]
    for event in events[k:]:
        data = event["data"]
        if (event["job"], event["epoch"]) == key:
            if "devices" in data:
                data["devices"] = [device if d == own else d for d in data["devices"]]
            if data.get("device") == own:
                data["device"] = device
            if "node_of" in data:
                data["node_of"] = {d: NODE_OF[d] for d in data["devices"]}
                data["ranks"] = len(set(data["node_of"].values()))


def forget_partner(events: list[Event], rng: random.Random) -> None:
    found = [k for k, e in enumerate(events) if e["kind"] == "granted" and e["data"]["partner"]]
    assume(found)
    events[rng.choice(found)]["data"]["partner"] = None


def unnamed_by_partner(events: list[Event], rng: random.Random) -> None:
    """The one that was there first never names who joined it; seen at the next decision."""
    found = [
        k
        for k, e in enumerate(events)
        if e["kind"] == "partner"
        and e["data"]["partner"]
        and (
            rest := [
                x["kind"]
                for x in events[k + 1 :]
                if x["kind"] in ("decided", "released", "quarantined")
            ]
        )
        and rest[0] == "decided"
    ]
    assume(found)
    del events[rng.choice(found)]


def grant_before_release(events: list[Event], rng: random.Random) -> None:
    """Devices are given out while an old process may still hold them."""
    found = []
    for k, event in enumerate(events):
        if event["kind"] == "granted" and event["data"]["partner"] is None:
            for j in range(k - 1, -1, -1):
                before = events[j]
                if before["kind"] == "released" and set(before["data"]["devices"]) & set(
                    event["data"]["devices"]
                ):
                    found.append((j, k))
                    break
    assume(found)
    j, k = rng.choice(found)
    grant = events.pop(k)
    events.insert(j, grant)


def grant_after_the_end(events: list[Event], rng: random.Random) -> None:
    k = some(events, rng, "finished", "gave-up", "cancelled")
    job, epoch = lease_of(events, k)
    device = next(iter(NODE_OF))
    data = {
        "devices": [device],
        "node_of": {device: NODE_OF[device]},
        "partner": None,
        "from_step": 0,
        "ranks": 1,
    }
    events.insert(
        k + 1, {**events[k], "kind": "granted", "job": job, "epoch": epoch + 1, "data": data}
    )


def free_an_quarantined(events: list[Event], rng: random.Random) -> None:
    k = some(events, rng, "quarantined")
    events.insert(k + 1, {**copy.deepcopy(events[k]), "kind": "unquarantined"})


def time_goes_back(events: list[Event], rng: random.Random) -> None:
    k = rng.randrange(1, len(events))
    events[k]["time_s"] = events[k - 1]["time_s"] - 1.0


def lost_in_a_decision(events: list[Event], rng: random.Random) -> None:
    found = [k for k, e in enumerate(events) if e["kind"] == "decided" and e["data"]["waiting"]]
    found = [
        k for k in found if set(events[k]["data"]["waiting"]) - set(events[k]["data"]["stops"])
    ]
    assume(found)
    data = events[rng.choice(found)]["data"]
    del data["waiting"][min(set(data["waiting"]) - set(data["stops"]))]


def undecided(events: list[Event], rng: random.Random) -> None:
    found = [k for k, e in enumerate(events) if e["kind"] == "decided" and e["data"]["starts"]]
    assume(found)
    data = events[rng.choice(found)]["data"]
    name = rng.choice(sorted(data["starts"]))
    del data["starts"][name]
    data["waiting"][name] = "waits"


def on_a_lost_node(events: list[Event], rng: random.Random) -> None:
    k = some(events, rng, "granted")
    node = events[k]["data"]["node_of"][events[k]["data"]["devices"][0]]
    events.insert(
        k, {**events[k], "kind": "node-lost", "job": "", "epoch": 0, "data": {"node": node}}
    )


def more(value: int) -> int:
    return value + 1


RULES = [
    line.split("``")[1] for line in str(execution_log.__doc__).splitlines() if line.startswith("``")
]
MUTATIONS: dict[str, tuple[Mutation, set[str]]] = {
    "drop a release": (
        drop("released"),
        {"lease", "double", "quarantine", "progress", "over", "end"},
    ),
    "drop a grant": (drop("granted"), {"lease", "decision"}),
    "drop an arrival": (drop("arrived"), {"arrival"}),
    "drop an end": (drop("finished", "gave-up", "cancelled"), {"decision", "end", "over"}),
    "drop a giving up that is taken back": (drop("retried"), {"arrival", "over", "end"}),
    "drop a failure": (drop("failed"), {"decision", "end"}),
    "drop the last unquarantined": (drop("unquarantined"), {"quarantine"}),
    "drop a decision": (drop("decided"), {"decision"}),
    "drop a node's loss": (drop("node-lost"), {"quarantine"}),
    "repeat a grant": (repeat("granted"), {"decision"}),
    "repeat a release": (repeat("released"), {"lease"}),
    "repeat an end": (repeat("finished", "gave-up", "cancelled"), {"arrival"}),
    "repeat an end of quarantine": (repeat("unquarantined"), {"quarantine"}),
    "lower an epoch": (lower_epoch, {"epoch"}),
    "swap a device": (swap_device, {"double", "quarantine"}),
    "forget a partner": (forget_partner, {"double"}),
    "a partner is not named": (unnamed_by_partner, {"double"}),
    "grant before release": (grant_before_release, set(RULES)),
    "grant after the end": (grant_after_the_end, {"arrival"}),
    "free a quarantined device": (free_an_quarantined, {"quarantine"}),
    "time goes back": (time_goes_back, {"form"}),
    "lost in a decision": (lost_in_a_decision, {"decision"}),
    "undecided": (undecided, {"decision"}),
    "on a lost node": (on_a_lost_node, {"quarantine"}),
    "from a later step": (change("granted", "from_step", more), {"progress"}),
    "committed is less": (
        change("released", "checkpoint_step", lambda n: n - 1),
        {"progress", "loss", "form", "over"},
    ),
    "committed is more": (change("released", "checkpoint_step", more), {"progress", "over"}),
    "a loss is not told": (change("released", "step", more), {"loss"}),
    "a large loss": (change("released", "lost_steps", lambda n: n + ROUND_STEPS + 1), {"loss"}),
    "finished too early": (change("finished", "step", lambda n: n - 1), {"over"}),
    "another device is released": (change("released", "devices", lambda _: ["n9-0"]), {"lease"}),
    "strange device": (change("granted", "devices", lambda d: ["n9-0", *d[1:]]), {"gang"}),
    "smaller gang": (change("granted", "devices", lambda d: d[1:]), {"gang"}),
    "a device twice": (change("granted", "devices", lambda d: [d[0], d[0]]), {"gang"}),
    "other nodes": (change("granted", "node_of", lambda w: dict.fromkeys(w, "n9")), {"gang"}),
    "more ranks": (change("granted", "ranks", more), {"gang"}),
    "a start that resumes nothing": (
        change("driver-started", "resumed", lambda flag: not flag),
        {"driver"},
    ),
    "no reason": (change("failed", "why", lambda _: ""), {"over"}),
    "a number as text": (change("granted", "from_step", str), {"form"}),
    "a negative number": (change("released", "step", lambda n: -1 - n), {"form"}),
}


@pytest.mark.parametrize("name", MUTATIONS)
@settings(
    max_examples=10, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow]
)
@given(RNG, st.integers(8, 25))
def test_every_mutation_is_found(name: str, rng: random.Random, turns: int) -> None:
    mutate, rules = MUTATIONS[name]
    run = Miniature(rng)
    events = copy.deepcopy(run.whole(turns))
    check(run, events)
    mutate(events, rng)
    for seq, event in enumerate(events, 1):
        event["seq"] = seq
    if name in HARMLESS and HARMLESS[name](run, events):
        assume(False)
    with pytest.raises(LogRejected) as caught:
        check(run, events)
    assert caught.value.rule in rules
    assert str(caught.value).startswith(f"event {caught.value.seq}: {caught.value.rule}: ")


def passes(run: Miniature, events: list[Event]) -> bool:
    try:
        check(run, events)
    except LogRejected:
        return False
    return True


HARMLESS: dict[str, Callable[[Miniature, list[Event]], bool]] = {
    # A job that failed is waited for until a decision names it; a decision that started nothing
    # may as well not have been; nobody may have used the devices of a node that was lost.
    name: passes
    for name in (
        "drop a decision",
        "drop a failure",
        "drop a node's loss",
        "drop the last unquarantined",
        "from a later step",
        "committed is more",
        "grant before release",
        "drop a release",
        "lost in a decision",
        "a start that resumes nothing",
    )
}


def test_an_event_that_is_missing_is_found_whatever_it_was() -> None:
    run = Miniature(random.Random(3))
    events = run.whole(15)
    for k in range(len(events) - 1):
        with pytest.raises(LogRejected, match="form"):
            check(run, [*events[:k], *events[k + 1 :]])


def event(kind: str, job: str = "", epoch: int = 0, **data: Any) -> Event:
    return {"time_s": 0.0, "kind": kind, "job": job, "epoch": epoch, "data": data}


def granted(
    job: str, epoch: int, *devices: str, step: int = 0, partner: str | None = None, **more: Any
) -> Event:
    node_of = {device: NODE_OF[device] for device in devices}
    return event(
        "granted",
        job,
        epoch,
        devices=list(devices),
        node_of=node_of,
        ranks=len(set(node_of.values())),
        from_step=step,
        partner=partner,
        **more,
    )


def released(job: str, epoch: int, *devices: str, step: int = 0, **more: Any) -> Event:
    return event(
        "released",
        job,
        epoch,
        devices=list(devices),
        step=step,
        checkpoint_step=step,
        lost_steps=0,
        **more,
    )


def run_of(*events: Event, ended: bool = False) -> dict[str, int]:
    numbered = [
        {**each, "seq": k}
        for k, each in enumerate([event("driver-started", resumed=False), *events], 1)
    ]
    return verify_log(numbered, NODES, ended=ended)


A, B = event("arrived", "a"), event("arrived", "b")


def test_epochs_of_a_job_increase_and_it_has_one_lease_at_a_time() -> None:
    first, back = granted("a", 1, "n0-0"), released("a", 1, "n0-0", step=5)
    assert run_of(A, first, back, granted("a", 2, "n0-0", step=5))["leases"] == 2
    with pytest.raises(LogRejected, match="epoch"):
        run_of(A, first, back, granted("a", 1, "n0-0", step=5))
    with pytest.raises(LogRejected, match="lease"):
        run_of(A, first, granted("a", 2, "n1-0"))


def test_a_lease_holds_the_gang_of_its_job() -> None:
    with pytest.raises(LogRejected, match="gang: a device is there twice"):
        run_of(A, granted("a", 1, "n0-0", "n0-0"))
    numbered = [
        {**each, "seq": k} for k, each in enumerate([event("driver-started", resumed=False), A], 1)
    ]
    for devices, fine in ((["n0-0", "n1-0"], True), (["n0-0"], False)):
        events = [*numbered, {**granted("a", 1, *devices), "seq": 3}]
        if fine:
            verify_log(events, NODES, gpus={"a": 2})
        else:
            with pytest.raises(LogRejected, match="gang: 1 devices for a gang of 2"):
                verify_log(events, NODES, gpus={"a": 2})


def test_two_may_share_and_three_may_not() -> None:
    pair = [
        A,
        B,
        granted("a", 1, "n0-0"),
        granted("b", 1, "n0-0", partner="a"),
        event("partner", "a", 1, partner="b"),
    ]
    decided = event("decided", starts={}, stops=[], waiting={})
    run_of(*pair, decided)
    with pytest.raises(LogRejected, match="double"):
        run_of(*pair, event("arrived", "c"), granted("c", 1, "n0-0", partner="a"))
    with pytest.raises(LogRejected, match="double"):  # only the very same devices
        run_of(A, B, granted("a", 1, "n0-0", "n0-1"), granted("b", 1, "n0-0", partner="a"))
    with pytest.raises(LogRejected, match="does not name"):
        run_of(*pair[:-1], decided)


def test_what_is_written_off_is_not_used_but_its_job_goes_on() -> None:
    lost = [A, granted("a", 1, "n0-0"), event("quarantined", "a", 1, device="n0-0", why="")]
    on = granted("a", 2, "n1-0", step=7)
    run_of(
        *lost, on, released("a", 1, "n0-0", step=7), event("unquarantined", "a", 1, device="n0-0")
    )
    with pytest.raises(LogRejected, match="quarantine"):
        run_of(*lost, B, granted("b", 1, "n0-0"))
    with pytest.raises(LogRejected, match="quarantine"):
        run_of(*lost, event("unquarantined", "a", 1, device="n0-0"))
    with pytest.raises(LogRejected, match="lease"):  # half of a gang is not enough
        run_of(A, granted("a", 1, "n0-0", "n0-1"), lost[2], granted("a", 2, "n1-0"))
    with pytest.raises(LogRejected, match="progress"):  # only once
        run_of(*lost, on, released("a", 2, "n1-0", step=7), granted("a", 3, "n1-0", step=9))


def test_a_device_may_be_quarantined_for_no_job() -> None:
    foreign = event("quarantined", device="n0-0", why="a foreign process")
    with pytest.raises(LogRejected, match="quarantine"):
        run_of(foreign, A, granted("a", 1, "n0-0"))
    run_of(foreign, event("unquarantined", device="n0-0"), A, granted("a", 1, "n0-0"))


@pytest.mark.parametrize(
    ("wrong", "rule"),
    [
        (("quarantined", "", 0, {"device": "n9-0"}), "gang"),
        (("quarantined", "a", 1, {"device": "n1-0"}), "lease"),
        (("quarantined", "a", 2, {"device": "n0-0"}), "lease"),
        (("unquarantined", "", 0, {"device": "n0-0"}), "quarantine"),
        (("node-lost", "", 0, {"node": "n9"}), "gang"),
        (("node-back", "", 0, {"node": "n1"}), "quarantine"),
        (("running", "a", 2, {"after_s": 1.0}), "lease"),
        (("stop-asked", "b", 1, {"why": ""}), "lease"),
        (("partner", "b", 1, {"partner": "a"}), "lease"),
        (("released", "a", 1, {"devices": ["n0-0"]}), "form"),
        (("failed", "b", 1, {"why": "x"}), "arrival"),
        (("gave-up", "a", 1, {"why": ""}), "over"),
        (("cancelled", "a", 1, {}), "over"),
        (("arrived", "a", 0, {}), "arrival"),
        (("arrived", "", 0, {}), "arrival"),
        (("decided", "", 0, {"starts": {"b": []}, "stops": [], "waiting": {}}), "arrival"),
        (("driver-started", "", 0, {"resumed": False}), "driver"),
        (("driver-started", "", 0, {"resumed": 1}), "driver"),
        (("exploded", "", 0, {}), "form"),
    ],
)
def test_what_makes_no_sense_is_refused(
    wrong: tuple[str, str, int, dict[str, object]], rule: str
) -> None:
    kind, job, epoch, data = wrong
    with pytest.raises(LogRejected) as caught:
        run_of(A, granted("a", 1, "n0-0"), event(kind, job, epoch, **data))
    assert (caught.value.seq, caught.value.rule) == (4, rule)


def test_nothing_happens_after_a_driver_has_ended() -> None:
    ended = event("driver-ended")
    run_of(ended, event("note", text=""), event("driver-started", resumed=True), A)
    with pytest.raises(LogRejected, match="driver"):
        run_of(ended, A)


def test_a_run_that_is_over_has_nothing_left() -> None:
    grant, back = granted("a", 1, "n0-0"), released("a", 1, "n0-0", step=5)
    done = event("finished", "a", 1, step=5)
    run_of(A, grant, back, done, ended=True)
    for events in ([A], [A, grant], [A, grant, back]):
        run_of(*events)
        with pytest.raises(LogRejected, match="end"):
            run_of(*events, ended=True)
    with pytest.raises(LogRejected, match="over"):
        run_of(A, grant, done)
    with pytest.raises(LogRejected, match="end: b is not there yet"):
        verify_log([], NODES, gpus={"b": 1}, ended=True)


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"seq": 1},
        {"seq": 1, "kind": "arrived", "job": "a", "epoch": 1, "time_s": 0, "data": None},
    ],
)
def test_malformed_events_are_refused(broken: Event) -> None:
    with pytest.raises(LogRejected, match=r"form|driver"):
        verify_log([broken], NODES)


def ledger(path: Path, run: Miniature, events: list[Event], *, ended: bool = True) -> Path:
    made = RunLedger.create(path)
    made.set("nodes", NODES)
    made.set("ended", ended)
    for position, name in enumerate(run.gpus):
        made.add_job(
            name,
            position=position,
            iterations=run.iterations[name],
            gpus=run.gpus[name],
            arrival_s=0.0,
        )
    with made.transaction():
        for each in events:
            made.event(each["time_s"], each["kind"], each["job"], each["epoch"], **each["data"])
    made.close()
    return path


def test_ledgers_are_checked_from_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Miniature(random.Random(5))
    events = run.whole(10)
    good = ledger(tmp_path / "run.db", run, events)
    assert verify_ledger(good)["events"] == len(events)
    last = max(k for k, each in enumerate(events) if each["kind"] == "finished")
    bad = ledger(tmp_path / "bad.db", run, [*events[:last], *events[last + 1 :]])
    sqlite3.connect(tmp_path / "empty.db").close()

    def call(*arguments: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["execution_ledger", *arguments])
        code = execution_ledger.main()
        return code, "".join(capsys.readouterr())

    code, told = call(str(good))
    assert (code, told[:19]) == (0, "no rule is broken: ")
    code, told = call(str(bad))
    assert code == 1
    assert "rejected: event" in told
    for wrong in ([], [str(tmp_path / "none.db")], [str(tmp_path / "empty.db")]):
        code, told = call(*wrong)
        assert code == 1
        assert "usage: python -m" in told
    command = [sys.executable, "-m", "shadowprice.hosts.log.execution_log", str(good)]
    assert subprocess.run(command, capture_output=True, timeout=60, check=False).returncode == 0


def test_the_verifier_needs_the_standard_library_only() -> None:
    for module in (execution_log, log_mappings, graph_time):
        path = Path(module.__file__)
        tree = ast.parse(path.read_text())
        names = {n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
        names |= {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
        ours = {name for name in names if name.startswith("shadowprice")}
        assert ours <= {
            "shadowprice.hosts.log.execution_log",
            "shadowprice.hosts.log.log_mappings",
            "shadowprice.proofs.graph_time",
        }
        assert {name.split(".")[0] for name in names - ours} <= sys.stdlib_module_names


def test_logs_are_plain_json() -> None:
    json.dumps(Miniature(random.Random(1)).whole(10))
