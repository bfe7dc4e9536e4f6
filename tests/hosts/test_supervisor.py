"""The supervisor of one rank, alone: hostile commands, full disks, deaths; by its files only."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shadowprice.hosts import lease_files
from shadowprice.hosts.lease_files import ask_stop, read_status, renew
from shadowprice.hosts.protocol import Device, Exit, LaunchSpec, LeaseKey, Phase
from shadowprice.hosts.supervision.files import RESERVED_BYTES, read_json, write_json
from shadowprice.hosts.supervision.output import Log, open_log
from shadowprice.hosts.supervision.processes import TAG, descendants, processes
from support.host_conformance import IGNORES_TERM, SAVES, living, python, shell

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="supervisors need Linux"),
    pytest.mark.timeout(60),
]


class Rank:
    """A lease's directory and its supervisor."""

    def __init__(self, state: Path, argv: tuple[str, ...], **settings: object) -> None:
        self.directory = state / "jobs" / "job" / "leases" / "e1-r0"
        values = {"ttl_s": 60.0, "grace_s": 10.0, "env": {}, "working_directory": state, **settings}
        device = (Device("localhost", 0, "localhost/cpu:0"),)
        key = LeaseKey("job", 1)
        self.order = LaunchSpec(key, device, False, argv, directory=self.directory, **values)  # type: ignore[arg-type]
        lease_files.copy_supervisor(state)
        lease_files.write_order(self.order)
        self.state = state
        self.process: subprocess.Popen[bytes] | None = None

    def supervise(self) -> subprocess.Popen[bytes]:
        argv = lease_files.supervisor_argv(self.state, str(self.directory))
        self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, start_new_session=True)
        return self.process

    def start(self) -> Rank:
        self.supervise()
        self.wait(lambda: (self.directory / "supervisor.json").exists())
        return self

    def up(self, text: str = "up") -> Rank:
        self.start()
        self.wait(lambda: text in self.output())
        return self

    def output(self) -> str:
        path = self.directory / "output.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def wait(self, condition: Callable[[], bool], within_s: float = 20.0) -> None:
        until = time.monotonic() + within_s
        while not condition():
            assert time.monotonic() < until, (self.output(), read_status(self.directory))
            time.sleep(0.005)

    def ended(self, within_s: float = 20.0) -> Exit:
        self.wait(lambda: read_status(self.directory).phase is Phase.ENDED, within_s)
        assert not living(str(self.directory))
        found = read_status(self.directory).exit
        assert found is not None
        return found

    def clean_up(self) -> None:
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.process.pid, signal.SIGCONT)
            self.process.terminate()
            ask_stop(self.directory, 0.0, "the test is over")
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(5.0)
            self.process.kill()
            self.process.wait()
        for pid in living(str(self.directory)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@pytest.fixture
def rank(tmp_path: Path) -> Iterator[Callable[..., Rank]]:
    made: list[Rank] = []

    def make(argv: tuple[str, ...], *, state: Path | None = None, **settings: object) -> Rank:
        made.append(Rank(state or tmp_path / "state", argv, **settings))
        return made[-1]

    (tmp_path / "state").mkdir(mode=0o700)
    yield make
    for item in made:
        item.clean_up()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 512 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=512k,mode=0700", "tmpfs", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"cannot mount a small file system: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_workers_of_a_command_that_saves_are_left_alone(rank: Callable[..., Rank]) -> None:
    code = (
        "import os,signal,sys,time\n"
        "if os.fork() == 0:\n"
        "    signal.signal(15, lambda *_: print('worker was told', flush=True))\n"
        "    print('worker', flush=True)\n"
        "    while True: time.sleep(60)\n"
        "def save(*_):\n"
        "    time.sleep(0.5); print('saved', flush=True); os._exit(75)\n"
        "signal.signal(15, save)\n"
        "print('up', flush=True)\n"
        "time.sleep(600)"
    )
    run = rank(python(code), grace_s=2.0).up("worker")
    run.wait(lambda: "up" in run.output())
    ask_stop(run.directory, 60.0, "round over")
    run.wait(lambda: "saved" in run.output())
    assert "told" not in run.output().partition("saved")[0]
    # The worker is told only now, and killed soon: a command that saved needs no more time.
    found = run.ended(10.0)
    assert (found.code, found.reason, found.forced) == (75, "stopped", True)


def test_a_wrapper_that_passes_no_signal_on(rank: Callable[..., Rank]) -> None:
    code = f'trap : TERM; {sys.executable} -I -S -c "{SAVES}"; exit $?'
    run = rank(shell(code)).up()
    ask_stop(run.directory, 2.0, "round over")
    found = run.ended()
    assert "saved" in run.output()
    assert (found.reason, found.forced) == ("stopped", False)


def test_stopped_processes_of_a_command_go_on_when_it_is_to_end(rank: Callable[..., Rank]) -> None:
    """A command that waits for a child that somebody suspended: both are continued, and it saves."""
    code = (
        "import os, signal, subprocess, sys\n"
        "signal.signal(15, lambda *_: None)\n"
        "child = subprocess.Popen(['sh', '-c', 'trap \"exit 0\" CONT; echo up; while :; do sleep 0.02; done'])\n"
        "sys.exit(75 if child.wait() == 0 else 1)"
    )
    run = rank(python(code), grace_s=16.0).up()
    recorded = read_json(f"{run.directory}/supervisor.json")
    assert recorded is not None
    leader = recorded["command_pid"]
    for pid in [*sorted(descendants({leader}, processes())), leader]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
    asked_s = time.monotonic()
    ask_stop(run.directory, 16.0, "the test")
    found = run.ended()
    assert (found.code, found.reason, found.forced) == (75, "stopped", False)
    assert time.monotonic() - asked_s < 7.0  # after half of the grace all are asked to end


@pytest.mark.parametrize("link", ["ln", "ln -s", "mkfifo", "rm", "mkdir"])
def test_what_a_command_makes_of_the_space_for_its_end_is_not_written_to(
    rank: Callable[..., Rank], link: str
) -> None:
    here = f'cd "${TAG}" && mv .exit ../kept'
    made = {
        "ln": "ln ../kept .exit",
        "ln -s": "ln -s ../kept .exit",
        "mkfifo": "mkfifo .exit",
        "rm": "true",
        "mkdir": "mkdir .exit exit.json",
    }[link]
    run = rank(shell(f"{here} && {made} && exit 9"))
    run.supervise()
    found = run.ended()
    assert (found.code, found.reason) == (9, "exited")
    kept = run.directory.parent / "kept"
    assert kept.read_bytes() == b" " * RESERVED_BYTES


def test_an_end_takes_the_space_that_was_kept_for_it(rank: Callable[..., Rank]) -> None:
    run = rank(shell("exit 9"))
    run.supervise()
    assert run.ended().code == 9
    assert not (run.directory / ".exit").exists()
    assert (run.directory / "exit.json").stat().st_size < 200


def test_a_chain_of_processes_cannot_run_away(rank: Callable[..., Rank]) -> None:
    code = (
        "import os,signal\n"
        "signal.signal(15, signal.SIG_IGN)\n"
        "print('up', flush=True)\n"
        "while True:\n"
        "    if os.fork(): os._exit(0)\n"
    )
    run = rank(python(code)).up()
    ask_stop(run.directory, 0.2, "round over")
    assert run.ended().forced


def test_a_tree_that_grows_is_killed(rank: Callable[..., Rank]) -> None:
    code = (
        "import os,signal,time\n"
        "signal.signal(15, signal.SIG_IGN)\n"
        "print('up', flush=True)\n"
        "for _ in range(5):\n"
        "    if os.fork() == 0: os.setpgid(0, 0)\n"
        "time.sleep(600)"
    )
    run = rank(python(code)).up()
    run.wait(lambda: len(living(str(run.directory))) >= 32)
    ask_stop(run.directory, 0.1, "round over")
    assert run.ended().forced


def test_signals_to_the_supervisor(rank: Callable[..., Rank]) -> None:
    run = rank(python(SAVES)).up()
    assert run.process is not None
    run.process.send_signal(signal.SIGHUP)
    time.sleep(0.2)
    assert read_status(run.directory).phase is Phase.RUNNING
    run.process.terminate()
    assert run.ended() == Exit(75, "stopped")


def test_a_supervisor_outlives_who_started_it(rank: Callable[..., Rank]) -> None:
    run = rank(python(SAVES))
    argv = lease_files.supervisor_argv(run.state, str(run.directory))
    code = f"import subprocess,time; subprocess.Popen({argv!r}, start_new_session=True); time.sleep(60)"
    driver = subprocess.Popen([sys.executable, "-I", "-c", code], start_new_session=True)
    run.wait(lambda: "up" in run.output())
    os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()
    time.sleep(0.3)
    assert read_status(run.directory).phase is Phase.RUNNING
    renew(run.directory)
    ask_stop(run.directory, 5.0, "round over")
    assert run.ended().code == 75


def test_a_second_supervisor_does_nothing(rank: Callable[..., Rank]) -> None:
    run = rank(shell("echo up; sleep 600")).up()
    first = run.process
    assert first is not None
    assert run.supervise().wait(20.0) == 1
    run.process = first
    assert run.output() == "up\n"
    ask_stop(run.directory, 5.0, "round over")
    run.ended()
    first.wait(5.0)
    assert run.supervise().wait(20.0) == 0
    assert run.output() == "up\n"


def test_a_supervisor_after_a_dead_one_cleans_up(rank: Callable[..., Rank]) -> None:
    run = rank(shell("setsid sleep 600 & echo up; sleep 600")).up()
    assert run.process is not None
    run.process.kill()
    run.process.wait()
    assert run.supervise().wait(20.0) == 0
    assert not living(str(run.directory))
    found = read_json(f"{run.directory}/exit.json")
    assert found is not None
    assert (found["code"], found["detail"]) == (-9, "the supervisor was killed")
    assert found["host_failed"]
    assert run.output() == "up\n"


def test_the_command_dies_with_its_supervisor(rank: Callable[..., Rank]) -> None:
    run = rank(python(IGNORES_TERM)).up()
    assert run.process is not None
    run.process.kill()
    run.process.wait()
    run.wait(lambda: not living(str(run.directory)), 5.0)


def test_a_pause_of_the_supervisor_is_no_expiry(rank: Callable[..., Rank]) -> None:
    run = rank(["sleep", "600"], ttl_s=1.0).start()
    assert run.process is not None
    run.process.send_signal(signal.SIGSTOP)
    time.sleep(1.5)
    renew(run.directory)
    run.process.send_signal(signal.SIGCONT)
    time.sleep(0.3)
    assert read_status(run.directory).phase is Phase.RUNNING
    assert run.ended().reason == "expired"


def test_a_lease_stopped_before_it_began_never_begins(rank: Callable[..., Rank]) -> None:
    run = rank(shell("echo up"))
    lease = read_json(f"{run.directory}/lease.json") or {}
    write_json(f"{run.directory}/lease.json", {**lease, "stop": True})
    assert run.supervise().wait(20.0) == 0
    assert run.ended().reason == "void"
    assert run.output() == ""


def test_what_a_command_inherits(rank: Callable[..., Rank]) -> None:
    code = (
        "import os,signal,sys\n"
        "fds = sorted(int(n) for n in os.listdir('/proc/self/fd'))[:-1]\n"
        "status = dict(l.split(':', 1) for l in open('/proc/self/status') if ':' in l)\n"
        "mask = os.umask(0)\n"
        "print(fds, repr(sys.stdin.read()), oct(mask), int(status['SigBlk'], 16), os.getsid(0) == os.getpid())\n"
        "ignored = int(status['SigIgn'], 16)\n"
        "print([n for n in (1, 2, 3, 13, 15, 17, 25) if ignored >> (n - 1) & 1])"
    )
    run = rank((sys.executable, "-I", "-S", "-c", code)).start()
    assert run.ended().code == 0
    # Python itself ignores SIGPIPE and SIGXFSZ.
    assert run.output() == "[0, 1, 2] '' 0o77 0 True\n[13, 25]\n"
    bare = rank(("grep", "SigIgn", "/proc/self/status"), state=run.state / "bare").start()
    assert bare.ended().code == 0
    # Those above 31 belong to the C library, and are as whoever runs the tests left them.
    assert int(bare.output().split()[1], 16) & 0x7FFFFFFF == 0


def test_output_that_is_closed_or_binary(rank: Callable[..., Rank]) -> None:
    code = "printf '\\377\\000\\033[31mred'; exec >&- 2>&-; sleep 0.5; exit 4"
    run = rank(shell(code)).start()
    found = run.ended()
    assert found.code == 4
    assert (run.directory / "output.log").read_bytes() == b"\xff\0\x1b[31mred"
    assert "red" in found.detail
    assert "\x1b" not in found.detail


@pytest.mark.parametrize(
    ("argv", "settings", "words"),
    [
        (("./absent",), {}, "No such file"),
        (("/etc/passwd",), {}, "Permission denied"),
        (("true",), {"working_directory": Path("/absent/folder")}, "/absent/folder"),
        ((), {}, "order.json"),
        (("true", "nul\0"), {}, "null"),
        (("true",), {"env": {"A=B\0": "x"}}, "null"),
        (("true",), {"env": {"A=B": "x"}}, "illegal"),
        (("true",), {"ttl_s": "soon"}, "order.json"),
    ],
)
def test_what_cannot_be_started_says_why(
    rank: Callable[..., Rank], argv: tuple[str, ...], settings: dict[str, object], words: str
) -> None:
    run = rank(argv, **settings)
    assert run.supervise().wait(20.0) == 0
    found = run.ended()
    assert (found.code, found.reason) == (127, "unstartable")
    assert words in found.detail
    # What cannot be executed is the job's own; an order that is none is not.
    assert found.host_failed is ("order.json" in words)


def test_an_order_that_is_torn(rank: Callable[..., Rank]) -> None:
    run = rank(("true",))
    (run.directory / "order.json").write_text('{"argv": ["tr')
    assert run.supervise().wait(20.0) == 0
    assert run.ended().reason == "unstartable"
    assert run.ended().host_failed


def test_a_command_removes_its_lease(rank: Callable[..., Rank]) -> None:
    run = rank(shell(f'rm -rf "${TAG}"; echo done; sleep 600'), ttl_s=0.5)
    run.supervise()
    run.wait(lambda: (run.directory / "exit.json").exists())
    found = run.ended()
    assert (found.code, found.reason) == (-15, "expired")


def test_a_full_disk_stops_nothing(rank: Callable[..., Rank], small_disk: Path) -> None:
    code = (
        "print('up', flush=True); block = b'x' * 65536\n"
        "import os,time\n"
        "for _ in range(400): os.write(1, block)\n"
        "while not os.path.exists('/dev/shm/' + os.environ['GO']): time.sleep(0.01)\n"
        "os._exit(6)"
    )
    go = f"shadowprice-test-{os.getpid()}"
    run = rank(python(code), state=small_disk, ttl_s=1.0, log_bytes=1 << 16, env={"GO": go}).up()
    with contextlib.suppress(OSError), open(small_disk / "fill", "wb", 0) as file:
        while True:
            file.write(b"x" * 4096)
    for _ in range(20):
        renew(run.directory)
        time.sleep(0.1)
        assert read_status(run.directory).phase is Phase.RUNNING
    try:
        Path("/dev/shm", go).touch()
        found = run.ended()
    finally:
        Path("/dev/shm", go).unlink()
    assert (found.code, found.reason) == (6, "exited")


def test_a_disk_that_is_full_from_the_start(rank: Callable[..., Rank], small_disk: Path) -> None:
    run = rank(shell("sleep 600"), state=small_disk)
    with contextlib.suppress(OSError), open(small_disk / "fill", "wb", 0) as file:
        while True:
            file.write(b"x" * 4096)
    run.supervise()
    time.sleep(0.5)
    assert not living(str(run.directory))
    (small_disk / "fill").unlink()
    assert run.ended().reason == "unstartable"


@given(st.lists(st.binary(max_size=40), max_size=30), st.integers(1, 60), st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_a_log_keeps_its_first_and_its_last_half(
    tmp_path: Path, chunks: list[bytes], limit: int, flush: bool
) -> None:
    path = tmp_path / "output.log"
    path.unlink(missing_ok=True)
    log = Log(open_log(str(path)), limit)
    for chunk in chunks:
        log.add(chunk)
        if flush:
            log.flush()
    log.flush()
    os.close(log.file)
    everything, half = b"".join(chunks), max(1, limit // 2)
    left_out = len(everything) - 2 * half
    if left_out > 0:
        note = f"\n[{left_out} bytes left out]\n".encode()
        everything = everything[:half] + note + everything[-half:]
    assert path.read_bytes() == everything


def test_private_variables_are_gone_before_the_command_begins(rank: Callable[..., Rank]) -> None:
    code = "ls; echo token $TOKEN $OTHER; exit 4"
    env = {"TOKEN": "s3cret-value", "OTHER": "told"}
    run = rank(shell(f'cd "${TAG}"; {code}'), env=env, private=frozenset({"TOKEN"})).start()
    found = run.ended()
    assert "token s3cret-value told" in run.output()
    assert "private.json" not in run.output()
    assert "token [TOKEN] told" in found.detail
    told = [path.name for path in run.directory.iterdir() if b"s3cret" in path.read_bytes()]
    assert told == ["output.log"]


def test_private_variables_of_a_lease_that_never_begins_are_gone_too(
    rank: Callable[..., Rank],
) -> None:
    run = rank(("true",), env={"TOKEN": "s3cret-value"}, private=frozenset({"TOKEN"}))
    private = run.directory / "private.json"
    assert private.stat().st_mode & 0o777 == 0o600
    assert lease_files.void(run.directory)
    assert not private.exists()


def test_a_command_does_not_begin_without_its_private_variables(rank: Callable[..., Rank]) -> None:
    run = rank(("true",), env={"TOKEN": "s3cret-value"}, private=frozenset({"TOKEN"}))
    (run.directory / "private.json").write_text('{"TOK')  # a power cut
    assert run.supervise().wait(20.0) == 0
    found = run.ended()
    assert found.reason == "unstartable"
    assert "private.json" in found.detail


def checking(run: Rank) -> int:
    """The child of a supervisor that waits for a health check, and is to become the command."""
    assert run.process is not None
    children = Path(f"/proc/{run.process.pid}/task/{run.process.pid}/children")
    run.wait(lambda: bool(living(str(run.directory))))
    (child,) = children.read_text().split()
    return int(child)


def test_a_signal_ends_a_health_check(rank: Callable[..., Rank]) -> None:
    run = rank(shell("echo up"), health_check=("sleep", "600"))
    run.supervise()
    checking(run)
    assert run.process is not None
    run.process.terminate()
    assert run.ended(10.0).reason == "void"
    assert run.output() == ""


@pytest.mark.parametrize("who", ["child", "supervisor"])
def test_who_checks_a_node_is_killed(rank: Callable[..., Rank], who: str) -> None:
    run = rank(shell("echo up"), health_check=("sleep", "600"))
    run.supervise()
    child = checking(run)
    assert run.process is not None
    os.kill(child if who == "child" else run.process.pid, signal.SIGKILL)
    run.process.wait(20.0)
    if who == "child":  # what the check left is gone before the lease is over
        assert run.ended(10.0) == Exit(-9, "exited")
    else:  # and nothing became the command without a supervisor
        run.wait(lambda: not Path(f"/proc/{child}").exists())
        assert lease_files.void(run.directory)
    assert run.output() == ""
