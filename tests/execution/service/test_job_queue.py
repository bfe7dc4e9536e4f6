"""Rules of a queue: whose a job is, what is refused, and what is kept of it."""

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
from shadowprice.execution.service.queue import JobQueue
from shadowprice.execution.service.users import Access, NotAllowedError, User
from support.fake_service import ACCESS, ALICE, BOB, OWNER, FakeService

STRANGER = User(1003, "eve")
ENTRY = {"name": "j", "command": ["true"], "iterations": 5, "gpus": 1}


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a service whose first job is over."""
    run = FakeService(tmp_path_factory.mktemp("run") / "r", (), plan=[(0.0, OWNER, ENTRY)])
    run.execute().close()
    return run.state / "run.db"


@pytest.fixture
def queue(ledger: Path, tmp_path: Path) -> Iterator[JobQueue]:
    shutil.copy(ledger, tmp_path)
    queue = JobQueue(tmp_path, ACCESS, lambda ledger: 100.0)
    yield queue
    queue.close()


def submit(queue: JobQueue, user: User, *jobs: dict[str, Any], request: str = "r") -> list[str]:
    return queue.submit(user, {"jobs": [ENTRY | job for job in jobs]}, Path("/"), request)


def test_a_job_is_its_users_and_has_the_users_weight(queue: JobQueue) -> None:
    names = submit(queue, ALICE, {"weight": 0.5}, {"name": "k", "deadline_s": 60})
    assert names == ["j-2", "k-3"]
    kept = [json.loads(row["job"]) for row in queue.ledger.submissions(1)]
    assert [job["tenant"] for job in kept] == ["alice", "alice"]
    assert [job.get("weight", 1.0) for job in kept] == [1.0, 2.0]
    assert [job["arrival_s"] for job in kept] == [100.0, 100.0]
    assert [job.get("deadline_s", math.inf) for job in kept] == [math.inf, 160.0]


def test_the_same_request_again_queues_nothing(queue: JobQueue) -> None:
    first = submit(queue, ALICE, {}, {"name": "k"})
    assert submit(queue, ALICE, {}, {"name": "k"}) == first
    assert submit(queue, BOB, {}) != first[:1]  # another user's request of the same name
    assert submit(queue, ALICE, {}, request="s") == ["j-5"]
    assert len(queue.ledger.submissions(1)) == 4


@pytest.mark.parametrize(
    ("job", "said"),
    [
        ({"tenant": "bob"}, "tenant is 'bob', expected 'alice'"),
        ({"arrival_s": 5}, "arrival_s is 5"),
        ({"weight": 3}, "weight is 3, expected at most 1"),
        ({"gpus": 100}, "100"),
        ({"gpu_types": ["none"]}, "can run on none"),
        ({"wight": 1}, "wight"),
        ({"iterations": 0}, "iterations is 0"),
        ({"directory": "/nowhere"}, "expected a directory that exists"),
    ],
)
def test_of_a_file_with_a_wrong_job_none_is_queued(
    queue: JobQueue, job: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        submit(queue, ALICE, {}, {"name": "k", **job})
    assert len(queue.ledger.submissions()) == 1


def test_nobody_touches_what_is_anothers(queue: JobQueue) -> None:
    (mine,), (other,) = submit(queue, ALICE, {}), submit(queue, BOB, {})
    with pytest.raises(NotAllowedError, match="is alice's, not bob's"):
        queue.own(BOB, mine)
    with pytest.raises(NotAllowedError, match="is alice's"):
        queue.cancel(BOB, [other, mine])
    assert queue.ledger.cancelled() == []  # neither: all of them or none
    with pytest.raises(NotAllowedError, match="eve is not let in"):
        submit(queue, STRANGER, {})
    queue.cancel(ALICE, [mine])
    queue.cancel(OWNER, [other])
    assert queue.ledger.cancelled() == [mine, other]
    with pytest.raises(InputError, match="'j-1' is finished already"):
        queue.cancel(OWNER, ["j-1"])
    with pytest.raises(InputError, match="no job 'j-9'"):
        queue.cancel(OWNER, ["j-9"])


def test_variables_are_forgotten_when_a_job_is_over(queue: JobQueue) -> None:
    secret = {"env": {"TOKEN": "swordfish-9"}}
    over, waits = submit(queue, ALICE, secret, {"name": "k", **secret})
    assert "swordfish" not in json.dumps(queue.document(over))
    queue.ledger.update_job(over, state="finished")
    queue.forget_secrets()
    kept = {row["name"]: row["env"] for row in queue.ledger.submissions(1)}
    assert kept == {over: "{}", waits: '{"TOKEN": "swordfish-9"}'}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no-such-user-9", "there is no user"),
        ("root:x", "weight is 'x'"),
        ("root:-1", "weight is '-1'"),
        ("root:nan", "weight is 'nan'"),
    ],
)
def test_a_user_who_is_let_in_is_one(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        Access.parse([text])


def test_a_service_of_root_lets_nobody_else_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.getuid", lambda: 0)
    with pytest.raises(InputError, match="this is root"):
        Access.parse(["daemon"])
    monkeypatch.setattr("os.getuid", lambda: 12345)
    access = Access.parse(["daemon:3"])
    assert access.shared
    assert access.weight(User(1, "daemon")) == 3.0
    assert access.owns(User(0, "root"))
    assert not access.owns(User(1, "daemon"))


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
