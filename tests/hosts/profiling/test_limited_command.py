"""Commands on few CPUs: what they see, how they fail, what they leave behind, how fast they were."""

from __future__ import annotations

import math
import os
import sys
import time
from pathlib import Path

import pytest

from shadowprice.errors import InputError
from shadowprice.hosts.profiling.limited_command import (
    CPUS_VARIABLE,
    LimitedCommand,
    available_cpus,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="CPUs are limited on Linux only")


def python(code: str, **limits: float) -> LimitedCommand:
    return LimitedCommand((sys.executable, "-c", code), **limits)


def test_a_command_sees_its_cpus_and_no_shell() -> None:
    code = (
        f"import os, sys; print(sorted(os.sched_getaffinity(0)), os.environ['{CPUS_VARIABLE}']); "
        "print(sys.argv[1:]); print(repr(sys.stdin.read()))"
    )
    mine = available_cpus()
    _, output = LimitedCommand((sys.executable, "-c", code, "$HOME; exit 3", "a b")).run(1)
    assert output == f"{mine[:1]} 1\n['$HOME; exit 3', 'a b']\n''\n"
    assert sorted(os.sched_getaffinity(0)) == mine


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (
            "import sys; sys.exit('no data')",
            "with 1 CPUs: ended with exit code 1, expected 0; it said: no data",
        ),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", "was killed by signal 15"),
        ("raise ValueError('x' * 10_000)", r"exit code 1.*; it said: x{300}"),
    ],
)
def test_a_command_that_fails(code: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        python(code).run(1)
    assert len(str(caught.value)) < 1000


def test_a_command_that_takes_too_long_leaves_nothing_behind(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    code = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"open({str(note)!r}, 'w').write(str(child.pid))\n"
        "time.sleep(60)"
    )
    began_s = time.monotonic()
    with pytest.raises(InputError, match=r"did not end within 3 s"):
        python(code, timeout_s=3.0).run(1)
    assert time.monotonic() - began_s < 30
    assert _is_gone(int(note.read_text()))


def test_a_command_that_ends_well_leaves_nothing_behind(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    code = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"open({str(note)!r}, 'w').write(str(child.pid))"
    )
    assert python(code).run(1)[0] < 30
    assert _is_gone(int(note.read_text()))


def _is_gone(pid: int) -> bool:
    """Whether a process has ended, or only waits for somebody to read how."""
    for _ in range(200):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state in "ZX":
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize(
    ("argv", "message"),
    [((), "no command is given"), (("no-such-program-here",), "no program 'no-such-program-here'")],
)
def test_no_command(argv: tuple[str, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        LimitedCommand(argv)


@pytest.mark.parametrize("cpus", [0, -1, 100_000])
def test_cpus_that_are_not_there(cpus: int) -> None:
    with pytest.raises(InputError, match=f"cpus is {cpus}, expected 1 to"):
        python("pass").run(cpus)
    with pytest.raises(InputError, match="timeout_s"):
        python("pass", timeout_s=0.0)


def test_the_last_line_counts() -> None:
    output = "a throughput=1\nthroughput=2\n throughput = 3.5e2 \nthroughput:4\nthroughput=\n"
    assert python(f"print({output!r})").throughput(1) == 350.0
    assert python("print('x' * 5_000_000); print('throughput=7')").throughput(1) == 7.0


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("", "printed no line throughput=NUMBER"),
        ("12.5", "printed no line throughput=NUMBER"),
        ("throughput=fast", "printed throughput=fast, expected a number > 0"),
        ("throughput=0", "printed throughput=0"),
        ("throughput=-3", "printed throughput=-3"),
        ("throughput=nan", "printed throughput=nan"),
        ("throughput=inf", "printed throughput=inf"),
    ],
)
def test_output_that_says_nothing(output: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        python(f"print({output!r})").throughput(1)


def test_timed_work() -> None:
    command = ("sleep", "0.5")
    assert 0.0 < LimitedCommand(command, work_per_run=10.0).throughput(1) <= 10.0 / 0.5
    for units in (0.0, -1.0, math.inf):
        with pytest.raises(InputError, match="work of a run"):
            LimitedCommand(command, work_per_run=units)
