"""Rules of a queue: what is refused, what is stored, and what becomes of what cannot be read."""

from __future__ import annotations

import json
import math
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shadowprice.errors import InputError
from shadowprice.hosts.live.job_file import Job, entry_of, jobs_of
from shadowprice.hosts.live.queue.job_queue import JobQueue
from shadowprice.hosts.log.execution_log import verify_ledger
from shadowprice.hosts.throughput_files import JOB_PREFIX
from shadowprice.instances.grid import MAX_TIME_S
from shadowprice.instances.workload import MAX_BATCH
from support.fake_host import Job as HostJob
from support.fake_host import two_nodes
from support.fake_queue import FakeQueue
from support.fake_run import FakeRun, log

ENTRY = {"name": "j", "command": ["true"], "iterations": 5, "gpus": 1}


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a run whose first job is over."""
    run = FakeQueue(tmp_path_factory.mktemp("run") / "r", (), plan=[(0.0, ENTRY)])
    run.execute().close()
    return run.state / "run.db"


@pytest.fixture
def queue(ledger: Path, tmp_path: Path) -> Iterator[JobQueue]:
    shutil.copy(ledger, tmp_path)
    queue = JobQueue(tmp_path, lambda ledger: 100.0)
    yield queue
    queue.close()


def add(queue: JobQueue, *jobs: dict[str, Any]) -> list[str]:
    return queue.add({"jobs": [ENTRY | job for job in jobs]}, "jobs.yaml", Path("/"))


def test_a_job_arrives_when_it_is_added_and_its_deadline_counts_from_then(queue: JobQueue) -> None:
    assert add(queue, {"name": "k"}, {"name": "m", "deadline_s": 60}) == ["k", "m"]
    stored = [json.loads(row["job"]) for row in queue.ledger.submissions()[1:]]
    assert [job["arrival_s"] for job in stored] == [100.0, 100.0]
    assert [job.get("deadline_s", math.inf) for job in stored] == [math.inf, 160.0]


@pytest.mark.parametrize(
    ("job", "message"),
    [
        ({"arrival_s": 5}, "arrival_s is 5"),
        ({"gpus": 100}, "100"),
        ({"gpu_types": ["none"]}, "can run on none"),
        ({"wight": 1}, "wight"),
        ({"iterations": 0}, "iterations is 0"),
        ({"directory": "/nowhere"}, "expected a directory that exists"),
        ({"name": "J"}, "job J: its name is that of a job of the run, which is finished"),
    ],
)
def test_of_a_file_with_a_wrong_job_none_is_queued(
    queue: JobQueue, job: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        add(queue, {"name": "a"}, {"name": "k", **job})
    assert len(queue.ledger.submissions()) == 1


def test_more_jobs_than_a_queue_holds_are_refused(
    queue: JobQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shadowprice.hosts.live.queue.job_queue.MOST_WAITING", 2)
    add(queue, {"name": "a"})
    with pytest.raises(InputError, match="1 jobs are queued and 2 more were added"):
        add(queue, {"name": "b"}, {"name": "c"})
    add(queue, {"name": "b"})


def test_who_adds_at_once_is_checked_against_who_was_faster(
    queue: JobQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another adds the same name, and a later arrival, between the checks and the writing."""
    check, other = JobQueue._entry, JobQueue(queue.ledger.path.parent, lambda ledger: 200.0)

    def slow(self: JobQueue, *arguments: Any) -> Any:
        made = check(self, *arguments)
        monkeypatch.setattr(JobQueue, "_entry", check)
        add(other, {"name": "b"})
        return made

    monkeypatch.setattr(JobQueue, "_entry", slow)
    assert add(queue, {"name": "a"}) == ["a"]
    assert [row["arrival_s"] for row in queue.ledger.submissions()[1:]] == [200.0, 200.0]
    monkeypatch.setattr(JobQueue, "_entry", slow)
    with pytest.raises(InputError, match="job b: its name is that of a job"):
        add(queue, {"name": "c"}, {"name": "b"})
    other.close()


def test_variables_are_forgotten_when_a_job_is_over_for_good(queue: JobQueue) -> None:
    secret = {"env": {"TOKEN": "swordfish-9"}}
    names = add(queue, *({"name": name, **secret} for name in "abcd"))
    for name, state in zip(names, ("finished", "cancelled", "failed", "waiting"), strict=True):
        queue.ledger.update_job(name, state=state)
    stored = {row["name"]: row["env"] for row in queue.ledger.submissions()[1:]}
    assert {name for name, env in stored.items() if "swordfish-9" in env} == {"c", "d"}
    assert all("swordfish" not in row["job"] for row in queue.ledger.submissions())


def test_a_run_of_a_job_file_takes_no_further_jobs(tmp_path: Path) -> None:
    run = FakeRun(tmp_path / "r", [{"name": "a", "iterations": 5}])
    run.execute().close()
    with pytest.raises(InputError, match="takes no further jobs, expected one that was begun with"):
        JobQueue(run.state)


# Limits of keys, and what cannot be read.

LONGEST_S = MAX_TIME_S - 100.0
"""Largest deadline of a job that is added at 100 s."""
LIMITS: dict[str, tuple[object, object]] = {
    "name": ("n" * 64, "n" * 65),
    "command": (["x"] * 10_000, ["x"] * 10_001),
    "iterations": (10**9, 10**12),
    "gpus": (2, 3),
    "cpus": (8.0, 8.001),
    "memory_gb": (16.0, 16.001),
    "weight": (1e18, 1.0000001e18),
    "deadline_s": (LONGEST_S, LONGEST_S + 2**-19),
    "done_exit_code": (255, 256),
    "throughput": (1e300, math.inf),
    "model": ("m" * 100_000, f"{JOB_PREFIX}m"),
    "tenant": ("t" * 100_000, "two\nlines"),
    "job_class": ("c" * 100_000, "two\nlines"),
    "gpu_types": (["A100"] * 100, []),
    "env": ({"A" * 1000: "v" * 100_000}, {"SHADOWPRICE_X": "1"}),
    "arrival_s": (0.0, math.ulp(0.0)),
    "directory": ("/", "/nowhere"),
    "container": (None, {"image": "/nowhere.sif"}),
    "graph": (None, {"stages": []}),
    "widths": ("", "1-4"),
    "batch_size": (MAX_BATCH, MAX_BATCH + 1),
}
"""Of each key the most that is accepted, and one beyond."""
UNMEASURED = {
    "shell": "in place of a command",
    "epochs": "in place of iterations",
    "iterations_per_epoch": "in place of iterations",
}


def test_every_key_has_its_limit() -> None:
    fields = set(Job.__dataclass_fields__) | {"shell", "epochs", "iterations_per_epoch"}
    assert LIMITS.keys() | UNMEASURED.keys() == fields


@pytest.mark.parametrize("key", LIMITS)
def test_the_limit_of_every_key_is_taken_in_and_one_beyond_is_refused(
    tmp_path: Path, key: str
) -> None:
    """What is stored can be read and run with by every later driver: nothing is added that ends it."""
    nodes = tuple(replace(node, cpus=8.0, memory_gb=16.0) for node in two_nodes(2))
    good = {**ENTRY, "name": "good", "iterations": 100}
    run = FakeQueue(tmp_path / "r", (), "srtf", nodes=nodes, plan=[(0.0, good)])
    run.execute().close()
    queue = run.queue()
    limit, beyond = LIMITS[key]
    with pytest.raises(InputError):
        add(queue, {"name": "beyond", key: beyond})
    assert len(queue.ledger.submissions()) == 1
    more = {} if limit is None else {key: limit}
    (name,) = add(queue, {"name": "at-limit", "throughput": 1000, **more})
    with queue.ledger.transaction():
        queue.ledger.set("ended", False)
    queue.close()
    steps = int(LIMITS["iterations"][0]) if key == "iterations" else 5  # type: ignore[call-overload]
    run.host.jobs[name] = HostJob(steps, 1e6)
    ledger = run.execute()
    assert set(run.states(ledger).values()) == {"finished"}, log(ledger)
    ledger.close()


@settings(max_examples=8)
@given(
    st.sampled_from(["", "{", "[]", "null", '{"name": "b"}', "\x00", '{"env": 5}']),
    st.sampled_from(["job", "env"]),
    st.integers(0, 40),
    st.lists(st.integers(-30, 30).filter(bool), max_size=2),
)
def test_a_stored_job_that_cannot_be_read_fails_alone_whenever_it_was_damaged(
    tmp_path_factory: pytest.TempPathFactory,
    text: str,
    column: str,
    damaged_s: int,
    kills: list[int],
) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    jobs = [{**ENTRY, "name": name, "iterations": 80, "throughput": 10} for name in "abc"]
    plan = [(4.0 * k, job) for k, job in enumerate(jobs)]
    run = FakeQueue(folder / "r", (), "fifo", 4.0, nodes=two_nodes(1)[:1], plan=plan)

    def damage(run: FakeRun) -> None:
        if "b" not in run.added:  # type: ignore[attr-defined]
            run.faults.insert(0, (run.clock.time_s + 0.25, damage))
            return
        with closing(sqlite3.connect(run.state / "run.db")) as db, db:
            db.execute(f"UPDATE submissions SET {column} = ? WHERE name = 'b'", (text,))

    run.faults = [(float(damaged_s), damage)]
    run.kill_at_write = sorted(kills, key=abs)
    ledger = run.execute()
    states = run.states(ledger)
    assert (states["a"], states["c"]) == ("finished", "finished"), log(ledger)
    assert states["b"] in ("finished", "failed")
    if states["b"] == "failed":
        (why,) = (row["why"] for row in ledger.jobs() if row["name"] == "b")
        assert "row 2 of the table submissions" in why
    verify_ledger(ledger.path)
    ledger.close()


def test_a_job_that_is_damaged_before_it_is_taken_in_fails(queue: JobQueue, tmp_path: Path) -> None:
    run = FakeQueue(tmp_path / "r", (), plan=[(0.0, ENTRY)])
    ledger = run.execute()
    queue = run.queue()
    add(queue, {"name": "bad"}, {"name": "good"})
    with closing(sqlite3.connect(run.state / "run.db")) as db, db:
        db.execute("UPDATE submissions SET job = 'torn' WHERE name = 'bad'")
    queue.close()
    ledger.set("ended", False)
    ledger.close()
    run.host.jobs["good"] = HostJob(5, 10.0)
    ledger = run.execute()
    assert run.states(ledger) == {"j": "finished", "bad": "failed", "good": "finished"}
    ledger.close()


TEXT = st.text(
    st.characters(codec="ascii", min_codepoint=33, max_codepoint=126), min_size=1, max_size=5
)
PLACE = Path("/")
JOBS = st.builds(
    Job,
    st.just("j"),
    st.lists(TEXT, min_size=1, max_size=3).map(tuple),
    st.dictionaries(st.sampled_from("AB"), TEXT),
    st.integers(1, 100),
    st.integers(1, 10**9),
    st.just(PLACE),
    st.lists(TEXT, max_size=2).map(tuple),
    weight=st.floats(0, 1e18),
    arrival_s=st.floats(0, 1e6),
    deadline_s=st.floats(0, 1e6) | st.just(math.inf),
    done_exit_code=st.none() | st.integers(0, 255),
    throughput=st.none() | st.floats(1e-9, 1e9) | st.just({"v100": 2.5, "k80": 0.0}),
)


@settings(max_examples=15)
@given(JOBS)
def test_an_entry_makes_the_job_it_is_of(job: Job) -> None:
    read = json.loads(json.dumps({"jobs": [entry_of(job)]}))
    assert jobs_of(read, "x", PLACE) == (replace(job, gpu_types=job.gpu_types),)
