"""What real hosts run on, for CI: install what can be had, and say afterwards what was tested.

``engines.py install slurm`` puts Slurm on this machine (root and apt-get), ``engines.py install ray
torch`` Ray and PyTorch into ``.venv``. What cannot be installed is one line of output, never a
failure: the tests that need it are then skipped. ``engines.py report TESTS.xml ...`` prints how many
tests ran for each engine and why others were skipped; it fails if an engine is there and its tests
were skipped all the same.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree
from collections.abc import Iterator
from pathlib import Path

PYTHON = Path(".venv/bin/python")
SLURM = ("slurmctld", "slurmd", "slurm-client", "munge")
SLURM_PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch")
# PyTorch of exactly this version: a machine may have it at hand, and later ones bring gigabytes.
WHEELS = {"ray": "ray==2.60.*", "torch": "torch==2.13.0"}
NEEDED_BYTES = {"ray": 1 << 30, "torch": 3 << 30}
LIMIT_S = 420
# Engine: files of its tests, and how a test that lacks it says so.
TESTS = {
    "local": (r"test_(local|supervisor|lease|driver|fault|execution)", r"(?!)"),
    "ray": (r"test_ray", r"\bRay is not installed|No module named 'ray'|could not import 'ray'"),
    "slurm": (r"test_slurm", r"\bSlurm is not installed|slurmd with fake GPUs needs root"),
    "torch": (r"torch|callbacks|example", r"(?i)torch\w* is not installed|'torch'"),
}


def say(text: str) -> None:
    """One line, at once."""
    print(text, flush=True)


def carry_out(what: str, *argv: str, limit_s: int = LIMIT_S) -> bool:
    """Whether a command succeeded in time; its last words if not."""
    began = time.monotonic()
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(
            argv,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=limit_s,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        say(f"{what}: not installed: {error}")
        return False
    if done.returncode:
        last = (done.stdout.strip().splitlines() or ["no output"])[-1]
        say(f"{what}: not installed: {argv[0]} exited with {done.returncode}: {last[:300]}")
        return False
    say(f"{what}: {time.monotonic() - began:.0f} s")
    return True


def has_slurm() -> bool:
    """Whether its programs are here."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin"
    return os.geteuid() == 0 and all(shutil.which(name, path=path) for name in SLURM_PROGRAMS)


def has_module(name: str) -> bool:
    """Whether the tests' Python can import a module."""
    if not PYTHON.exists():
        return False
    done = subprocess.run(
        [PYTHON, "-c", f"import {name}"], capture_output=True, timeout=120, check=False
    )
    return done.returncode == 0


def install_slurm() -> None:
    """From Debian's packages."""
    if has_slurm():
        say("slurm: is installed")
    elif os.geteuid() != 0 or shutil.which("apt-get") is None:
        say("slurm: not installed: this is not root, or there is no apt-get")
    elif carry_out("slurm: apt-get update", "apt-get", "update", "-q", limit_s=120):
        carry_out(
            "slurm: apt-get install",
            "apt-get",
            "install",
            "-q",
            "-y",
            "--no-install-recommends",
            "-o",
            "DPkg::Lock::Timeout=60",
            *SLURM,
        )


def install_module(name: str) -> None:
    """Into the tests' environment, wheels only."""
    if has_module(name):
        say(f"{name}: is installed")
        return
    free = shutil.disk_usage(".").free
    if free < NEEDED_BYTES[name]:
        say(
            f"{name}: not installed: {free >> 20} MiB free on disk, {NEEDED_BYTES[name] >> 20} needed"
        )
        return
    pip = (str(PYTHON), "-m", "pip", "install", "--quiet", "--only-binary", ":all:")
    carry_out(f"{name}: pip install", *pip, WHEELS[name])


def report(*tests: Path) -> int:
    """Counts by engine; 1 if tests of an engine that is here were skipped for want of it."""
    ran = dict.fromkeys(TESTS, 0)
    skipped: dict[str, dict[str, int]] = {engine: {} for engine in TESTS}
    for case in (case for path in tests for case in _cases(path)):
        module = case.get("classname", "").partition(".Test")[0]
        reason = case.find("skipped")
        for engine, (files, lacks) in TESTS.items():
            if reason is not None and re.search(lacks, reason.get("message", "")):
                why = reason.get("message", "")
                skipped[engine][why] = skipped[engine].get(why, 0) + 1
            elif reason is None and re.search(files, module):
                ran[engine] += 1
    here = {"local": True, "slurm": has_slurm(), **{name: has_module(name) for name in WHEELS}}
    failed = False
    for engine in TESTS:
        why = "; ".join(f"{count} skipped: {text}" for text, count in skipped[engine].items())
        say(f"{engine:6} {ran[engine]:5} tests in its files ran{'; ' if why else ''}{why}")
        none = engine != "torch" and not ran[engine]
        if here[engine] and (skipped[engine] or none):
            say(f"error: {engine} is installed, and its tests did not all run")
            failed = True
    return int(failed)


def _cases(path: Path) -> Iterator[xml.etree.ElementTree.Element]:
    return xml.etree.ElementTree.parse(path).iter("testcase")


def main() -> int:
    """Install, or report."""
    if sys.argv[1:] == ["install", "slurm"]:
        install_slurm()
        return 0
    if sys.argv[1:] == ["install", *WHEELS]:
        for name in WHEELS:
            install_module(name)
        return 0
    if len(sys.argv) >= 3 and sys.argv[1] == "report":
        return report(*map(Path, sys.argv[2:]))
    say("usage: engines.py install slurm | install ray torch | report TESTS.xml ...")
    return 2


if __name__ == "__main__":
    sys.exit(main())
