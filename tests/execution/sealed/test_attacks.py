"""Each way to learn what is to come, or to change what was done, fails in a sealed process or gains nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shadowprice.errors import InputError, PolicyError
from shadowprice.execution.engine import run
from shadowprice.execution.sealed import policy as sealed_policy
from shadowprice.execution.sealed.policy import SealedOptions, SealedPolicy
from shadowprice.execution.sealed.seal import Protection
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.instance import Instance
from shadowprice.instances.workload import Workload
from shadowprice.proofs.testing.future import other_future
from shadowprice.solvers.registry import policy as policy_by_name
from support.sealed_here import SealedHere

LOOKING = """
import gc
from shadowprice.solvers.policy import Decision

class Cheat:
    name, knows, preemptive = "cheat", frozenset(), False

    def decide(self, state):
        found = (each for each in gc.get_objects() if type(each).__name__ == "Workload")
        work = next(each.work for each in found if str(each.id[0]).startswith("of this test"))
        decision = Decision(state)
        for job in sorted(state.waiting, key=lambda job: work[job]):
            decision.start(job)
        return decision
"""
"""Twelve lines that declare to know nothing, and find the run times of all jobs."""


def instance(count: int = 12) -> Instance:
    random = np.random.default_rng(5)
    jobs = Workload.from_columns(
        arrival_s=[0.0] * count,
        gpus=random.choice([1, 2], count).tolist(),
        work=random.permutation(count) + 1.0,
        id=[f"of this test {k}" for k in range(count)],
    )
    return Instance(Cluster.parse("1x2"), jobs)


def test_the_cheat_finds_run_times_here_and_none_in_a_sealed_process(tmp_path: Path) -> None:
    file = tmp_path / "cheat.py"
    file.write_text(LOOKING, encoding="utf-8")
    unsealed = run(instance(), policy_by_name(f"{file}:Cheat"))
    first = unsealed.schedule.job[unsealed.schedule.start_s == 0]
    shortest = np.argsort(instance().workload.work, kind="stable")[0]
    assert shortest in first, "the cheat of this test no longer cheats"
    with (
        SealedPolicy(f"{file}:Cheat") as sealed,
        pytest.raises(PolicyError, match="StopIteration"),
    ):
        run(instance(), sealed)


ATTACKS: dict[str, tuple[Protection, str]] = {
    "reads /proc": (Protection.FILES, "pathlib.Path(f'/proc/{os.getppid()}/cmdline').read_bytes()"),
    "lists processes": (Protection.FILES, "os.listdir('/proc')"),
    "reads the environment": (Protection.FILES, "open(f'/proc/{os.getppid()}/environ').read()"),
    "reads memory": (Protection.MEMORY, "open(f'/proc/{os.getppid()}/mem', 'rb')"),
    "writes memory": (Protection.MEMORY, "open(f'/proc/{os.getppid()}/mem', 'r+b')"),
    "writes memory by a call": (
        Protection.MEMORY,
        "through('process_vm_writev', os.getppid(), 0, 0, 0, 0, 0)",
    ),
    "traces the engine": (Protection.MEMORY, "through('ptrace', 16, os.getppid(), 0, 0)"),
    "opens the trace": (Protection.FILES, "pathlib.Path(TRACE).read_text()"),
    "lists its folder's neighbours": (
        Protection.FILES,
        "open(os.path.dirname(TRACE) + '/../other.csv')",
    ),
    "reads data of the package": (
        Protection.FILES,
        "next(pathlib.Path(shadowprice.__file__).parent.glob('instances/tight/*.json')).read_text()",
    ),
    "leaves a note": (Protection.WRITING, "open(tempfile.gettempdir() + '/note', 'w').write('1')"),
    "leaves a note in memory": (Protection.WRITING, "open('/dev/shm/note', 'w').write('1')"),
    "removes a file": (Protection.WRITING, "os.unlink(TRACE)"),
    "notes at its file": (Protection.WRITING, "os.setxattr(__file__, 'user.known', b'1')"),
    "changes times of its file": (Protection.WRITING, "os.utime(__file__, (1, 1))"),
    "changes rights of its file": (Protection.WRITING, "os.chmod(__file__, 0o600)"),
    "locks its file": (Protection.WRITING, "fcntl.flock(os.open(__file__, 0), fcntl.LOCK_EX)"),
    "locks a part of its file": (
        Protection.WRITING,
        "fcntl.lockf(os.open(__file__, 0), fcntl.LOCK_SH)",
    ),
    "kills the engine": (Protection.SIGNALS, "os.kill(os.getppid(), 9)"),
    "signals a thread of the engine": (
        Protection.SIGNALS,
        "through('tgkill', os.getppid(), os.getppid(), 0)",
    ),
    "has the engine signalled": (
        Protection.SIGNALS,
        "fcntl.fcntl(0, fcntl.F_SETOWN, os.getppid())",
    ),
    "slows the engine": (Protection.SIGNALS, "os.setpriority(0, os.getppid(), 19)"),
    "reschedules the engine": (Protection.SIGNALS, "os.sched_setaffinity(os.getppid(), {0})"),
    "reads the engine's clock": (
        Protection.SIGNALS,
        "time.clock_gettime(((~os.getppid()) << 3) | 2)",
    ),
    "leaves the group that is ended": (Protection.SIGNALS, "os.setsid()"),
    "opens a connection": (Protection.NETWORK, "socket.create_connection(('127.0.0.1', 9), 0.1)"),
    "sends a datagram": (
        Protection.NETWORK,
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'1', ('127.0.0.1', 9))",
    ),
    "opens a local socket": (Protection.NETWORK, "socket.socketpair()"),
    "forks": (Protection.PROCESSES, "os.fork()"),
    "runs a program": (Protection.PROCESSES, "subprocess.run(['/bin/true'])"),
    "becomes a program": (Protection.PROCESSES, "os.execv('/bin/true', ['true'])"),
    "raises its limits": (Protection.SPACE, "resource.setrlimit(resource.RLIMIT_AS, (-1, -1))"),
    "takes more memory": (Protection.SPACE, "bytearray(10**11)"),
}

TRYING = """
import ctypes, fcntl, os, pathlib, resource, socket, subprocess, tempfile, time
import shadowprice
from shadowprice.solvers.policy import Decision

TRACE = {trace!r}

def through(call, *arguments):
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, call)(*map(ctypes.c_long, arguments)) < 0:
        raise OSError(ctypes.get_errno(), call)

def attempt():
    succeeded = []
    for name, code in {attacks!r}:
        try:
            exec(code)
        except (OSError, ValueError, MemoryError):
            continue
        succeeded.append(name)
    if succeeded:
        raise RuntimeError("got through: " + ", ".join(succeeded))

class Mine:
    name, knows, preemptive = "mine", frozenset(), False

    def decide(self, state):
        {when}
        return Decision(state).start_all()

{now}
"""


@pytest.mark.parametrize("early", [True, False], ids=["when it is loaded", "when it decides"])
def test_attacks_fail(tmp_path: Path, early: bool) -> None:
    folder = tmp_path / "policies"
    folder.mkdir()
    trace = folder / "jobs.csv"
    trace.write_text("arrival_s,gpus,work\n0,1,5\n", encoding="utf-8")
    (tmp_path / "other.csv").write_text("0", encoding="utf-8")
    file = folder / "mine.py"

    def write(names: list[str]) -> None:
        text = TRYING.format(
            trace=str(trace),
            attacks=[(name, ATTACKS[name][1]) for name in names],
            when="pass" if early else "attempt()",
            now="attempt()" if early else "",
        )
        file.write_text(text, encoding="utf-8")

    with SealedPolicy("fifo") as sealed:
        enforced = sealed.seal.enforced
    tried = [name for name, (protection, _) in ATTACKS.items() if protection in enforced]
    write(tried)
    with SealedPolicy(f"{file}:Mine") as sealed:
        run(instance(), sealed)
    assert trace.exists()
    if sys.platform == "linux":
        assert len(tried) > 3
    # Without the seal those get through that are no danger here: the test can fail.
    harmless = ["lists processes", "reads data of the package", "opens the trace"]
    write(harmless)
    with pytest.raises((InputError, PolicyError), match=f"got through: {', '.join(harmless)}"):
        run(instance(), policy_by_name(f"{file}:Mine"))


def test_what_a_process_reports_is_what_was_tried() -> None:
    with SealedPolicy("fifo") as sealed:
        both = (*sealed.seal.enforced, *sealed.seal.missing)
    assert sorted(both) == sorted(Protection)
    if sys.platform == "linux":
        assert Protection.SPACE in sealed.seal.enforced


def test_nothing_is_open_in_its_process(tmp_path: Path) -> None:
    kept_open = (tmp_path / "secret").open("w+b")
    os.set_inheritable(kept_open.fileno(), True)
    file = tmp_path / "mine.py"
    file.write_text(
        "import os\n"
        "from shadowprice.solvers.policy import Decision\n"
        "class Mine:\n"
        "    name, knows, preemptive = 'mine', frozenset(), False\n"
        "    def decide(self, state):\n"
        "        for each in range(4, 64):\n"
        "            try:\n"
        "                os.fstat(each)\n"
        "            except OSError:\n"
        "                continue\n"
        "            raise RuntimeError(f'{each} is open')\n"
        "        return Decision(state).start_all()\n",
        encoding="utf-8",
    )
    with kept_open, SealedPolicy(f"{file}:Mine") as sealed:
        run(instance(), sealed)


def test_environment_and_arguments_say_nothing_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACE_OF_THE_RUN", "jobs.csv")
    file = tmp_path / "mine.py"
    file.write_text(
        "import os, sys\n"
        "from shadowprice.solvers.policy import Decision\n"
        "class Mine:\n"
        "    name, knows, preemptive = 'mine', frozenset(), False\n"
        "    def decide(self, state):\n"
        "        if 'TRACE_OF_THE_RUN' in os.environ or len(sys.argv) > 1 or os.getcwd() != '/':\n"
        "            raise RuntimeError('is told')\n"
        "        return Decision(state).start_all()\n",
        encoding="utf-8",
    )
    with SealedPolicy(f"{file}:Mine") as sealed:
        run(instance(), sealed)


# Bytes.


def lines(policy: Any, instance_: Instance) -> list[bytes]:
    sealed = SealedHere(policy)
    run(instance_, sealed)
    return sealed.lines


def some_jobs(types: bool, seed: int) -> Instance:
    random = np.random.default_rng(seed)
    count = 25
    columns: dict[str, Any] = {
        "arrival_s": np.sort(random.integers(0, 100, count)).tolist(),
        "gpus": random.choice([1, 2], count).tolist(),
        "work": (random.random(count) * 90 + 10).tolist(),
    }
    if types:
        columns["throughput"] = np.stack((random.random(count) + 1, random.random(count) + 0.3), 1)
        columns["gpu_types"] = ("fast", "slow")
    cluster = Cluster.parse("2x2:fast,2x2:slow" if types else "2x4")
    return Instance(cluster, Workload.from_columns(**columns))


@pytest.mark.parametrize("types", [False, True])
@pytest.mark.parametrize("name", ["fifo", "las2d", "gandiva"])
def test_bytes_of_the_past_do_not_depend_on_run_times_to_come(name: str, types: bool) -> None:
    for seed in range(5):
        one = some_jobs(types, seed)
        policy = policy_by_name(name)
        schedule = run(one, policy).schedule
        last = np.zeros(len(one.workload))
        np.maximum.at(last, schedule.job, schedule.end_s)
        longest = int(last.argmax())
        work = one.workload.work.copy()
        work[longest] *= 3.7
        other = replace(one, workload=replace(one.workload, work=work))
        mine, theirs = lines(policy, one), lines(policy, other)
        until = f'"now_s":{float(last[longest])!r},'.encode()
        same = next(k for k, line in enumerate(mine) if until in line)
        assert same > 20
        assert mine[:same] == theirs[:same]


def test_bytes_of_the_past_do_not_depend_on_arrivals_to_come() -> None:
    for types in (False, True):
        one = some_jobs(types, 3)
        early = one.workload.arrival_s < 60
        other = other_future(one, early)
        mine, theirs = (lines(policy_by_name("fifo"), each) for each in (one, other))
        first = float(one.workload.arrival_s[~early].min())
        same = next(k for k, line in enumerate(mine) if f'"now_s":{first!r},'.encode() in line)
        assert same > 10
        assert mine[:same] == theirs[:same]


def test_bytes_hold_run_times_only_for_who_declares_them() -> None:
    one = some_jobs(False, 1)
    text = b"\n".join(lines(policy_by_name("fifo"), one))
    assert b"run_s" not in text
    assert b"left_s" not in text
    assert b"service_gpu_s" not in text
    assert b"run_s" in b"\n".join(lines(policy_by_name("srtf"), one))


# Other languages.

EXAMPLES = Path(__file__).parents[3] / "examples" / "sealed"


def awk() -> list[str]:
    """An awk that reads line by line."""
    said = subprocess.run(["awk", "-W", "version"], capture_output=True, text=True, check=False)
    return ["awk", "-W", "interactive"] if "mawk" in said.stdout + said.stderr else ["awk"]


def test_a_policy_in_awk_is_first_come_first_served() -> None:
    one = some_jobs(False, 8)
    with SealedPolicy([*awk(), "-f", str(EXAMPLES / "fifo.awk")]) as sealed:
        assert sealed.name == "fifo-awk"
        schedule = run(one, sealed).schedule
    expected = run(one, policy_by_name("fifo")).schedule
    assert np.array_equal(schedule.job, expected.job)
    assert np.array_equal(schedule.start_s, expected.start_s)
    assert np.array_equal(schedule.node, expected.node)


def test_a_command_without_this_package() -> None:
    command = [sys.executable, "-S", str(EXAMPLES / "smallest_gang_first.py")]
    one = some_jobs(False, 9)
    with SealedPolicy(command) as sealed:
        schedule = run(one, sealed).schedule
    assert len(set(schedule.job.tolist())) == len(one.workload)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("read x; echo nonsense", "its process answers 'nonsense'"),
        (
            'read x; echo \'{"name":"a"}\'; read x; read x; echo \'{"stop":[4]}\'',
            "job 4 is stopped, but does not run",
        ),
        (
            'read x; echo \'{"name":"a"}\'; read x; read x; echo \'{"start":[{"job":99}]}\'',
            "asks for job 99",
        ),
        ('read x; echo \'{"name":"a"}\'; read x; read x; echo \'{"go":1}\'', "unknown field `go`"),
        (
            'read x; echo \'{"name":"a","chooses_amounts":true}\'',
            "unknown field `chooses_amounts`",
        ),
        ('read x; echo \'{"name":"a","version":9}\'', "speaks version 9, expected 1"),
        (
            'read x; echo \'{"name":"a"}\'; read x; read x; echo no use >&2; exit 4',
            "its process ended with code 4: no use",
        ),
        (
            'cat /etc/passwd >/dev/null && echo "open" ; exit 5',
            "ended with code 5: .*(denied|not permitted)",
        ),
    ],
)
def test_what_a_command_gets_wrong_is_one_sentence(
    tmp_path: Path, script: str, message: str
) -> None:
    file = tmp_path / "policy.sh"
    file.write_text(script + "\n", encoding="utf-8")
    with (
        pytest.raises((InputError, PolicyError), match=message),
        SealedPolicy(["sh", str(file)]) as sealed,
    ):
        run(instance(), sealed)


def test_a_command_that_is_not_there() -> None:
    with pytest.raises(InputError, match="expected a program that can be run"):
        SealedPolicy(["no-such-program"])


def test_what_the_system_lacks_is_said_and_the_rest_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a system without Landlock, seccomp and namespaces."""
    lacking = (
        "import shadowprice.execution.sealed.linux as system; "
        "system.PRESENT = False; system.landlock_version = lambda: 0; "
        "from shadowprice.execution.sealed.child import main"
    )
    boot = sealed_policy.BOOT.replace(
        "from shadowprice.execution.sealed.child import main", lacking
    )
    monkeypatch.setattr(sealed_policy, "BOOT", boot)
    file = tmp_path / "cheat.py"
    file.write_text(LOOKING, encoding="utf-8")
    with SealedPolicy("fifo") as fifo:
        run(instance(), fifo)
    assert Protection.NETWORK in fifo.seal.missing
    assert Protection.FILES in fifo.seal.missing
    assert f"missing here: {Protection.FILES}" in str(fifo.seal)
    with SealedPolicy(f"{file}:Cheat") as cheat, pytest.raises(PolicyError, match="StopIteration"):
        run(instance(), cheat)


MESSAGES = {
    "a deep answer": (
        "os.write(3, b'{\"version\":1,\"name\":\"x\",\"f\":' + b'[' * 60000 + b']' * 60000 + b'}\\n')",
        "answers",
    ),
    "an unnamed signal": ("signal.raise_signal(40)", "by signal 40"),
    "commands to a terminal": ("raise RuntimeError('\\x1b[2J\\x9bdone')", r"\?\[2J\?done"),
}


@pytest.mark.parametrize("what", MESSAGES)
def test_what_a_process_says_of_itself_is_one_line_of_text(tmp_path: Path, what: str) -> None:
    code, message = MESSAGES[what]
    file = tmp_path / "mine.py"
    file.write_text(f"import os, signal\n{code}\n", encoding="utf-8")
    with pytest.raises((InputError, PolicyError), match=message) as refused:
        SealedPolicy(f"{file}:Mine")
    assert str(refused.value).isprintable()


def test_a_long_sample_of_services_reaches_its_process() -> None:
    """An argument of a process has at most 128 KiB."""
    samples = tuple(float(k % 977 + 1) for k in range(40_000))
    with SealedPolicy("gittins2d", options=SealedOptions(samples=samples)) as sealed:
        assert run(instance(), sealed).schedule.end_s.size >= 12
