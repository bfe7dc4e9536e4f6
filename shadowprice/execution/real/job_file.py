"""Job files: what ``shadowprice execute`` is told to run, as YAML.

::

    defaults:                       # optional: keys for all jobs that do not say otherwise
      gpus: 1
      env: {OMP_NUM_THREADS: 1}     # merged by name
    jobs:
      - name: resnet-a
        command: ["{python}", train.py, --batch, 32, --out, "{checkpoint_dir}"]
        iterations: 5000            # or epochs: 10 with iterations_per_epoch: 500
        model: resnet-18            # optional from here on: see the fields of Job
        gpu_types: [v100, p100]
        throughput: {v100: 40, p100: 21}
        arrival_s: 30
      - name: legacy
        shell: ./run.sh | tee log   # a shell, only where it is asked for
        iterations: 1
        directory: ../legacy        # from the folder of this file on

A job gives either of ``command`` and ``shell``, and either of ``iterations`` and ``epochs``; what it
gives takes the place of both in the defaults. All other keys are refused.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from shadowprice.errors import InfeasibleJobError, InputError
from shadowprice.execution.hosts.protocol import FoundNode
from shadowprice.execution.real.plain_yaml import Tree, parse, read_small, shown
from shadowprice.instances.cluster import Cluster, Node
from shadowprice.instances.entries import LARGEST, ONE_LINE, known_keys, on_one_line
from shadowprice.instances.grid import MAX_TIME_S
from shadowprice.instances.speeds.observations import JOB_PREFIX, kind_name
from shadowprice.instances.speeds.throughputs import Throughputs
from shadowprice.instances.workload import MAX_GANG, Workload

# A job that somebody wants to be run for real, and what its command is told.
#
# Placeholders of a command are ``{python}``, ``{directory}`` and ``{checkpoint_dir}``; everything else
# in braces is the command's own.


_PLACEHOLDER = re.compile(r"\{(python|directory|checkpoint_dir)\}")


@dataclass(frozen=True)
class Job:
    """Job that somebody wants to be run.

    Parameters
    ----------
    name : str
        Unique whatever its case, and safe as the name of a folder.
    command : tuple of str
        Program and arguments, with placeholders; see :meth:`argv`.
    env : mapping of str to str
        Variables of its environment; they may be secrets, and are left out of its ``repr``.
    gpus : int
        Gang size.
    iterations : int
        Steps to do.
    directory : Path
        Where it runs; absolute.
    gpu_types : tuple of str
        Types on which it may run; empty for all.
    cpus, memory_gb : float
        CPU cores and memory [GB] of the whole gang; 0 if it does not matter.
    weight, arrival_s, deadline_s : float
        As in a workload: times [s] count from the beginning of the run; no deadline is infinity.
    model, tenant : str
        Kind of model and owner, empty if unknown.
    throughput : float or mapping of str to float or None
        Iterations per second of the whole gang, on all types or by type (0 or left out: it cannot
        run there); None if unknown.
    """

    name: str
    command: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)
    gpus: int
    iterations: int
    directory: Path
    gpu_types: tuple[str, ...] = ()
    cpus: float = 0.0
    memory_gb: float = 0.0
    weight: float = 1.0
    arrival_s: float = 0.0
    deadline_s: float = math.inf
    model: str = ""
    tenant: str = ""
    throughput: float | Mapping[str, float] | None = None

    @property
    def kind(self) -> str:
        """Name under which its rates are kept: its model, or its own."""
        return kind_name(self.name, self.model)

    @property
    def keeps_checkpoints(self) -> bool:
        """True if the command asks for a directory to save its checkpoints in."""
        return any("{checkpoint_dir}" in text for text in self.command)

    def argv(self, python: str, checkpoint_dir: str) -> tuple[str, ...]:
        """The command with its placeholders replaced, all at once and each once.

        >>> job = Job("a", ("{python}", "t.py", "--out={checkpoint_dir}", "{x}"), {}, 1, 5, Path("/d"))
        >>> job.argv("python3", "/c/{python}")
        ('python3', 't.py', '--out=/c/{python}', '{x}')
        """
        told = {
            "python": python,
            "directory": str(self.directory),
            "checkpoint_dir": checkpoint_dir,
        }
        return tuple(_PLACEHOLDER.sub(lambda found: told[found[1]], text) for text in self.command)


# One job of a job file: its keys, and the checks of their values.


MAX_STEPS = 10**12 - 1
"""Most iterations of a job: folders of checkpoints have names of twelve digits."""

MAX_ARGUMENTS = 10_000
OWN_PREFIX = "SHADOWPRICE_"
"""Variables that only we set begin like this."""

SET_BY_US = frozenset({"CUDA_VISIBLE_DEVICES"})
KEYS = (
    "name",
    "command",
    "shell",
    "env",
    "gpus",
    "gpu_types",
    "cpus",
    "memory_gb",
    "iterations",
    "epochs",
    "iterations_per_epoch",
    "weight",
    "arrival_s",
    "model",
    "throughput",
    "deadline_s",
    "tenant",
    "directory",
)

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")


def job_of(entry: Mapping[str, Tree], where: str, folder: Path) -> Job:
    """A job from its keys, which are known ones.

    Parameters
    ----------
    where : str
        File, position and name of the job, for messages.
    folder : Path
        What its directory is relative to.

    Raises
    ------
    InputError
        Naming file, job, key, value and what was expected.
    """
    read = _Reader(entry, where)
    return Job(
        name=read.name(),
        command=read.command(),
        env=read.environment(),
        gpus=read.whole("gpus", MAX_GANG, default=1),
        iterations=read.iterations(),
        directory=read.directory(folder),
        gpu_types=read.names("gpu_types"),
        cpus=read.number("cpus", 1e9, default=0.0),
        memory_gb=read.number("memory_gb", 1e9, default=0.0),
        weight=read.number("weight", 1e18, default=1.0),
        arrival_s=read.number("arrival_s", MAX_TIME_S, default=0.0),
        deadline_s=read.number("deadline_s", MAX_TIME_S, default=math.inf),
        model=read.model(),
        tenant=read.line("tenant"),
        throughput=read.throughput(),
    )


class _Reader:
    """Reads the values of a job's keys."""

    def __init__(self, entry: Mapping[str, Tree], where: str) -> None:
        self.entry = entry
        self.where = where

    def wrong(self, key: str, value: object, expected: str) -> InputError:
        return InputError(f"{self.where}: {key} is {shown(value)}, expected {expected}")

    def given(self, key: str) -> Tree:
        if key not in self.entry:
            raise InputError(f"{self.where}: has no {key}")
        return self.entry[key]

    def name(self) -> str:
        value = self.given("name")
        if not isinstance(value, str) or not NAME.fullmatch(value):
            raise self.wrong(
                "name", value, "1 to 64 letters, digits, '.', '_' and '-', a letter or digit first"
            )
        return value

    def text(self, key: str, default: str | None = None) -> str:
        value = self.given(key) if default is None else self.entry.get(key, default)
        if not isinstance(value, str):
            raise self.wrong(key, value, "text")
        return value

    def line(self, key: str) -> str:
        """Text that may be printed as part of a line."""
        value = self.text(key, default="")
        if not on_one_line(value):
            raise self.wrong(key, value, ONE_LINE)
        return value

    def model(self) -> str:
        value = self.line("model")
        if value.startswith(JOB_PREFIX):
            raise self.wrong("model", value, f"a name that does not begin with {JOB_PREFIX!r}")
        return value

    def number(self, key: str, most: float, default: float) -> float:
        if key not in self.entry:
            return default
        value = self.entry[key]
        return self._number(key, value, most, lambda x: x >= 0, f"a number from 0 to {most:.10g}")

    def whole(self, key: str, most: int, default: int | None = None) -> int:
        if key not in self.entry and default is not None:
            return default
        value = self.given(key)
        expected = f"an integer from 1 to {most}"
        return int(self._number(key, value, most, lambda x: x >= 1 and x.is_integer(), expected))

    def _number(
        self, key: str, value: object, most: float, fine: Callable[[float], bool], expected: str
    ) -> float:
        if not isinstance(value, str) or len(value) > 400 or not _NUMBER.fullmatch(value):
            raise self.wrong(key, value, expected)
        number = float(value) + 0.0  # -0 is 0
        if not number <= most or not fine(number):
            raise self.wrong(key, value, expected)
        return number

    def command(self) -> tuple[str, ...]:
        if ("command" in self.entry) == ("shell" in self.entry):
            has = "both command and shell" if "shell" in self.entry else "no command"
            raise InputError(
                f"{self.where}: has {has}, expected command: [program, argument, ...], "
                "or shell: text if a shell shall read it"
            )
        if "shell" in self.entry:
            text = self.text("shell")
            if not text.strip():
                raise self.wrong("shell", text, "text for /bin/sh")
            return ("/bin/sh", "-c", text)
        value = self.entry["command"]
        expected = "a list of text, [program, argument, ...]; 'shell: text' is read by a shell"
        if not isinstance(value, list) or not 1 <= len(value) <= MAX_ARGUMENTS:
            raise self.wrong("command", value, expected)
        for k, each in enumerate(value):
            if not isinstance(each, str) or (k == 0 and not each):
                raise self.wrong(f"command[{k}]", each, expected)
        return tuple(str(each) for each in value)

    def environment(self) -> dict[str, str]:
        value = self.entry.get("env", {})
        if not isinstance(value, dict):
            raise InputError(f"{self.where}: env is no mapping, expected NAME: value")
        found = {}
        for name, content in value.items():
            if not _VARIABLE.fullmatch(name):
                raise self.wrong("a name in env", name, "letters, digits and '_', no digit first")
            if name.startswith(OWN_PREFIX) or name in SET_BY_US:
                raise self.wrong(
                    "a name in env", name, "a variable that the scheduler does not set"
                )
            if not isinstance(content, str):
                # The value itself may be a secret.
                raise InputError(f"{self.where}: env {name} is no text or number, expected a value")
            found[name] = content
        return found

    def names(self, key: str) -> tuple[str, ...]:
        value = self.entry.get(key, [])
        if key in self.entry and (not isinstance(value, list) or not value):
            raise self.wrong(key, value, "a list of GPU types, [v100, k80]")
        found = []
        for each in value or []:
            if not isinstance(each, str) or not each or not on_one_line(each):
                raise self.wrong(key, value, "a list of GPU types, [v100, k80]")
            found.append(each)
        return tuple(dict.fromkeys(found))

    def iterations(self) -> int:
        if ("iterations" in self.entry) == ("epochs" in self.entry):
            has = "both iterations and epochs" if "epochs" in self.entry else "no iterations"
            raise InputError(
                f"{self.where}: has {has}, expected iterations: N, or epochs: E with "
                "iterations_per_epoch: M"
            )
        if "iterations" in self.entry:
            if "iterations_per_epoch" in self.entry:
                raise InputError(
                    f"{self.where}: has iterations_per_epoch beside iterations, expected it with epochs"
                )
            return self.whole("iterations", MAX_STEPS)
        total = self.whole("epochs", MAX_STEPS) * self.whole("iterations_per_epoch", MAX_STEPS)
        if total > MAX_STEPS:
            raise self.wrong("epochs x iterations_per_epoch", total, f"at most {MAX_STEPS}")
        return total

    def throughput(self) -> float | dict[str, float] | None:
        value = self.entry.get("throughput")
        if "throughput" not in self.entry:
            return None
        if not isinstance(value, dict):
            expected = "iterations per second > 0, or {GPU type: iterations per second}"
            return self._number("throughput", value, LARGEST, lambda x: x > 0, expected)
        expected = "iterations per second >= 0, 0 where it cannot run"
        rates = {
            kind: self._number(f"throughput {kind!r}", rate, LARGEST, lambda x: x >= 0, expected)
            for kind, rate in value.items()
        }
        if not any(rates.values()):
            raise self.wrong("throughput", value, "a GPU type on which it can run")
        return rates

    def directory(self, folder: Path) -> Path:
        value = self.text("directory", default=".")
        path = Path(folder.absolute(), value)
        try:
            found = path.is_dir()
        except (OSError, ValueError):
            found = False
        if not found or not value:
            raise self.wrong("directory", value, f"a directory that exists, from {folder} on")
        return path


__all__ = ["Job", "JobFile", "cluster_of", "load_job_file", "workload"]

MAX_JOBS = 10_000
_WHAT = {"command", "shell"}
_HOW_LONG = {"iterations", "epochs"}


@dataclass(frozen=True)
class JobFile:
    """Jobs in the order of their file.

    Parameters
    ----------
    path : Path
        Where it was read.
    sha256 : str
        Of the file's bytes, in hexadecimal: a run that is resumed asks for the same.
    """

    path: Path
    jobs: tuple[Job, ...]
    sha256: str


def load_job_file(path: str | Path) -> JobFile:
    """Read a job file.

    Raises
    ------
    InputError
        Naming the file, the job by position and name, the key, its value and what was expected.
    """
    path = Path(path)
    data = read_small(path)
    tree = known_keys(parse(data, str(path)), str(path), ("jobs", "defaults"))
    common = tuple(key for key in KEYS if key != "name")
    defaults = known_keys(tree.get("defaults", {}), f"{path}: defaults", common)
    if not isinstance(defaults.get("env", {}), dict):
        raise InputError(f"{path}: defaults: env is no mapping, expected NAME: value")
    entries = tree.get("jobs")
    if not isinstance(entries, list) or not entries:
        raise InputError(f"{path}: jobs is {shown(entries)}, expected a list of at least one job")
    if len(entries) > MAX_JOBS:
        raise InputError(f"{path}: has {len(entries)} jobs, expected at most {MAX_JOBS}")
    jobs = []
    for k, entry in enumerate(entries, 1):
        where = _label(str(path), k, entry)
        own = known_keys(entry, where, KEYS)
        jobs.append(job_of(_with_defaults(own, defaults), where, path.parent))
    _unique([job.name for job in jobs], str(path))
    return JobFile(path, tuple(jobs), hashlib.sha256(data).hexdigest())


def _label(source: str, k: int, entry: Tree) -> str:
    """File, and position and name of a job, for messages."""
    name = entry.get("name") if isinstance(entry, dict) else None
    named = f" ({name})" if isinstance(name, str) and NAME.fullmatch(name) else ""
    return f"{source}: job {k}{named}"


def _with_defaults(own: Mapping[str, Tree], defaults: Mapping[str, Tree]) -> dict[str, Tree]:
    """Entries of a job, and those of the defaults for what it does not say."""
    replaced: set[str] = set()
    if own.keys() & _WHAT:
        replaced |= _WHAT
    if own.keys() & _HOW_LONG:
        replaced |= _HOW_LONG
    if "iterations" in own:
        replaced.add("iterations_per_epoch")
    settled = {key: value for key, value in defaults.items() if key not in replaced} | dict(own)
    mine, common = own.get("env"), defaults.get("env")
    if isinstance(mine, dict) and isinstance(common, dict):
        settled["env"] = {**common, **mine}
    return settled


def _unique(names: Sequence[str], source: str) -> None:
    position: dict[str, int] = {}
    for k, name in enumerate(names, 1):
        first = position.setdefault(name.lower(), k)
        if first != k:
            raise InputError(
                f"{source}: job {k} ({name}): name is that of job {first} ({names[first - 1]}), "
                "expected names that differ in more than case"
            )


def cluster_of(nodes: Sequence[FoundNode]) -> Cluster:
    """The cluster that these nodes make, in their order.

    Raises
    ------
    InputError
        If there are none, or one has no device.
    """
    return Cluster(
        tuple(
            Node(len(each.devices), each.gpu_type, cpus=each.cpus, memory_gb=each.memory_gb)
            for each in nodes
        )
    )


def workload(
    job_file: JobFile, cluster: Cluster, throughputs: Throughputs | None = None
) -> tuple[Workload, list[str]]:
    """Jobs as a scheduler sees them on a cluster, and what had to be assumed.

    Work counts iterations. The rate of a job on each GPU type is what the job file says; else that
    of its kind (:attr:`Job.kind` and gang) in the table; else one iteration a second on every type.

    Returns
    -------
    Workload, list of str
        Rows in order of arrival, with a throughput for each GPU type of the cluster; one line for
        each job whose rate is assumed, or that keeps off a type because it has no rate there.

    Raises
    ------
    InfeasibleJobError
        If the cluster has none of the GPU types on which a job may run.
    """
    notes: list[str] = []
    rates = []
    for k, job in enumerate(job_file.jobs, 1):
        rows, told = _rates(job, cluster.gpu_types, throughputs)
        if not any(rows):
            may = ", ".join(job.gpu_types or _types_of(job))
            raise InfeasibleJobError(
                f"{job_file.path}: job {k} ({job.name}) can run on {may}, "
                f"the cluster has {', '.join(cluster.gpu_types)}"
            )
        rates.append(rows)
        notes += [f"job {job.name}: {note}" for note in told]
    jobs = job_file.jobs
    made = Workload.from_columns(
        id=[job.name for job in jobs],
        arrival_s=[job.arrival_s for job in jobs],
        gpus=[job.gpus for job in jobs],
        work=[job.iterations for job in jobs],
        weight=[job.weight for job in jobs],
        deadline_s=[job.deadline_s for job in jobs],
        tenant=[job.tenant for job in jobs],
        model=[job.kind for job in jobs],
        throughput=rates,
        gpu_types=cluster.gpu_types,
        source=str(job_file.path),
    )
    return made, notes


def _types_of(job: Job) -> list[str]:
    """GPU types for which the job's own throughput says a rate."""
    own = job.throughput if isinstance(job.throughput, Mapping) else {}
    return [name for name, rate in own.items() if rate > 0]


def _rates(
    job: Job, types: Sequence[str], table: Throughputs | None
) -> tuple[list[float], list[str]]:
    """Rates of a job on these types, and what is to be told of them."""
    may = [name for name in types if not job.gpu_types or name in job.gpu_types]
    own, notes = job.throughput, []
    if isinstance(own, Mapping):
        known = own
    elif own is not None:
        known = dict.fromkeys(may, own)
    else:
        known = _from_table(job, table)
        lacking = [name for name in may if not known.get(name)]
        if len(lacking) == len(may):
            known = dict.fromkeys(may, 1.0)
            notes = ["no rate is known, 1 iteration a second is assumed"] if may else []
        elif lacking:
            notes = [f"has no rate on {', '.join(lacking)}, and is not run there"]
    return [float(known.get(name, 0.0)) if name in may else 0.0 for name in types], notes


def _from_table(job: Job, table: Throughputs | None) -> Mapping[str, float]:
    found = None if table is None else table.rates(job.kind, job.gpus)
    if table is None or found is None:
        return {}
    return dict(zip(table.gpu_types, found, strict=True))
