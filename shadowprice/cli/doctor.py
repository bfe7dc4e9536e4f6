"""``shadowprice doctor``: what is installed, what is missing for what, and how to get it.

Nothing is imported that it asks about, and nothing waits longer than a few seconds: versions are read from the
metadata of installed distributions, programs are asked with a time limit.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from shadowprice.cli.options import with_options
from shadowprice.cli.results import ResultForm, print_result
from shadowprice.cli.show import console, print_rows

LIMIT_S = 3.0
"""Longest wait for the answer of a program [s]."""


@dataclass(frozen=True)
class Distribution:
    """A distribution, and what it is for.

    Parameters
    ----------
    name : str
        On the package index.
    of : str
        Kind of part: ``solver``, ``host`` ...
    needed_for : str
        Commands and options that do not work without it.
    how : str
        Command that installs it.
    required : bool
        Comes with the package itself.
    """

    name: str
    of: str
    needed_for: str
    how: str
    required: bool = False


def _extra(name: str) -> str:
    return f"pip install 'shadowprice[{name}]'"


_AGAIN = "pip install --force-reinstall shadowprice"
DISTRIBUTIONS = (
    Distribution("highspy", "solver", "linear and mixed-integer programmes", _AGAIN, True),
    Distribution("ortools", "solver", "CP-SAT: optima, the second search", _AGAIN, True),
    Distribution("pyscipopt", "solver", "--solver scip", _extra("scip")),
    Distribution("gurobipy", "solver", "--solver gurobi", "pip install gurobipy, and a licence"),
    Distribution("mosek", "solver", "--solver mosek", "pip install mosek, and a licence"),
    Distribution("xpress", "solver", "--solver xpress", "pip install xpress, and a licence"),
    Distribution("numba", "speed", "the compiled loop of large simulations", _AGAIN, True),
    Distribution("pyomo", "models", "every formulation", _AGAIN, True),
    Distribution("hypothesis", "tests", "laws, adversary --method hypothesis", _extra("test")),
    Distribution("plotly", "pages", "trace --page, pages of real runs", _extra("pages")),
    Distribution("requests", "data sets", "data", _extra("data")),
    Distribution("scikit-learn", "predictor", "the predictor forest", _extra("forest")),
    Distribution("ray", "host", "execute --hosts ray", _extra("ray")),
    Distribution("torch", "training", "callbacks for PyTorch, parameters.pt", _extra("torch")),
    Distribution("lightning", "training", "the callback for Lightning", _extra("lightning")),
    Distribution(
        "transformers", "training", "the callback for Hugging Face", _extra("huggingface")
    ),
    Distribution("jupyter", "notebooks", "docs/notebooks", _extra("notebooks")),
)


@dataclass(frozen=True)
class InstalledPart:
    """A part of an installation.

    Parameters
    ----------
    name, of, installed : str
        Part, its kind, and version or description; ``installed`` is empty if it is not there.
    needed_for, how : str
        What does not work without it, and how to get it.
    required : bool
        The package does not work without it.
    """

    name: str
    of: str
    installed: str
    needed_for: str
    how: str
    required: bool = False


def installed_parts() -> Iterator[InstalledPart]:
    """All parts: this Python, distributions, Slurm, Apptainer, GPUs."""
    where = f"{platform.python_version()} at {sys.executable}"
    yield InstalledPart("python", "base", where, "everything", "", required=True)
    yield InstalledPart("shadowprice", "base", _version("shadowprice"), "everything", _AGAIN, True)
    for each in DISTRIBUTIONS:
        version = _version(each.name)
        yield InstalledPart(each.name, each.of, version, each.needed_for, each.how, each.required)
    slurm = "Slurm's clients: sbatch, squeue, scontrol, sinfo, srun, from your cluster"
    yield InstalledPart("slurm", "host", _slurm(), "execute --hosts slurm", slurm)
    image = "Apptainer, from your distribution or its administrators"
    runtime = (_asked("apptainer", "--version").splitlines() or [""])[0]
    yield InstalledPart("apptainer", "host", runtime, "jobs with `container:`", image)
    groups = "start `execute` by `systemd-run --user --scope -p Delegate=yes`; processes are searched without"
    yield InstalledPart("control groups", "host", _groups(), "ends of detached jobs", groups)
    cores = f"{len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count()} cores"
    yield InstalledPart("cpu slots", "devices", cores, "execute --hosts local", "", required=True)
    driver = "a driver; execute --hosts local uses CPU slots without"
    yield InstalledPart("gpus", "devices", _gpus(), "execute on GPUs", driver)


def _version(name: str) -> str:
    try:
        return str(version(name))
    except (PackageNotFoundError, ValueError, TypeError, OSError):
        # Metadata may be there and broken: then it cannot be said to be installed.
        return ""


def _asked(program: str, *arguments: str) -> str:
    """First lines of what a program prints; empty if it is not there, fails or takes too long."""
    path = shutil.which(program)
    if path is None:
        return ""
    try:
        done = subprocess.run(
            [path, *arguments],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=LIMIT_S,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _slurm() -> str:
    clients = ("sbatch", "squeue", "scontrol", "sinfo", "srun")
    if any(shutil.which(client) is None for client in clients):
        return ""
    return (_asked("sbatch", "--version") or "version unknown").splitlines()[0]


def _groups() -> str:
    """Control group of this process, if it is of version 2 and may be divided; empty if not."""
    try:
        mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return ""
    places = [words[1] for words in mounts if len(words) > 2 and words[2] == "cgroup2"]
    own = [line.removeprefix("0::") for line in lines if line.startswith("0::")]
    if not places or not own:
        return ""
    folder = places[0] + own[0].rstrip("/")
    return folder if os.access(folder, os.W_OK) else ""


def _gpus() -> str:
    names = _asked("nvidia-smi", "--query-gpu=name", "--format=csv,noheader").splitlines()
    counts = {name.strip(): names.count(name) for name in names if name.strip()}
    return ", ".join(f"{count} x {name}" for name, count in counts.items())


@with_options
def doctor_command(*, form: ResultForm) -> None:
    """Say what is installed, what is missing for what, and how to get it."""
    parts = list(installed_parts())
    print_result(form, lambda: _show(parts), lambda: [asdict(each) for each in parts])


def _show(parts: Sequence[InstalledPart]) -> None:
    rows = ((each.name, each.installed, each.needed_for) for each in parts if each.installed)
    print_rows(("part", "version", "for"), rows, title="installed")
    missing = [each for each in parts if not each.installed]
    if missing:
        rows = ((each.name, each.needed_for, each.how) for each in missing)
        heads = ("part", "without it there is no", "how to get it")
        print_rows(heads, rows, title="not installed")
    broken = [each.name for each in missing if each.required]
    if broken:
        console.print(f"the package itself needs {', '.join(broken)}", style="red", highlight=False)
    else:
        console.print("all that the package itself needs is there", highlight=False)
