"""Rules of a queue: what is refused, what is stored, and what becomes of what cannot be read."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shadowprice.errors import InputError
from shadowprice.execution.real.job_file import Job, entry_of, jobs_of
from shadowprice.execution.real.queue.job_queue import JobQueue
from support.fake_queue import FakeQueue
from support.fake_run import FakeRun

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
    monkeypatch.setattr("shadowprice.execution.real.queue.job_queue.MOST_WAITING", 2)
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
