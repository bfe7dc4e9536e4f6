"""Job files: what ``shadowprice execute`` is told to run, as YAML.

::

    profiles: profiles.json         # optional: speeds by CPUs and memory, from the folder of this file on
    goodput: widths.json            # optional: tables of jobs that change their width, from there on as well
    network: {intra_gb_per_s: 300, nic_gb_per_s: 12.5}    # of the nodes, where jobs have graphs
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
      - name: translation
        command: [torchrun, train.py]
        iterations: 1000
        graph: translation.yaml     # or in place: {model: {name: t5-base, pipeline: 2, data: 4, ...}}
      - name: legacy
        shell: ./run.sh | tee log   # a shell, only where it is asked for
        iterations: 1
        directory: ../legacy        # from the folder of this file on

A job gives either of ``command`` and ``shell``, and either of ``iterations`` and ``epochs``; what it
gives takes the place of both in the defaults. All other keys are refused.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

from shadowprice.errors import InputError
from shadowprice.execution.placeholders import SHELL, filled
from shadowprice.hosts.containers import Container
from shadowprice.hosts.live.graphs.entries import NodeNetwork, gang_of, graph_of
from shadowprice.hosts.meeting import MEETING_VARIABLES
from shadowprice.hosts.protocol import DiscoveredNode
from shadowprice.hosts.throughput_files import JOB_PREFIX, kind_name
from shadowprice.instances.cluster import Cluster, Node
from shadowprice.instances.documents.plain_yaml import Tree, parse, read_small
from shadowprice.instances.documents.schema import SECRET, Line, Name, decode
from shadowprice.instances.entries import LARGEST, known_keys, shown
from shadowprice.instances.goodput.application import Application
from shadowprice.instances.goodput.tables import applications_text, load_applications
from shadowprice.instances.graphs.graph_file import graph_entry
from shadowprice.instances.graphs.job_graph import JobGraph
from shadowprice.instances.grid import MAX_TIME_S
from shadowprice.instances.speeds.profiles import Profiles
from shadowprice.instances.workload import MAX_BATCH, MAX_GANG

MAX_JOBS = 10_000
MAX_STEPS = 10**12 - 1
"""Most iterations of a job: folders of checkpoints have names of twelve digits."""

MAX_ARGUMENTS = 10_000
OWN_PREFIX = "SHADOWPRICE_"
"""Variables that only we set begin like this."""

SET_BY_US = MEETING_VARIABLES | {"CUDA_VISIBLE_DEVICES"}


def _integer(least: int, most: int) -> Meta:
    return Meta(ge=least, le=most, description=f"an integer from {least} to {most}")


def _up_to(most: float) -> Meta:
    return Meta(ge=0, le=most, description=f"a number from 0 to {most:.10g}")


def _matching(pattern: str, description: str) -> Meta:
    return Meta(pattern=rf"\A{pattern}\Z", description=description)


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_JobName: TypeAlias = Annotated[
    str,
    _matching(
        _NAME.pattern,
        "1 to 64 letters, digits, '.', '_' and '-', a letter or digit first",
    ),
]
_Command: TypeAlias = Annotated[
    list[Annotated[str, Meta(description="text, as all of [program, argument, ...]")]],
    Meta(
        min_length=1,
        max_length=MAX_ARGUMENTS,
        description="a list of text, [program, argument, ...]; 'shell: text' is read by a shell",
    ),
]
_Steps: TypeAlias = Annotated[int, _integer(1, MAX_STEPS)]
_Variable: TypeAlias = Annotated[
    str, _matching("[A-Za-z_][A-Za-z0-9_]*", "letters, digits and '_', no digit first")
]
_Environment: TypeAlias = Annotated[
    dict[_Variable, Annotated[str, Meta(description="text or a number", extra=SECRET)]],
    Meta(description="a mapping, NAME: value", extra=SECRET),
]
_Rate: TypeAlias = Annotated[float, Meta(gt=0, le=LARGEST)]
_RateByType: TypeAlias = Annotated[
    float, Meta(ge=0, le=LARGEST, description="iterations per second, 0 where it cannot run")
]
_Throughput: TypeAlias = Annotated[
    _Rate | dict[str, _RateByType],
    Meta(
        description="iterations per second > 0, or {GPU type: iterations per second} with one on "
        "which it can run"
    ),
]


_Widths: TypeAlias = Annotated[
    str,
    _matching("(|[1-9][0-9]{0,4}-[1-9][0-9]{0,4})", "fewest and most devices, as 1-4"),
]


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
        CPU cores and memory [GB] of the whole gang, in proportion to its GPUs on each node; 0 for the
        share of its GPUs, what a node has over its GPUs.
    weight, arrival_s, deadline_s : float
        As in a workload: times [s] count from the beginning of the run; no deadline is infinity.
    done_exit_code : int or None
        Exit code of a command that reports no steps which says that it is done, even where it was
        asked to end; None: 0, where it was not.
    model, tenant, job_class : str
        Kind of model, owner, and class of the job (of work, priority, quality of service), empty if
        unknown.
    container : Container or None
        Image in which the command runs.
    throughput : float or dict of str to float or None
        Iterations per second of the whole gang, on all types or by type (0 or left out: it cannot
        run there); None if unknown.
    graph : JobGraph or None
        Stages, replicas and traffic: where its replicas are says how fast it is; None if it says
        nothing of that.
    widths : str
        Fewest and most devices, as ``1-4``, of a job that is stopped and started again with others through
        its own checkpoints; empty for always ``gpus``. The tables of the file say how fast it is.
    batch_size : int
        Samples of a step at every width; 0 if unknown.
    """

    name: _JobName
    command: tuple[str, ...]
    env: _Environment = field(repr=False)
    gpus: Annotated[int, _integer(1, MAX_GANG)]
    iterations: int
    directory: Path
    gpu_types: Annotated[
        tuple[Name, ...], Meta(min_length=1, description="a list of GPU types, [v100, k80]")
    ] = ()
    cpus: Annotated[float, _up_to(1e9)] = 0.0
    memory_gb: Annotated[float, _up_to(1e9)] = 0.0
    weight: Annotated[float, _up_to(1e18)] = 1.0
    arrival_s: Annotated[float, _up_to(MAX_TIME_S)] = 0.0
    deadline_s: Annotated[float, _up_to(MAX_TIME_S)] = math.inf
    done_exit_code: Annotated[int, _integer(0, 255)] | None = None
    model: Line = ""
    tenant: Line = ""
    job_class: Line = ""
    container: Container | None = None
    throughput: _Throughput | None = None
    graph: JobGraph | None = None
    widths: _Widths = ""
    batch_size: Annotated[int, _integer(0, MAX_BATCH)] = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "gpu_types", tuple(dict.fromkeys(self.gpu_types)))
        if self.model.startswith(JOB_PREFIX):
            raise ValueError(
                f"model is {shown(self.model)}, expected a name that does not begin with {JOB_PREFIX!r}"
            )
        for name in self.env:
            if name.startswith(OWN_PREFIX) or name in SET_BY_US:
                raise ValueError(
                    f"env: {name} is a variable that the scheduler sets, expected others"
                )
        if isinstance(self.throughput, dict) and not any(self.throughput.values()):
            raise ValueError(
                f"throughput is {shown(self.throughput)}, expected a GPU type on which it can run"
            )

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
        values = {
            "python": python,
            "directory": str(self.directory),
            "checkpoint_dir": checkpoint_dir,
        }
        return filled(self.command, values)


class _Choices(msgspec.Struct, frozen=True, kw_only=True):
    """Keys of which a job gives some, in place of the fields that they determine."""

    command: _Command | UnsetType = UNSET
    shell: Annotated[str, Meta(pattern=r"\S", description="text for /bin/sh")] | UnsetType = UNSET
    iterations: _Steps | UnsetType = UNSET
    epochs: _Steps | UnsetType = UNSET
    iterations_per_epoch: _Steps | UnsetType = UNSET
    directory: str = "."

    def fields(self, folder: Path) -> dict[str, Any]:
        """Fields of the job, whose directory is relative to a folder."""
        path = Path(folder.absolute(), self.directory)
        try:
            exists = path.is_dir()
        except (OSError, ValueError):
            exists = False
        if not exists or not self.directory:
            raise ValueError(
                f"directory is {shown(self.directory)}, expected a directory that exists, from "
                f"{folder} on"
            )
        return {"command": self.argv(), "iterations": self.steps(), "directory": path}

    def argv(self) -> tuple[str, ...]:
        """Program and arguments; of command and shell there is one."""
        if self.command and not self.shell:
            if not self.command[0]:
                raise ValueError("command[0] is '', expected a program")
            return tuple(self.command)
        if self.shell and not self.command:
            return (*SHELL, self.shell)
        raise ValueError(
            f"has {'both command and shell' if self.shell else 'no command'}, expected command: "
            "[program, argument, ...], or shell: text if a shell shall read it"
        )

    def steps(self) -> int:
        """Iterations; of them and epochs there is one."""
        if self.iterations is not UNSET and self.epochs is UNSET:
            if self.iterations_per_epoch is not UNSET:
                raise ValueError(
                    "has iterations_per_epoch beside iterations, expected it with epochs"
                )
            return self.iterations
        if self.epochs is not UNSET and self.iterations is UNSET:
            if self.iterations_per_epoch is UNSET:
                raise ValueError("has no iterations_per_epoch, expected it with epochs")
            total = self.epochs * self.iterations_per_epoch
            if total > MAX_STEPS:
                raise ValueError(
                    f"epochs x iterations_per_epoch is {total}, expected at most {MAX_STEPS}"
                )
            return total
        raise ValueError(
            f"has {'both iterations and epochs' if self.epochs else 'no iterations'}, expected "
            "iterations: N, or epochs: E with iterations_per_epoch: M"
        )


class _Tree(msgspec.Struct, frozen=True):
    """A job file, its jobs not looked into."""

    jobs: Annotated[
        list[Any],
        Meta(
            min_length=1,
            max_length=MAX_JOBS,
            description=f"a list of at least one job, at most {MAX_JOBS}",
        ),
    ]
    defaults: dict[str, Any] = msgspec.field(default_factory=dict)
    profiles: Line = ""
    goodput: Line = ""
    network: NodeNetwork | None = None


__all__ = [
    "Job",
    "JobFile",
    "cluster_of",
    "entry_of",
    "expect_images",
    "jobs_of",
    "load_job_file",
]

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
        Of the bytes of the file and of the profiles and tables that it names, and of the graphs, in hexadecimal: a
        run that is resumed asks for the same.
    profiles : Profiles or None
        Speeds of models by CPUs and memory, which the policy then gives out.
    network : NodeNetwork or None
        Bandwidths of the nodes, on which the speed of jobs with graphs depends.
    goodput : tuple of Application
        Tables of jobs that change their width; empty where none do.
    """

    path: Path
    jobs: tuple[Job, ...]
    sha256: str
    profiles: Profiles | None = None
    network: NodeNetwork | None = None
    goodput: tuple[Application, ...] = ()


def load_job_file(path: str | Path) -> JobFile:
    """Read a job file.

    Raises
    ------
    InputError
        Naming the file, the job by position and name, the key, its value and what was expected.
    """
    path = Path(path)
    data = read_small(path)
    document = parse(data, str(path))
    jobs = jobs_of(document, str(path), path.parent)
    expect_images(jobs, str(path))
    tree = decode(_Tree, document, str(path), numbers_as_text=True)
    graphs = [graph_entry(job.graph) for job in jobs if job.graph is not None]
    if tree.network is not None and not graphs:
        raise InputError(f"{path}: has a network, expected none: no job has a graph")
    read, profiles = data, None
    if tree.profiles:
        tables = path.parent / tree.profiles
        profiles = Profiles.load(tables)
        read += read_small(tables)
    goodput = load_applications(path.parent / tree.goodput) if tree.goodput else ()
    if goodput:
        read += applications_text(goodput).encode()
    if graphs:
        read += json.dumps(graphs).encode()
    return JobFile(path, jobs, hashlib.sha256(read).hexdigest(), profiles, tree.network, goodput)


def expect_images(jobs: Sequence[Job], source: str) -> None:
    """Refuse jobs in images that are not there.

    Raises
    ------
    InputError
        Naming the first.
    """
    for k, job in enumerate(jobs, 1):
        if job.container is not None:
            job.container.expect_image(job.directory, f"{source}: job {k} ({job.name})")


def jobs_of(document: Tree, source: str, folder: Path) -> tuple[Job, ...]:
    """Jobs of a job file that was parsed.

    Parameters
    ----------
    source : str
        Where it was read, for messages.
    folder : Path
        From which on directories of jobs are meant.

    Raises
    ------
    InputError
        See :func:`load_job_file`.
    """
    tree = decode(_Tree, document, source, numbers_as_text=True)
    choices = _Choices.__struct_fields__
    keys = tuple(dict.fromkeys([*Job.__dataclass_fields__, *choices]))
    defaults = known_keys(
        tree.defaults, f"{source}: defaults", [key for key in keys if key != "name"]
    )
    if not isinstance(defaults.get("env", {}), dict):
        raise InputError(f"{source}: defaults: env is no mapping, expected NAME: value")
    jobs = []
    for k, own in enumerate(tree.jobs, 1):
        name = own.get("name") if isinstance(own, dict) else None
        named = f" ({name})" if isinstance(name, str) and _NAME.fullmatch(name) else ""
        where = f"{source}: job {k}{named}"
        settled: dict[str, Any] = _with_defaults(known_keys(own, where, keys), defaults)
        drawn = settled.pop("graph", None)
        graph = None if drawn is None else graph_of(drawn, folder, where)
        if graph is not None:
            settled["gpus"] = gang_of(graph, own, where)
            settled.pop("throughput", None)
        chosen = {key: settled.pop(key) for key in choices if key in settled}
        choice = decode(_Choices, chosen, where, numbers_as_text=True)
        try:
            determined = choice.fields(folder)
        except ValueError as error:
            raise InputError(f"{where}: {error}") from error
        written = {"env": {}, "gpus": 1, **settled, **determined}
        job = decode(Job, written, where, numbers_as_text=True)
        jobs.append(replace(job, graph=graph))
    _unique([job.name for job in jobs], source)
    return tuple(jobs)


def entry_of(job: Job) -> dict[str, Any]:
    """Entry of a job file that makes this job, of plain values."""
    entry: dict[str, Any] = {
        each.name: msgspec.to_builtins(getattr(job, each.name), enc_hook=str)
        for each in fields(job)
        if getattr(job, each.name) != each.default
    }
    return entry if job.graph is None else {**entry, "graph": graph_entry(job.graph)}


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


def cluster_of(nodes: Sequence[DiscoveredNode]) -> Cluster:
    """The cluster that these nodes make, in their order.

    Raises
    ------
    InputError
        If there are none, or one has no device.
    """
    return Cluster(
        tuple(
            Node(
                len(each.devices),
                each.gpu_type,
                cpus=each.cpus,
                memory_gb=each.memory_gb,
                whole_cpus=each.whole_cpus,
            )
            for each in nodes
        )
    )
