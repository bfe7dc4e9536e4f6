"""What is shown of a real run: bars, curves, tables, the page in a real browser."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from base64 import b64encode
from contextlib import closing
from hashlib import sha256
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import plotly.graph_objects as go
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowprice.errors import InputError
from shadowprice.hosts.live.ledger import RunLedger
from shadowprice.hosts.live.measured_run import measured_run
from shadowprice.hosts.live.state_directory import LEDGER
from shadowprice.hosts.reports.figures import gantt_figure, throughput_figure
from shadowprice.hosts.reports.jobs import job_rows
from shadowprice.hosts.reports.report import UNWRITTEN, figure_html, report
from shadowprice.hosts.reports.run import RunReader
from shadowprice.hosts.reports.status import event_words, status_record
from shadowprice.hosts.reports.timeline import (
    RUNNING,
    STARTING,
    UNCONFIRMED,
    Piece,
    Timeline,
    devices_held,
    jobs_waiting,
    pieces,
    union,
)
from shadowprice.hosts.reports.unsimulated import unsimulated
from shadowprice.instances.entries import printable
from support.execution_ledgers import GPUS, NAMES, Script, written

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
EVIL = '</script><script>console.error("run")</script><img src=x onerror=alert(1)>'


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunReader:
    return RunReader(written(tmp_path_factory.mktemp("run") / "state"))


def of(found: list[Piece], job: str, phase: str) -> list[tuple[str, float, float, float, float]]:
    return [
        (p.device, p.start_s, p.end_s, p.low, p.high)
        for p in found
        if (p.hold.job, p.phase) == (job, phase)
    ]


def test_pieces_of_packing_migration_and_a_lost_node(run: RunReader) -> None:
    found = pieces(run.timeline, run.now_s)
    assert of(found, "resnet", STARTING) == [
        (GPUS[0], 0.0, 3.0, 0.0, 1.0),
        (GPUS[2], 245.0, 248.0, 0.0, 1.0),
    ]
    # Alone, then above lstm; then, after the migration, alone on the other node.
    assert of(found, "resnet", RUNNING) == [
        (GPUS[0], 3.0, 60.0, 0.0, 1.0),
        (GPUS[0], 60.0, 182.0, 0.0, 0.5),
        (GPUS[2], 248.0, 290.0, 0.0, 1.0),
    ]
    assert of(found, "lstm", RUNNING) == [
        (GPUS[0], 62.0, 182.0, 0.5, 1.0),
        (GPUS[0], 182.0, 182.5, 0.0, 1.0),
        (GPUS[0], 182.5, 260.0, 0.0, 0.5),
    ]
    # From the loss of its node to the proof that it is gone nobody works on the device.
    assert of(found, "unlucky", UNCONFIRMED) == [(GPUS[2], 150.0, 241.0, 0.0, 1.0)]
    assert of(found, "unwanted", RUNNING) == []


def test_a_lease_that_goes_on_is_drawn_until_now(tmp_path: Path) -> None:
    reader = RunReader(written(tmp_path / "s", ended=False))
    ends = {p.end_s for p in pieces(reader.timeline, 700.0) if p.hold.job == "transformer"}
    assert ends == {308.0, 700.0}


def test_curves_and_waiting(run: RunReader) -> None:
    held, waiting = devices_held(run.timeline, 501.0), jobs_waiting(run.timeline, 501.0)
    at = dict(zip(held.times_s, held.values, strict=True))
    assert at[60.0] == 3  # the packed device counts once
    assert at[501.0] == 0
    assert dict(zip(waiting.times_s, waiting.values, strict=True))[50.0] == 5
    rows = {row.name: row for row in job_rows(run)}
    assert rows["transformer"].waited_s == 280.0
    assert rows["unlucky"].waited_s == pytest.approx(
        20 + 32.5
    )  # before its first run, and its node lost
    assert rows["unwanted"].jct_s == rows["unwanted"].waited_s == 150.0
    assert (rows["crashing"].leases, rows["crashing"].lost_steps) == (2, 100)


def test_a_job_has_one_jct(run: RunReader) -> None:
    """From its arrival, not from when the driver looked: that of the report is that of a replay."""
    run.timeline.arrived_s["transformer"] += 3.0
    try:
        rows = {row.name: row for row in job_rows(run)}
    finally:
        run.timeline.arrived_s["transformer"] -= 3.0
    with closing(RunLedger.open(run.directory / LEDGER, readonly=True)) as ledger:
        real = {job.name: job for job in measured_run(ledger).jobs}
    finished = [row for row in rows.values() if row.state == "finished"]
    assert {row.name: row.jct_s for row in finished} == {
        row.name: real[row.name].finish_s - real[row.name].arrival_s for row in finished
    }
    assert rows["transformer"].waited_s == 280.0


spans = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20)), max_size=12).map(
    lambda drawn: [(float(a), float(a + length)) for a, length in drawn]
)


@given(spans)
def test_union_covers_the_same_time_once(drawn: list[tuple[float, float]]) -> None:
    merged = union(drawn)
    assert all(a[1] < b[0] for a, b in pairwise(merged))
    for k in range(80):
        middle = k + 0.5
        assert any(a <= middle < b for a, b in drawn) == any(a <= middle < b for a, b in merged)


leases = st.lists(
    st.tuples(st.sampled_from(GPUS), st.integers(0, 60), st.integers(1, 40), st.integers(0, 45)),
    max_size=12,
)


@given(leases)
def test_bars_fill_each_device_where_and_only_where_it_is_held(
    drawn: list[tuple[str, int, int, int]],
) -> None:
    timeline = Timeline()
    for k, (device, start, length, ready) in enumerate(drawn):
        job = f"j{k}"
        timeline.feed(
            [
                {
                    "kind": "granted",
                    "job": job,
                    "epoch": 1,
                    "time_s": start,
                    "data": {"devices": [device]},
                },
                {"kind": "running", "job": job, "epoch": 1, "time_s": start + ready, "data": {}},
                {
                    "kind": "released",
                    "job": job,
                    "epoch": 1,
                    "time_s": start + length,
                    "data": {"devices": [device], "reason": "exited", "code": 0, "step": 1},
                },
            ]
        )
    found = pieces(timeline, 200.0)
    for device in GPUS:
        for k in range(101):
            there = sorted(
                (p.low, p.high)
                for p in found
                if p.device == device and p.start_s <= k + 0.5 < p.end_s
            )
            holders = sum(d == device and a <= k + 0.5 < a + n for d, a, n, _ in drawn)
            assert len(there) == holders
            assert sum(high - low for low, high in there) == pytest.approx(min(holders, 1))
            assert all(a[1] <= b[0] + 1e-9 for a, b in pairwise(there))


def test_status_is_json_and_says_who_holds_what(tmp_path: Path) -> None:
    reader = RunReader(written(tmp_path / "s", ended=False))
    record = json.loads(json.dumps(status_record(reader)))
    held = {d["uuid"]: d["held_by"] for node in record["nodes"] for d in node["devices"]}
    assert held == {GPUS[0]: ["transformer"], GPUS[1]: ["transformer"], GPUS[2]: [], GPUS[3]: []}
    assert record["driver"] == "stopped"
    jobs = {job["name"]: job for job in record["jobs"]}
    assert jobs["transformer"]["devices"] == ["n0:0", "n0:1"]
    states = ["finished", "finished", "running", "finished", "finished", "cancelled"]
    assert [jobs[name]["state"] for name in NAMES] == states


def test_only_new_events_are_read(tmp_path: Path) -> None:
    script = Script(tmp_path / "s")
    reader = RunReader(tmp_path / "s")
    assert reader.refresh() == []
    script.arrive("lstm", 1.0)
    assert [event["kind"] for event in reader.refresh()] == ["arrived"]
    assert reader.refresh() == []
    assert reader.timeline.arrived_s == {"lstm": 1.0}
    # A driver that takes over before anything was decided of a job tells of it again.
    script.arrive("lstm", 9.0)
    reader.refresh()
    assert reader.timeline.arrived_s == {"lstm": 1.0}


def test_shared_devices_name_each_other(tmp_path: Path) -> None:
    script = Script(tmp_path / "s")
    script.grant("resnet", 1, 0.0, GPUS[:1])
    script.grant("lstm", 1, 5.0, GPUS[:1], partner="resnet")
    rows = {row.name: row for row in job_rows(RunReader(tmp_path / "s"))}
    assert rows["resnet"].shares_with == ("lstm",)
    assert rows["lstm"].shares_with == ("resnet",)


def test_a_job_that_is_always_stopped_before_its_first_step_says_so(tmp_path: Path) -> None:
    """Rounds of 8 s on a GPU, where a training takes 6 s to its first step: no job of two went on."""
    script = Script(tmp_path / "s")
    script.arrive("resnet", 0.0)
    words = "stopped {} times before a step was kept, expected a longer --round"
    for epoch in (1, 2, 3):
        script.grant("resnet", epoch, 20.0 * epoch, GPUS[:1], step=100)
        script.release("resnet", epoch, 20.0 * epoch + 8.0, GPUS[:1], step=100 + epoch, lost=epoch)
        why = next(row for row in job_rows(RunReader(tmp_path / "s")) if row.name == "resnet").why
        assert (words.format(epoch) in why) == (epoch >= 2)
    script.grant("resnet", 4, 100.0, GPUS[:1], step=100)
    script.release("resnet", 4, 108.0, GPUS[:1], step=130)
    row = next(row for row in job_rows(RunReader(tmp_path / "s")) if row.name == "resnet")
    assert "longer --round" not in row.why


def test_every_kind_of_event_has_words(run: RunReader) -> None:
    words = [event_words(run, event) for event in run.last_events]
    assert "resnet (epoch 2) gets n1:0, from step 700" in words
    assert "crashing (epoch 1) failed: exit code 1: ValueError: loss is nan, again in 30 s" in words
    assert "node n1 does not answer" in words
    odd = {"kind": "unheard-of", "job": "a", "epoch": 3, "data": {}}
    assert event_words(run, odd) == "unheard-of a (epoch 3)"


def test_nothing_of_a_job_steers_the_terminal(run: RunReader) -> None:
    assert printable("a\x1b[2Jb\r\n\x07c\u202ed") == "a [2Jb c d"
    event = {"kind": "failed", "job": "a", "epoch": 1, "data": {"why": "\x1b]0;evil\x07"}}
    assert "\x1b" not in event_words(run, event)


@pytest.mark.parametrize("damage", ["missing", "text", "other", "version"])
def test_what_is_no_state_directory(tmp_path: Path, damage: str) -> None:
    file = tmp_path / "run.db"
    if damage == "text":
        file.write_text("no database" * 100)
    elif damage == "other":
        (tmp_path / "run.db").mkdir()
    elif damage == "version":
        file.write_bytes(b"")
    with pytest.raises(InputError, match=re.escape(str(tmp_path))):
        RunReader(tmp_path)


def test_a_ledger_that_breaks_while_it_is_read(tmp_path: Path) -> None:
    script = Script(tmp_path / "s")
    reader = RunReader(tmp_path / "s")
    script.ledger._db.execute("UPDATE run SET value = '{' WHERE key = 'nodes'")
    with pytest.raises(InputError, match=r"run\.db: cannot be read"):
        reader.refresh()


def test_a_long_run_shows_its_latest_bars(run: RunReader, monkeypatch: pytest.MonkeyPatch) -> None:
    everything = pieces(run.timeline, run.now_s)
    monkeypatch.setattr("shadowprice.hosts.reports.figures.MAX_BARS", 4)
    figure = gantt_figure(run)
    shown = [trace for trace in figure.data if trace.type == "bar"]
    assert sum(len(trace.x) for trace in shown) == 4
    latest = sorted(bar.start_s for bar in everything)[-4:]
    assert sorted(60 * start for trace in shown for start in trace.base) == pytest.approx(latest)
    assert figure.layout.xaxis.range[0] == pytest.approx(latest[0] / 60)


def test_the_page_has_every_job_and_bar(run: RunReader) -> None:
    page = report(run)
    assert "mean JCT 302.8 s" in page
    assert "5 finished, 1 cancelled" in page
    for name in NAMES:
        assert f"<td>{name}</td>" in page
    bars = [trace for trace in gantt_figure(run).data if trace.type == "bar"]
    assert sum(len(trace.x) for trace in bars) == len(pieces(run.timeline, run.now_s))
    # A line is broken between two leases: nothing was measured there.
    rates = throughput_figure(run)
    assert rates is not None
    assert rates.data[0].y[3] is None


def test_the_drift_is_shown_where_it_was_measured(tmp_path: Path) -> None:
    state = written(tmp_path / "s")
    assert "Simulated against real" not in report(RunReader(state))
    (state / "measured").mkdir()
    (state / "measured" / "drift.csv").write_text(
        "job,simulated_jct_s,real_jct_s,relative_error\nresnet,250,290.0123,-0.13797\n"
        f"{EVIL},1,2,inf\n"
    )
    remarks = state / "measured" / "drift.txt"
    remarks.write_text(
        f"not simulated: a host was away\njob-a.: took 1\u2028s.\n{EVIL} was placed otherwise\n"
    )
    page = report(RunReader(state))
    assert "<p>not simulated: a host was away</p>\n" in page
    assert "<p>job-a.: took 1\u2028s.</p>" in page
    assert " was placed otherwise</p>" in page
    assert UNWRITTEN not in page
    for cell in ("<th>job</th>", '<th class="n">real JCT [s]</th>', '<td class="n">290</td>'):
        assert cell in page
    assert '<td class="n">-13.8 %</td>' in page
    assert '<td class="n">inf</td>' in page
    assert EVIL not in page
    for row, cells in (("resnet", 1), ("resnet,1,2,3", 4)):
        (state / "measured" / "drift.csv").write_text(f"job,real_jct_s\n{row}\n")
        with pytest.raises(InputError, match=rf"drift\.csv: a row has {cells} cells, expected 2"):
            report(RunReader(state))
    (state / "measured" / "drift.csv").write_bytes(b"\xff\xfe\n")
    with pytest.raises(InputError, match=r"drift\.csv"):
        report(RunReader(state))
    (state / "measured" / "drift.csv").write_text("job\nresnet\n")
    remarks.write_bytes(b"\xff\xfe\n")
    with pytest.raises(InputError, match=r"drift\.txt: cannot be read"):
        report(RunReader(state))


def test_a_drift_of_an_earlier_version_is_shown_with_what_the_log_tells(tmp_path: Path) -> None:
    state = written(tmp_path / "s")
    (state / "measured").mkdir()
    (state / "measured" / "drift.csv").write_text("job\nresnet\n")
    run = RunReader(state)
    page = report(run)
    assert "<th>job</th>" in page
    assert UNWRITTEN in page
    causes = unsimulated(run.events())
    assert causes
    assert all(f"<p>{cause}</p>" in page for cause in causes)


def evil(state: Path) -> Path:
    """A run whose jobs, outputs and hosts are called what an attacker would call them."""
    script = Script(state, names=(EVIL, "<b>bold</b>"))
    script.ledger.set("policy", EVIL)
    for name in script.names:
        script.arrive(name, 0.0)
        script.ledger.update_job(name, why=EVIL)
    script.grant(EVIL, 1, 1.0, GPUS[:1])
    script.grant("<b>bold</b>", 1, 1.0, GPUS[1:2])
    script.release(EVIL, 1, 50.0, GPUS[:1], step=5, code=1, detail=EVIL, reason=EVIL)
    script.ledger.event(50.0, "failed", EVIL, 1, why=EVIL)
    script.ledger.event(60.0, "node-lost", node=EVIL)
    script.measure(EVIL, 1, [10.0, 20.0], 5.0)
    script.ledger.close()
    return state


def test_no_text_of_a_job_becomes_html(tmp_path: Path) -> None:
    page = report(RunReader(evil(tmp_path / "s")))
    without_library = page[: page.index("<script>")] + page[page.index("<body>") :]
    scripts = re.findall(r"<script[^>]*>(.*?)</script>", page, re.DOTALL)
    assert page.count("<script") == page.count("</script") == len(scripts) == 4  # plotly, figures
    assert "<img" not in without_library
    assert "<b>bold" not in without_library
    for script in scripts[1:]:
        # All that a figure's script holds of the run is data.
        call = re.search(r'Plotly\.newPlot\(\s*"(?:gantt|load|throughput)",\s*', script)
        assert call is not None
        place = call.end()
        for end in (",", ",", ")"):
            _, place = json.JSONDecoder().raw_decode(script, place)
            place += len(script[place:]) - len(script[place:].lstrip())
            assert script[place] == end
            place += 1 + len(script[place + 1 :]) - len(script[place + 1 :].lstrip())


class Scripts(HTMLParser):
    """What a browser would take for scripts, for addresses, and for handlers of events."""

    def __init__(self) -> None:
        super().__init__()
        self.inside = False
        self.scripts: list[str] = []
        self.policy = ""
        self.addresses: list[str] = []
        self.handlers: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.inside = tag == "script"
        if self.inside:
            self.scripts.append("")
        if given.get("http-equiv") == "Content-Security-Policy":
            self.policy = given["content"]
        self.addresses += [given[key] for key in ("src", "href") if key in given]
        self.handlers += [name for name in given if name.startswith("on")]

    def handle_endtag(self, tag: str) -> None:
        self.inside = False

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.scripts[-1] += data


def test_the_policy_names_every_script_and_the_page_asks_for_nothing(tmp_path: Path) -> None:
    for state in (written(tmp_path / "run"), evil(tmp_path / "evil")):
        found = Scripts()
        found.feed(report(RunReader(state)))
        digests = [sha256(script.encode()).digest() for script in found.scripts]
        named = re.findall(r"'sha256-([^']*)'", found.policy)
        assert len(named) == 4
        assert named == [b64encode(digest).decode() for digest in digests]
        assert found.policy.startswith("default-src 'none'; script-src 'sha256-")
        assert found.addresses == ["data:,"]
        assert found.handlers == []


def test_plotly_gets_text_and_the_page_gets_no_tag(tmp_path: Path) -> None:
    # Two fences, each on its own: plotly reads tags in labels, a browser the end of a script.
    run = RunReader(evil(tmp_path / "s"))
    for figure in (gantt_figure(run), throughput_figure(run)):
        assert figure is not None
        assert "<img" not in figure.to_json()
        assert "&lt;img" in figure.to_json()
    placed = figure_html("x", go.Figure(layout={"title": {"text": EVIL}, "height": 100}))
    assert placed.count("</script>") == 1
    assert "<img" not in placed


def test_a_lease_given_up_is_not_shown_as_held(tmp_path: Path) -> None:
    script = Script(tmp_path / "s")
    script.grant("lstm", 1, 0.0, GPUS[2:3])
    script.ledger.event(50.0, "node-lost", node="n1")
    script.ledger.event(
        50.0, "quarantined", "lstm", 1, device=GPUS[2], why="its node does not answer"
    )
    run = RunReader(tmp_path / "s")
    assert {row.name: row.devices for row in job_rows(run)}["lstm"] == ()
    # Nobody else may have the device, though.
    record = status_record(run)["nodes"][1]
    assert record["lost"]
    assert [device["quarantined"] for device in record["devices"]] == [True, False]


def browser(page: Path, profile: Path, *words: str) -> subprocess.CompletedProcess[str]:
    assert CHROMIUM is not None
    return subprocess.run(
        [
            CHROMIUM,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--enable-logging=stderr",
            "--v=0",
            "--virtual-time-budget=8000",
            "--window-size=1200,1800",
            f"--user-data-dir={profile}",
            *words,
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def console_of(done: subprocess.CompletedProcess[str]) -> list[str]:
    return [line for line in done.stderr.splitlines() if "CONSOLE" in line]


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: the page is not opened in a browser")
def test_a_real_browser_draws_everything(run: RunReader, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text(report(run), encoding="utf-8")
    done = browser(page, tmp_path / "profile", "--dump-dom")
    assert console_of(done) == []
    gantt = done.stdout[done.stdout.index('id="gantt"') : done.stdout.index("<h2>Jobs</h2>")]
    paths = re.findall(r'<g class="point"><path[^>]* d="([^"]*)"', gantt)
    drawn = [path for path in paths if not path.startswith("M0,0Z")]
    assert len(drawn) == len(pieces(run.timeline, run.now_s))
    assert done.stdout.count('class="main-svg"') >= 3  # Gantt, load, throughput
    assert done.stdout.count('class="trace scatter') >= 2 + 2 + 3  # marks, curves, rates


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: the page is not opened in a browser")
def test_a_real_browser_runs_nothing_of_a_job(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text(report(RunReader(evil(tmp_path / "s"))), encoding="utf-8")
    done = browser(page, tmp_path / "profile", "--dump-dom")
    assert console_of(done) == []
    assert "<img" not in done.stdout
    # And if an escape were missing: the policy of the page stops scripts that are not its own.
    page.write_text(report(RunReader(tmp_path / "s")).replace("<main>", f"<main>{EVIL}", 1))
    refused = browser(page, tmp_path / "profile", "--dump-dom")
    assert not any(
        '"run"' in line and "Refused" not in line and "violates" not in line
        for line in console_of(refused)
    )
    assert any("Content Security Policy" in line for line in console_of(refused))
