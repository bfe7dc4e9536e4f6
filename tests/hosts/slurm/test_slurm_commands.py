"""Slurm's answers as records, addresses, comments: without a Slurm."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowprice.errors import HostError
from shadowprice.hosts.protocol import LeaseKey
from shadowprice.hosts.registry import open_host
from shadowprice.hosts.slurm import host as slurm_host
from shadowprice.hosts.slurm.commands import (
    SlurmJob,
    SlurmNode,
    gpus_of,
    nodes_of_lines,
)
from shadowprice.hosts.slurm.host import discovered_nodes
from shadowprice.hosts.slurm.jobs import Comment, SlurmOptions, script
from shadowprice.hosts.slurm.time_limits import limit_s


@pytest.mark.parametrize(
    ("gres", "gpus"),
    [
        ("gpu:v100:2", {"v100": 2}),
        ("gpu:v100:2(S:0-1),shard:8", {"v100": 2}),
        ("gpu:4", {"gpu": 4}),
        ("gpu:a100:1,gpu:v100:3", {"a100": 1, "v100": 3}),
        ("gpu:v100:0(IDX:N/A)", {"v100": 0}),
        ("gres/gpu:k80=2", {"k80": 2}),
        ("shard:8,mps:100", {}),
        ("(null)", {}),
        ("", {}),
    ],
)
def test_gpus_of_gres(gres: str, gpus: dict[str, int]) -> None:
    assert gpus_of(gres) == gpus


def test_a_node_in_the_fixed_format() -> None:
    line = "n0 |mixed+drain |8 |4000 |10.0.0.1 |gpu:v100:1(IDX:0) |gpu:v100:2(S:0-1) |\n"
    node = nodes_of_lines(line + "\nno such line\n")["n0"]
    assert (node.states, node.cpus, node.memory_mb) == (frozenset({"MIXED", "DRAIN"}), 8, 4000)
    assert (node.address, node.gpus, node.gpus_used) == ("10.0.0.1", {"v100": 2}, {"v100": 1})
    assert not node.takes_jobs
    assert not node.is_down


@pytest.mark.parametrize(
    ("state", "down", "takes"),
    [
        ("idle", False, True),
        ("mixed", False, True),
        ("allocated*", False, False),
        ("down*", True, False),
        ("idle+drain", False, False),
        ("draining", False, False),
        ("inval", False, False),
    ],
)
def test_states_of_nodes(state: str, down: bool, takes: bool) -> None:
    (node,) = nodes_of_lines(f"n0|{state}|8|4000|10.0.0.1|gpu:0|gpu:2|\n").values()
    assert (node.is_down, node.takes_jobs) == (down, takes)


def test_states_of_jobs() -> None:
    def job(state: str) -> SlurmJob:
        return SlurmJob(1, state, "", 0, "", "")

    assert job("PENDING").is_pending
    assert not any(
        job(state).is_over for state in ("PENDING", "RUNNING", "COMPLETING", "SUSPENDED")
    )
    assert all(
        job(state).is_over
        for state in ("COMPLETED", "CANCELLED", "NODE_FAIL", "TIMEOUT", "FORGOTTEN")
    )


@pytest.mark.parametrize(
    "limit",
    [
        *("soon", "", "0", "0:00", "-5", "1:60", "1:00:60", "1-24", "1-00:60:00", "99999-00:00:00"),
        *("367-00:00:00", "1-2-3", "1:2:3:4", "9" * 40, "1;reboot"),
    ],
)
def test_time_limits_that_are_none_are_refused(limit: str) -> None:
    with pytest.raises(HostError, match=r"time=.*: expected"):
        SlurmOptions.parse(f"gpu,time={limit}")


@given(st.integers(0, 365), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
def test_time_limits_are_read_as_slurm_does(
    days: int, hours: int, minutes: int, seconds: int
) -> None:
    total = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    if total:
        assert limit_s(f"{days}-{hours:02}:{minutes:02}:{seconds:02}") == total
        if not days:
            assert limit_s(f"{hours}:{minutes:02}:{seconds:02}") == total
    if total >= 60 and not seconds:
        assert limit_s(f"{total // 60}") == total
        assert limit_s(f"{days}-{hours:02}:{minutes:02}") == total


@pytest.mark.parametrize(
    ("asked", "allowed", "fits"),
    [
        *(("8:00:00", "infinite", True), ("2:00:00", "2:00:00", True), ("121", "2:00:00", False)),
        *(("UNLIMITED", "2:00:00", False), ("UNLIMITED", "infinite", True), ("1-0", "n/a", True)),
    ],
)
def test_a_time_limit_beyond_the_partitions_is_refused(
    asked: str, allowed: str, fits: bool
) -> None:
    options = SlurmOptions.parse(f"gpu,time={asked}")
    if fits:
        options.check_limit(allowed)
    else:
        with pytest.raises(HostError, match=f"partition gpu allows, expected at most {allowed}"):
            options.check_limit(allowed)


JOBS = st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")


@given(JOBS, st.integers(1, 10**9), st.integers(0, 99), st.integers(0, 9), st.booleans())
def test_comments_are_read_back(job: str, epoch: int, rank: int, copy: int, sweep: bool) -> None:
    comment = Comment("run-1", LeaseKey(job, epoch, rank, copy), 2, sweep)
    assert Comment.parse(str(comment)) == comment


@given(st.text())
def test_other_comments_are_not_ours(text: str) -> None:
    found = Comment.parse(text)
    assert found is None or str(found) == text


def test_addresses() -> None:
    options = SlurmOptions.parse("gpu,time=2-00:30:00,account=lab,exclude=n1,exclude=n2")
    assert (options.partition, options.time_limit) == ("gpu", "2-00:30:00")
    assert options.exclude == {"n1", "n2"}
    assert options.arguments() == ["--partition=gpu", "--account=lab"]
    assert SlurmOptions.parse("").arguments() == []


@pytest.mark.parametrize("address", ["gpu,--wrap=x", "a b", "gpu,cpu", "gpu,nice=3", "-p"])
def test_malformed_addresses_are_refused(address: str) -> None:
    with pytest.raises(HostError, match="expected PARTITION"):
        SlurmOptions.parse(address)


def test_a_script_survives_any_path() -> None:
    text = script(Path("/s/a b'c$(id)"), Path("/s/jobs/j/leases/e1-r0"), "/opt/py thon", "hold")
    assert "'/s/a b'\"'\"'c$(id)/supervisor.py'" in text
    assert "'/opt/py thon'" in text


def test_mixed_types_and_no_node_say_what_to_do() -> None:
    idle = frozenset({"IDLE"})
    mixed = SlurmNode("n0", idle, 8, 4000, "n0", {"a100": 1, "v100": 1}, {})
    with pytest.raises(
        HostError, match="types a100, v100, expected one type a node; leave it out with exclude=n0"
    ):
        discovered_nodes({"n0": mixed}, {}, frozenset(), "here")
    down = SlurmNode("n0", frozenset({"DOWN"}), 8, 4000, "n0", {"v100": 1}, {})
    with pytest.raises(HostError, match=r"no free device in here \(1 down\)"):
        discovered_nodes({"n0": down}, {}, frozenset(), "here")


def test_slurm_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        HostError, match=r"sbatch, squeue, scancel, sinfo not found on PATH.*slurm-client"
    ):
        open_host("slurm", tmp_path / "state", "run")


def test_a_count_of_gpus_that_is_late_makes_no_stranger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job of this run ended; Slurm's count of GPUs in use knows of it a second later only."""
    programs = {
        "squeue": "exit 0",
        "sbatch": "exit 1",
        "scancel": "exit 1",
        "sinfo": """case "$*" in *%P*) echo 'gpu*|infinite'; exit;; esac
used=$(cat used 2>/dev/null || echo 2); echo 0 > used
echo "n0|idle|8|4000|n0|gpu:v100:$used(IDX:0-1)|gpu:v100:2|"
""",
    }
    for name, text in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(slurm_host, "COUNTS_S", 0.01)
    host = open_host("slurm", tmp_path / "state", "run")
    assert [len(node.devices) for node in host.discover()] == [2]
    (tmp_path / "used").write_text("1")
    assert [len(node.devices) for node in host.rediscover()] == [1]
    assert [len(node.devices) for node in host.rediscover()] == [2]


def test_slurm_without_a_controller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("sbatch", "squeue", "scancel", "sinfo"):
        (tmp_path / name).write_text(
            "#!/bin/sh\necho 'slurm_load_jobs error: Unable to contact' >&2; exit 1\n"
        )
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    host = open_host("slurm", tmp_path / "state", "run")
    with pytest.raises(
        HostError, match="squeue exited with 1: slurm_load_jobs error: Unable to contact"
    ):
        host.discover()
