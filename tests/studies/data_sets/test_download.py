"""Downloads against a server that breaks off, answers wrongly or knows no ranges."""

from __future__ import annotations

import hashlib
import json
import subprocess
import tarfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from shadowprice.cli.app import app
from shadowprice.errors import InputError
from shadowprice.instances.traces import load_trace
from shadowprice.studies.data_sets import download
from shadowprice.studies.data_sets.catalogue import DATA_SETS, DataSet
from shadowprice.studies.data_sets.download import FOLDER, checksum_of, fetch, path_of, place_of

CONTENT = bytes(range(256)) * 256


class Server(ThreadingHTTPServer):
    """Serves content; what it does to each request is in ``script``, the last of it again and again."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script: list[dict[str, Any]] = [{}]
        self.asked: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/table.csv"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        server = self.server
        assert isinstance(server, Server)
        act = server.script.pop(0) if len(server.script) > 1 else server.script[0]
        asked = self.headers.get("Range", "")
        server.asked.append(asked)
        content = act.get("content", CONTENT)
        begin = int(asked.removeprefix("bytes=").rstrip("-")) if asked else 0
        if not act.get("ranges", True):
            begin = 0
        if act.get("status"):
            self.send_error(act["status"])
            return
        if begin >= len(content):
            self.send_error(416)
            return
        body = content[begin:]
        self.send_response(206 if begin else 200)
        if begin:
            self.send_header("Content-Range", f"bytes {begin}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: act.get("bytes", len(body))])

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as serving:
        thread = threading.Thread(target=serving.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield serving
        serving.shutdown()


@pytest.fixture
def one(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    """One data set, ``table``, at the server and at a mirror of it."""
    known(server, monkeypatch)
    monkeypatch.setenv(FOLDER, str(tmp_path / "data"))
    server.script, server.asked = [{}], []
    return server


def known(server: Server, monkeypatch: pytest.MonkeyPatch, checksum: str = "") -> None:
    checksum = checksum or f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"
    urls = (server.url, f"{server.url}?mirror")
    entry = DataSet("folder", urls, checksum, "CC-BY-4.0", "A. Author, 2020", "jobs")
    monkeypatch.setattr(download, "DATA_SETS", MappingProxyType({"table": entry}))


def test_what_is_fetched_is_there_without_a_network(one: Server) -> None:
    path = fetch("table")
    assert path.read_bytes() == CONTENT
    one.script = [{"status": 500}]
    assert fetch("table") == path_of("table") == path == place_of("table")
    assert one.asked == [""]
    assert [each.name for each in path.parent.iterdir()] == ["table.csv"]


@given(st.lists(st.integers(0, len(CONTENT) - 1), min_size=1, max_size=5), st.booleans())
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_download_goes_on_wherever_it_broke_off(
    one: Server, cuts: list[int], ranges: bool
) -> None:
    place_of("table").unlink(missing_ok=True)
    one.asked = []
    one.script = [*({"bytes": cut, "ranges": ranges} for cut in cuts), {"ranges": ranges}]
    while True:
        with suppress(InputError):
            assert fetch("table").read_bytes() == CONTENT
            break
    assert len(one.asked) <= len(cuts) + 1
    if not ranges:
        return
    come = 0
    for asked, cut in zip(one.asked, [*cuts, 0], strict=False):
        begin = int(asked.removeprefix("bytes=").rstrip("-")) if asked else 0
        assert come - 2**13 < begin <= come
        come = begin + min(cut, len(CONTENT) - begin)


def test_a_partial_file_is_kept_and_named(one: Server) -> None:
    one.script = [{"bytes": 2**14}, {"bytes": 0}]
    with pytest.raises(
        InputError, match=r"stopped after 16384 bytes.*16384 bytes are kept, the same command"
    ):
        fetch("table")
    with pytest.raises(InputError, match=r"is not at .*table.csv; fetch it"):
        path_of("table")
    one.script, one.asked = [{}], []
    assert fetch("table").read_bytes() == CONTENT
    assert one.asked == ["bytes=16384-"]


def test_a_wrong_checksum_is_told_and_nothing_is_left(one: Server) -> None:
    one.script = [{"content": CONTENT[::-1]}]
    with pytest.raises(
        InputError, match=r"its sha256 is .*, expected .*mirror: its sha256 is"
    ) as error:
        fetch("table")
    assert "are kept" not in str(error.value)
    assert not list(place_of("table").parent.iterdir())


def test_what_was_kept_of_another_file_is_begun_again(one: Server) -> None:
    partial = place_of("table").with_name("table.csv.partial")
    for old in (b"x" * 500, CONTENT + b"more"):
        partial.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(old)
        assert fetch("table").read_bytes() == CONTENT
        place_of("table").unlink()


def test_a_mirror_is_asked_where_the_first_address_fails(one: Server) -> None:
    one.script = [{"status": 404}, {}]
    assert fetch("table").read_bytes() == CONTENT
    place_of("table").unlink()
    one.script = [{"status": 404}]
    with pytest.raises(InputError, match=r"404.*404.*fetch it by hand"):
        fetch("table")


def test_a_file_fetched_by_hand(one: Server, tmp_path: Path) -> None:
    one.script = [{"status": 500}]
    mine = tmp_path / "mine.csv"
    mine.write_bytes(b"other")
    with pytest.raises(
        InputError, match=r"mine.csv has sha256 .*, expected .*; expected the file as published"
    ):
        fetch("table", file=mine)
    with pytest.raises(InputError, match=r"absent.csv: cannot be read: No such file"):
        fetch("table", file=tmp_path / "absent.csv")
    mine.write_bytes(CONTENT)
    assert fetch("table", file=mine).read_bytes() == CONTENT
    place_of("table").write_bytes(b"edited")
    for look in (fetch, path_of):
        with pytest.raises(InputError, match="remove it and fetch table again"):
            look("table")
    assert one.asked == []


def test_checksums_of_git(one: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "content"
    path.write_bytes(CONTENT)
    named = subprocess.run(["git", "hash-object", path], capture_output=True, text=True, check=True)
    assert checksum_of(path, "git-blob") == named.stdout.strip()
    known(one, monkeypatch, f"git-blob:{named.stdout.strip()}")
    assert fetch("table").read_bytes() == CONTENT


def test_commands(one: Server) -> None:
    runner = CliRunner()
    done = runner.invoke(app, ["data", "table"])
    assert done.stdout == f"{place_of('table')}\n"
    assert "licence: CC-BY-4.0; cite: A. Author, 2020" in done.stderr
    assert runner.invoke(app, ["data", "table", "--offline"]).stdout == done.stdout
    with pytest.raises(InputError, match="data set 'gavel': expected one of table"):
        fetch("gavel")


def test_the_list_says_what_is_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER, str(tmp_path))
    place_of("gavel-debug").parent.mkdir()
    place_of("gavel-debug").touch()
    listed = CliRunner().invoke(app, ["data", "--json"])
    rows = {row["name"]: row for row in json.loads(listed.stdout)}
    assert set(rows) == set(DATA_SETS)
    assert [name for name, row in rows.items() if row["here"]] == ["gavel-debug"]
    assert rows["helios"]["licence"] == "CC-BY-4.0"


def test_an_archive_of_one_file_is_read(tmp_path: Path) -> None:
    for members in (["jobs.csv"], ["jobs.csv", "more.csv"]):
        path = tmp_path / "jobs.tar.gz"
        with tarfile.open(path, "w:gz") as archive:
            for name in members:
                (tmp_path / name).write_text("id,gpus,submit,duration\n1,1,0,10\n")
                archive.add(tmp_path / name, name)
        if len(members) == 1:
            assert load_trace(path).workload.work.tolist() == [10.0]
            continue
        with pytest.raises(InputError, match=r"archive of jobs.csv, more.csv; unpack it"):
            load_trace(path)


def test_all_data_sets_say_what_they_are() -> None:
    for each in DATA_SETS.values():
        algorithm, _, digits = each.checksum.partition(":")
        assert len(digits) == {"sha256": 64, "git-blob": 40}[algorithm]
        assert all(url.startswith("https://") for url in each.urls)
        assert each.licence
        assert each.source
    places = [(each.folder, each.file) for each in DATA_SETS.values()]
    assert len(set(places)) == len(places)
