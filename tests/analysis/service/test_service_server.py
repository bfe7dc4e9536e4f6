"""HTTP of a service: who asks, what each gets, and what a scrape says."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("aiohttp", reason="the extra serve is not installed")

from prometheus_client.parser import text_string_to_metric_families

from shadowprice.analysis.service.http_server import ServiceServer
from shadowprice.analysis.service.snapshot import for_user, why
from shadowprice.errors import HostError, InputError
from shadowprice.execution.service.client import ServiceClient
from shadowprice.execution.service.users import Access
from support.fake_service import ALICE, BOB, FakeService

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="SO_PEERCRED is Linux's")

LET_IN, STRANGER = 1, 2
"""Users daemon and bin."""
PYTHON = "/usr/bin/python3"
"""One that all users can run, which that of the tests may not be."""
EVIL = "<img src=x onerror=alert(1)>\x1b[31m"
ENTRY = {"name": "j", "command": ["true", EVIL], "iterations": 5, "gpus": 1}
ASK = """
import socket, sys
at = socket.socket(socket.AF_UNIX)
at.connect(sys.argv[1])
body = sys.argv[4].encode()
at.sendall(f"{sys.argv[2]} {sys.argv[3]} HTTP/1.0\\r\\nContent-Length: {len(body)}\\r\\n\\r\\n".encode() + body)
said = b""
while more := at.recv(65536):
    said += more
sys.stdout.write(said.decode())
"""


@pytest.fixture(scope="module")
def service() -> Iterator[ServiceServer]:
    # Not pytest's folder, which other users cannot enter.
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    run = FakeService(
        folder / "r", (), plan=[(0.0, ALICE, ENTRY), (0.0, BOB, ENTRY | {"iterations": 10})]
    )
    run.execute().close()
    run.state.chmod(0o700)
    access = Access(os.getuid(), {LET_IN: 2.0})
    with ServiceServer(run.state, access, folder / "sock", 0) as server:
        yield server
    assert not (folder / "sock").exists()
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def client(service: ServiceServer) -> ServiceClient:
    return ServiceClient(service.path)


def ask_as(
    uid: int, service: ServiceServer, method: str, path: str, body: object = ""
) -> tuple[int, dict[str, Any]]:
    """What another user is answered."""
    text = body if isinstance(body, str) else json.dumps(body)
    done = subprocess.run(
        [PYTHON, "-I", "-S", "-c", ASK, str(service.path), method, path, text],
        user=uid,
        group=uid,
        extra_groups=[],
        cwd="/",
        env={},
        capture_output=True,
        check=True,
    )
    head, _, said = done.stdout.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(said)


def others_can_run_python() -> bool:
    if os.getuid() != 0:
        return False
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        subprocess.run([PYTHON, "-I", "-S", "-c", ""], user=LET_IN, cwd="/", env={}, check=True)
        return True
    return False


@pytest.mark.skipif(not others_can_run_python(), reason="only root can ask as other users")
def test_the_kernel_says_who_asks(service: ServiceServer) -> None:
    status, said = ask_as(STRANGER, service, "GET", "/v1/state")
    assert (status, said) == (
        403,
        {"error": "user bin is not let in by this service; ask the one who runs it for --user bin"},
    )
    wanted = {"document": {"jobs": [ENTRY]}, "folder": "/", "request": "x"}
    status, said = ask_as(LET_IN, service, "POST", "/v1/jobs", wanted)
    assert status == 201
    (mine,) = said["jobs"]
    status, said = ask_as(LET_IN, service, "GET", "/v1/state")
    assert said["you"] == {"user": "daemon", "owner": False}
    assert {job["name"]: job["user"] for job in said["jobs"]} == {
        "j-1": "alice",
        "j-2": "bob",
        mine: "daemon",
    }
    for path in ("/v1/jobs/j-1", "/v1/jobs/j-1/output"):
        status, said = ask_as(LET_IN, service, "GET", path)
        assert (status, said) == (403, {"error": "job j-1 is alice's, not daemon's"})
    status, said = ask_as(LET_IN, service, "POST", "/v1/cancel", {"jobs": ["j-1"]})
    assert status == 403
    status, said = ask_as(LET_IN, service, "POST", "/v1/cancel", {"jobs": [mine]})
    assert status == 200
    # A name in the request changes nothing: its jobs are the user's who asks.
    forged = {"document": {"jobs": [ENTRY | {"tenant": "alice"}]}, "folder": "/", "request": "y"}
    status, said = ask_as(LET_IN, service, "POST", "/v1/jobs", forged)
    assert (status, said["error"]) == (400, "job j: tenant is 'alice', expected 'daemon' or none")


def test_what_is_submitted_is_listed_and_can_be_cancelled(
    client: ServiceClient, service: ServiceServer, tmp_path: Path
) -> None:
    (tmp_path / "jobs.yaml").write_text(json.dumps({"jobs": [ENTRY | {"name": "k"}]}))
    (name,) = client.submit(tmp_path / "jobs.yaml", "again")
    assert client.submit(tmp_path / "jobs.yaml", "again") == [name]
    assert client.job(name)["because"] == "was submitted; the next decision sees it"
    assert client.job(name)["submitted"]["directory"] == str(tmp_path)
    client.cancel([name])
    assert client.job("j-1")["because"] == "is finished"
    assert client.output("j-1") == ""
    with pytest.raises(InputError, match="there is no job 'nobody'"):
        client.job("nobody")
    (tmp_path / "jobs.yaml").write_text(json.dumps({"jobs": [ENTRY | {"iterations": 0}]}))
    with pytest.raises(InputError, match="iterations is 0"):
        client.submit(tmp_path / "jobs.yaml")


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/v1/jobs", "{", 400),
        ("POST", "/v1/jobs", "[" * 100_000, 400),
        ("POST", "/v1/jobs", "{}", 400),
        ("POST", "/v1/jobs", '{"document": 1, "folder": "/", "request": "a"}', 400),
        ("POST", "/v1/jobs", '{"document": {}, "folder": "x", "request": "a"}', 400),
        ("POST", "/v1/jobs", '{"document": {}, "folder": "/\\u0000", "request": "a"}', 400),
        ("POST", "/v1/jobs", '{"document": {}, "folder": "/", "request": 5}', 400),
        ("POST", "/v1/cancel", '{"jobs": 7}', 400),
        ("GET", "/v1/jobs/..%2f..%2fetc", "", 400),
        ("GET", "/nothing", "", 404),
        ("PUT", "/v1/jobs", "{}", 405),
    ],
)
def test_a_request_that_is_none_is_refused_in_a_line(
    service: ServiceServer, method: str, path: str, body: str, status: int
) -> None:
    answer = subprocess.run(
        [sys.executable, "-I", "-S", "-c", ASK, str(service.path), method, path, body],
        capture_output=True,
        check=True,
    ).stdout
    head, _, said = answer.partition(b"\r\n\r\n")
    assert int(head.split()[1]) == status
    assert len(json.loads(said)["error"].splitlines()) == 1


def on_loopback(
    service: ServiceServer, path: str, token: str = "", host: str | None = None
) -> tuple[int, str]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    if host is not None:
        headers["Host"] = host
    request = urllib.request.Request(f"http://127.0.0.1:{service.port}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_on_loopback_a_token_says_who_asks(service: ServiceServer, client: ServiceClient) -> None:
    made = client.make_token()
    assert made["page"] == f"http://127.0.0.1:{service.port}/#{made['token']}"
    assert on_loopback(service, "/v1/state")[0] == 401
    assert on_loopback(service, "/v1/state", "guess")[0] == 401
    status, said = on_loopback(service, "/v1/state", made["token"])
    assert status == 200
    assert json.loads(said)["you"]["owner"]
    # A name that somebody else resolves to this machine is no way in.
    assert on_loopback(service, "/v1/state", made["token"], "evil.example")[0] == 403
    assert on_loopback(service, "/")[0] == 200
    ledger = (service.state / "run.db").read_bytes() + (service.state / "run.db-wal").read_bytes()
    assert made["token"].encode() not in ledger
    client.drop_tokens()
    assert on_loopback(service, "/v1/state", made["token"])[0] == 401


def test_the_port_listens_on_loopback_only(service: ServiceServer) -> None:
    listening = {each.getsockname() for each in service._sockets[1:]}
    assert listening == {("127.0.0.1", service.port)}


def test_a_scrape_says_what_the_ledger_says(service: ServiceServer, client: ServiceClient) -> None:
    token = client.make_token()["token"]
    status, text = on_loopback(service, "/metrics", token)
    assert status == 200
    found = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert found["shadowprice_jobs", ("state", "finished"), ("user", "alice")] == 1
    assert found["shadowprice_jobs", ("state", "finished"), ("user", "bob")] == 1
    now = client.state()
    devices = [device for node in now["nodes"] for device in node["devices"]]
    told = {key: value for key, value in found.items() if key[0] == "shadowprice_devices"}
    assert sum(told.values()) == len(devices)
    done = [job for job in now["jobs"] if job["state"] == "finished"]
    assert found["shadowprice_job_completion_seconds_count",] == len(done) == 2
    total_s = sum(job["finish_s"] - job["arrival_s"] for job in done)
    assert found["shadowprice_job_completion_seconds_sum",] == pytest.approx(total_s)
    assert found["shadowprice_leases_total",] == 2
    assert found["shadowprice_events_total", ("kind", "finished")] == 2


def test_the_socket_is_its_owners_unless_others_are_let_in(
    service: ServiceServer, tmp_path: Path
) -> None:
    assert service.path.stat().st_mode & 0o777 == 0o666
    with ServiceServer(service.state, Access(os.getuid(), {}), tmp_path / "s") as alone:
        assert alone.path.stat().st_mode & 0o777 == 0o600
        with (
            pytest.raises(InputError, match="another service listens there"),
            ServiceServer(service.state, Access(), alone.path),
        ):
            pass
        with pytest.raises(InputError, match="no port"):
            ServiceClient(alone.path).make_token()
    with pytest.raises(HostError, match="no service answers"):
        ServiceClient(alone.path).state()


def test_a_socket_that_a_killed_service_left_is_taken(
    service: ServiceServer, tmp_path: Path
) -> None:
    left = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(left))
    with ServiceServer(service.state, Access(), left) as server:
        assert ServiceClient(server.path).state()["jobs"]
    left.write_text("a file")
    with (
        pytest.raises(InputError, match="something else"),
        ServiceServer(service.state, Access(), left),
    ):
        pass
    assert left.read_text() == "a file"


def test_what_a_job_wrote_is_its_users(tmp_path: Path) -> None:
    said = "tried again in 2 s: exited 1: password swordfish-9"
    jobs = [
        {"user": user, "state": state, "devices": [], "why": text}
        for user, state, text in [
            ("alice", "backing-off", said),
            ("alice", "waiting", "needs 1 GPU, 0 free"),
            ("bob", "failed", said),
        ]
    ]
    events = [{"user": user, "words": said, "time_s": 0.0} for user in ("alice", "bob", "")]
    now = {"jobs": [job | {"because": why(job)} for job in jobs], "events": events}
    bobs = for_user(now, "bob")
    assert [job["because"] for job in bobs["jobs"]] == [
        "is backing-off",
        "is waiting: needs 1 GPU, 0 free",
        f"is failed: {said}",
    ]
    assert [event["user"] for event in bobs["events"]] == ["bob", ""]
    assert "swordfish" not in json.dumps(for_user(now, "carol")["jobs"])
    assert now["jobs"][0]["because"].endswith("swordfish-9")  # the owner's is as it was
