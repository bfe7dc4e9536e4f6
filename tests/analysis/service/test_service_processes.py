"""A service with real processes on this machine: its whole life, with kills, page and webhook."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("aiohttp", reason="the extra serve is not installed")

from shadowprice.errors import HostError
from shadowprice.execution.real.ledger import RunLedger
from shadowprice.proofs.execution_log import verify_ledger
from support.driver_process import wait_until
from support.service_process import Service

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="supervisors need Linux"),
    pytest.mark.timeout(300),
]

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
EVIL = "</script><img src=x onerror=document.title='run'>"


def job(name: str, code: str = "", gpus: int = 1, **more: object) -> dict[str, object]:
    command = ["{python}", "-I", "-S", "-c", code]
    return {"name": name, "command": command, "iterations": 1, "gpus": gpus, **more}


def submit(service: Service, *jobs: dict[str, object]) -> list[str]:
    file = service.state.parent / "jobs.yaml"
    file.write_text(json.dumps({"jobs": jobs}))
    return service.client.submit(file)


class Posts:
    """A receiver of a webhook, which refuses the first post."""

    def __init__(self) -> None:
        self.got: list[dict[str, Any]] = []
        self.refused = False
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if outer.refused:
                    outer.got.append(body)
                self.send_response(204 if outer.refused else 500)
                outer.refused = True
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/hook"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


def test_a_service_killed_while_users_submit_loses_no_job(tmp_path: Path) -> None:
    posts = Posts()
    service = Service(tmp_path, "--webhook", posts.url)
    try:
        service.start()
        quick = job("quick", "print('printed by quick')", env={"SECRET": "swordfish-9"})
        # One that outlives the service's death, and is taken over.
        names = submit(service, job("long", "import time; time.sleep(4)"), quick)
        wait_until(lambda: service.states()[names[1]] == "finished", 60.0)
        assert "printed by quick" in service.client.output(names[1])
        late = submit_until_killed(service, names)
        service.start()
        # The third of two slots waits, and says so.
        wait_until(lambda: set(service.states()) >= {*names, *late}, 60.0)
        wait_until(lambda: set(service.states().values()) == {"finished"}, 60.0)
        doomed = submit(service, job("doomed", "import time; time.sleep(60)", gpus=2))[0]
        wait_until(lambda: service.states()[doomed] == "running", 60.0)
        (waits,) = submit(service, job("waits"))
        wait_until(lambda: "needs 1 GPU, 0 free" in service.client.job(waits)["because"], 60.0)
        service.client.cancel([doomed])
        wait_until(lambda: service.states()[waits] == "finished", 60.0)
        wait_until(lambda: any(post["job"] == waits for post in posts.got), 60.0)
        assert service.stop() == 0
        assert "stopped with 0 jobs queued" in service.said()
    finally:
        service.clean_up()
        posts.close()
    checked = verify_ledger(service.state / "run.db")
    assert checked["drivers"] == 2
    assert checked["jobs"] == len(names) + len(late) + 2
    ledger = RunLedger.open(service.state / "run.db", readonly=True)
    grants = [row["job"] for row in ledger.events() if row["kind"] == "granted"]
    ledger.close()
    assert grants.count(names[0]) == 1, "the job that ran on was started again"
    ends = [(post["kind"], post["job"]) for post in posts.got]
    assert ("finished", names[1]) in ends
    assert ("cancelled", doomed) in ends
    numbers = [post["seq"] for post in posts.got]
    assert numbers == sorted(numbers)
    assert "swordfish" not in json.dumps(posts.got) + service.said()


def submit_until_killed(service: Service, before: list[str]) -> list[str]:
    """Names that four users were answered before the service died; it has all of them."""
    answered: list[str] = []

    def go_on(k: int) -> None:
        file = service.state.parent / f"jobs{k}.yaml"
        file.write_text(json.dumps({"jobs": [job(f"late{k}")]}))
        try:
            for _ in range(6):
                answered.extend(service.client.submit(file))
        except HostError:
            return

    with ThreadPoolExecutor(4) as users:
        asked = [users.submit(go_on, k) for k in range(4)]
        wait_until(lambda: len(answered) >= 6, 60.0)
        service.kill()
        for each in asked:
            each.result()
    ledger = RunLedger.open(service.state / "run.db", readonly=True)
    there = {row["name"] for row in ledger.submissions()}
    ledger.close()
    assert there >= {*before, *answered}
    return sorted(there - {*before})


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
def test_the_page_shows_devices_queue_reasons_and_prices(tmp_path: Path) -> None:
    service = Service(tmp_path, "--http", "0", policy="hadar")
    try:
        service.start()
        holder = submit(service, job("holder", "import time; time.sleep(90)", gpus=2))[0]
        wait_until(lambda: service.states()[holder] == "running", 60.0)
        (waits,) = submit(service, job("waits", EVIL))
        wait_until(lambda: "0 free" in service.client.job(waits)["because"], 60.0)
        page = service.client.make_token()["page"]
        shown, told = browse(tmp_path, page)
        assert f"0: {holder}" in shown
        assert f"1: {holder}" in shown
        assert "needs 1 GPU, 0 free" in shown
        assert "price of a GPU" in shown
        assert "1 running, 1 waiting" in shown
        assert f"{holder} (epoch 1) gets localhost:0 localhost:1" in shown
        assert "CONSOLE" not in told, told
        shown, _ = browse(tmp_path, page.split("#")[0] + "#guess")
        assert "expected a token that is valid" in shown
        assert holder not in shown
    finally:
        service.clean_up()


def browse(folder: Path, url: str) -> tuple[str, str]:
    """The page after its first answer, as Chromium has it, and what Chromium said."""
    assert CHROMIUM is not None
    done = subprocess.run(
        [
            *(CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu"),
            *("--enable-logging=stderr", f"--user-data-dir={folder / 'browser'}"),
            *("--virtual-time-budget=3000", "--dump-dom", url),
        ],
        capture_output=True,
        text=True,
        timeout=90,
        check=True,
    )
    return done.stdout, done.stderr
