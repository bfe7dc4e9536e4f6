"""Inputs from the options of ``simulate`` and ``compare``: jobs, a cluster, switches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from shadowprice.cli.options import RunOptions
from shadowprice.cli.show import stderr, warnings_told
from shadowprice.errors import InputError
from shadowprice.solvers.registry import require_policy

if TYPE_CHECKING:
    from shadowprice.analysis.outcome import VerifiedRun
    from shadowprice.analysis.semantics import Semantics
    from shadowprice.instances.cluster import Cluster
    from shadowprice.instances.clusters.quotas import Quotas
    from shadowprice.instances.failures.failures import Failures
    from shadowprice.instances.graphs.iteration_time import Network
    from shadowprice.instances.speeds.profiles import Profiles
    from shadowprice.instances.speeds.throughputs import Throughputs
    from shadowprice.instances.steady_state.endless import EndlessWorkload
    from shadowprice.instances.workload import Workload


T = TypeVar("T")
Jobs = TypeVar("Jobs")

PUBLISHED = "published"
"""Word for what was published, where an option may also name a file."""

BYTES_PER_GB = 1e9


@dataclass(frozen=True)
class RunInputs(Generic[Jobs]):
    """Jobs, a cluster and the switches of a run; whether to leave out jobs that can never run.

    Of a trace also what was made of its rows, as :meth:`Imported.document` has it.
    """

    workload: Jobs
    cluster: Cluster
    semantics: Semantics
    drop_infeasible: bool = False
    cleaning: Mapping[str, object] | None = None


def require_policies(names: Sequence[str], preset: str | None) -> None:
    """Refuse names that no policy has, before the trace is read; a preset has names of its own.

    Raises
    ------
    InputError
        Listing what there is.
    """
    if preset is None:
        for name in names:
            require_policy(name)


def read_given(
    trace: Path, cluster: str, options: RunOptions, **switches: Any
) -> RunInputs[Workload]:
    """Read the files that options name; what was repaired in the trace is said on stderr.

    Parameters
    ----------
    switches
        Those of :class:`Semantics` that one command alone has an option for.

    Raises
    ------
    InputError
        If a file or an option is not as expected.
    """
    # The trace first: a message about a missing file loads little.
    from shadowprice.instances.traces import BrokenImporter, load_trace

    table = _table(options)
    with warnings_told(BrokenImporter):
        imported = load_trace(trace, format=options.trace_format, throughputs=table)
    if imported.report or imported.notes:
        for line in imported.lines():
            stderr.print(line, style="yellow", markup=False, highlight=False)
    where, semantics = _switches(cluster, options, table, switches)
    if options.quotas is not None:
        where = replace(where, quotas=_quotas(options.quotas, imported.origin_s, trace))
    if semantics.profiles is not None:
        _report_unprofiled(semantics.profiles, imported.workload)
    cleaning = imported.document()
    return RunInputs(imported.workload, where, semantics, options.drop_infeasible, cleaning)


def read_endless(
    generator: str, cluster: str, options: RunOptions, **switches: Any
) -> RunInputs[EndlessWorkload]:
    """Make an endless workload, and read the files that options name.

    Parameters
    ----------
    generator : str
        Name and parameters: ``gavel-published:jobs_per_hour=5.6,single_gpu=true``.
    switches
        As of :func:`read_given`.

    Raises
    ------
    InputError
        If the generator, a parameter, a file or another option is not as expected.
    """
    from shadowprice.instances.generators import endless_named

    if options.trace_format is not None:
        raise InputError("--format is about a trace, and --endless is given")
    if options.quotas is not None:
        raise InputError("--quotas is about the days of a trace, and --endless is given")
    table = _table(options)
    workload = endless_named(generator, {} if table is None else {"throughputs": table})
    where, semantics = _switches(cluster, options, table, switches)
    return RunInputs(workload, where, semantics, options.drop_infeasible)


def _quotas(text: str, origin_s: float | None, trace: Path) -> Quotas:
    """Quotas of a file, from time 0 of the trace on."""
    from shadowprice.instances.clusters.quotas import read_quotas

    file, at, date = text.partition("@")
    if at:
        try:
            origin_s = datetime.fromisoformat(date).replace(tzinfo=UTC).timestamp()
        except ValueError:
            raise InputError(
                f"--quotas: date {date!r}, expected one as 2020-04-01T00:00:00"
            ) from None
    if origin_s is None:
        raise InputError(
            f"{trace}: does not say the date of its time 0, expected --quotas {file}@2020-04-01T00:00:00"
        )
    return read_quotas(file, origin_s)


def _table(options: RunOptions) -> Throughputs | None:
    if options.throughputs is None:
        return None
    from shadowprice.instances.speeds.throughputs import load_throughputs

    return load_throughputs(options.throughputs)


def _switches(
    cluster: str, options: RunOptions, table: Throughputs | None, switches: dict[str, Any]
) -> tuple[Cluster, Semantics]:
    """The cluster and the switches of a run that options say."""
    from shadowprice.analysis.semantics import Semantics
    from shadowprice.instances.cluster import Cluster
    from shadowprice.instances.instance import Overheads
    from shadowprice.instances.samples import load_samples
    from shadowprice.instances.speeds.conditions import Growth
    from shadowprice.instances.speeds.interference import Interference
    from shadowprice.instances.speeds.model_skew import ModelSkews, published_skews
    from shadowprice.instances.speeds.profiles import Profiles
    from shadowprice.solvers.tiresias.gittins_index import ServiceDistribution

    where, samples = Cluster.load(cluster), None
    profiles = _named(options.profiles, Profiles.synthetic, Profiles.load)
    if options.samples is not None:
        samples = ServiceDistribution(load_samples(options.samples))
    return where, Semantics(
        preset=options.preset,
        placement=options.placement,
        round_s=options.round_s,
        first_round_s=options.first_round_s,
        overheads=Overheads(**options.charges_s) if options.charges_s else None,
        samples=samples,
        seed=options.seed,
        pair_throughputs=table,
        predictor=options.predictor,
        network=None if options.network is None else parse_network(options.network, where),
        profiles=profiles,
        skews=_named(options.spread, published_skews, ModelSkews.load),
        growth=None if options.grow is None else Growth.parse(options.grow),
        interference=_named(options.interference, Interference, Interference.load),
        failures=_failures(options),
        **switches,
    )


def _failures(options: RunOptions) -> Failures | None:
    """Faults of nodes and checkpoints of jobs that options say."""
    interval_s, cost_s = options.checkpoint_interval_s, options.checkpoint_cost_s
    if options.failures is None:
        for option, value in (
            ("--checkpoint-interval", interval_s),
            ("--checkpoint-cost", cost_s),
        ):
            if value is not None:
                raise InputError(
                    f"{option}: is about nodes that fail, expected --failures as well (none: checkpoints alone)"
                )
        return None
    from shadowprice.instances.failures.failures import Failures

    return Failures.parse(options.failures, interval_s, cost_s or 0.0)


def _named(text: str | None, published: Callable[[], T], load: Callable[[Path], T]) -> T | None:
    """Values of an option: none, the published ones, or those of a file."""
    if text is None:
        return None
    return published() if text == PUBLISHED else load(Path(text))


def _report_unprofiled(profiles: Profiles, workload: Workload) -> None:
    without = [
        f"{model or 'no model'} on {gpus} GPUs" for model, gpus in profiles.without(workload)
    ]
    if without:
        stderr.print(
            f"no profile of {_first(without)}: taken to need a GPU-proportional share of CPUs and memory",
            style="yellow",
            markup=False,
            highlight=False,
        )


def _first(names: Sequence[str]) -> str:
    """A few names, for a message."""
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")


def split_names(text: str) -> list[str]:
    """Names of policies, comma-separated; NAME=VALUE belongs to the policy before it.

    >>> split_names("fifo, las2d:base=2,levels=3,srtf")
    ['fifo', 'las2d:base=2,levels=3', 'srtf']
    >>> split_names("mine.py:Own:window_s=6,levels=2,gavel:round_s=60,model=mine.py:build")
    ['mine.py:Own:window_s=6,levels=2', 'gavel:round_s=60,model=mine.py:build']
    """
    names: list[str] = []
    for word in (word.strip() for word in text.split(",")):
        if names and "=" in word.partition(":")[0]:
            names[-1] += f",{word}"
        elif word:
            names.append(word)
    return names


def report_dropped(outcome: VerifiedRun) -> None:
    """Say on stderr which jobs were left out."""
    dropped: Any = outcome.settings.get("dropped", [])
    if dropped:
        stderr.print(
            f"dropped {len(dropped)} jobs that fit no GPU type: {_first(dropped)}",
            style="yellow",
            markup=False,
        )


# Bandwidths from options or from a cluster's nodes; the one place that reads them.


def parse_network(text: str, cluster: Cluster) -> Network:
    """Bandwidths as INTRA:NIC[:SHARING] in GB/s.

    Raises
    ------
    InputError
        If they are written otherwise or not positive, or GPUs are of several types.
    """
    words = text.split(":")
    try:
        intra, nic = (float(word) for word in words[:2])
    except ValueError:
        intra = nic = float("nan")
    if len(words) not in (2, 3) or not (0 < intra < float("inf") and 0 < nic < float("inf")):
        raise InputError(
            f"network {text!r}: expected INTRA:NIC[:SHARING], bandwidths in GB/s, such as 300:12.5:per-job"
        )
    return network_of(cluster, intra, nic, words[2] if len(words) == 3 else "per-gpu")


def network_of(cluster: Cluster, intra: float | None, nic: float | None, sharing: str) -> Network:
    """Bandwidths from options [GB/s], or from the cluster's nodes where they are not given.

    Raises
    ------
    InputError
        If GPUs are of several types, or a bandwidth is not known or differs between nodes.
    """
    if len(cluster.gpu_types) > 1:
        raise InputError(
            f"cluster {cluster}: GPU types {', '.join(cluster.gpu_types)}, expected one: job graphs "
            "are for GPUs of one speed"
        )
    from shadowprice.instances.graphs.iteration_time import Network

    inside = _bandwidth("--intra", intra, (node.intra_gb_per_s for node in cluster.nodes))
    outside = _bandwidth("--nic", nic, (node.nic_gb_per_s for node in cluster.nodes))
    return Network(inside, outside, int(cluster.gpus_per_node.max()), sharing)


def _bandwidth(option: str, given: float | None, of_nodes: Iterable[float]) -> float:
    """Bytes per second."""
    known = sorted(set(of_nodes)) if given is None else [given]
    if len(known) > 1:
        raise InputError(
            f"cluster: bandwidths of nodes go from {known[0]:g} to {known[-1]:g} GB/s, expected one "
            f"for all; give {option} to use another"
        )
    if known == [0.0] and given is None:
        raise InputError(f"cluster: does not say its bandwidth; give {option} GB/s")
    if not 0 < known[0] < float("inf"):
        raise InputError(f"{option} is {known[0]:g}, expected GB/s > 0")
    return known[0] * BYTES_PER_GB
