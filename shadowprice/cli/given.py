"""Inputs from the options of ``simulate`` and ``compare``: jobs, a cluster, switches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shadowprice.cli.conditions import read_conditions
from shadowprice.cli.run_options import RunOptions
from shadowprice.cli.show import stderr, warnings_told
from shadowprice.solvers.registry import require_policy

if TYPE_CHECKING:
    from shadowprice.analysis.outcome import Outcome
    from shadowprice.analysis.semantics import Semantics
    from shadowprice.instances.cluster import Cluster
    from shadowprice.instances.graphs.iteration_time import Network
    from shadowprice.instances.speeds.profiles import Profiles
    from shadowprice.instances.speeds.throughputs import Throughputs
    from shadowprice.instances.workload import Workload
    from shadowprice.solvers.tiresias.gittins_index import ServiceDistribution


@dataclass(frozen=True)
class RunInputs:
    """Jobs, a cluster and the switches of a run; whether to leave out jobs that can never run."""

    workload: Workload
    cluster: Cluster
    semantics: Semantics
    drop_infeasible: bool = False


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


def read_given(trace: Path, cluster: str, options: RunOptions, **switches: Any) -> RunInputs:
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
    conditions = read_conditions(
        options.profiles, options.spread, options.grow, options.interference
    )
    from shadowprice.instances.traces import BrokenImporter, load_trace

    table = None if options.throughputs is None else _table(options.throughputs)
    with warnings_told(BrokenImporter):
        imported = load_trace(trace, format=options.trace_format, throughputs=table)
    for finding in imported.report:
        stderr.print(str(finding), style="yellow", markup=False, highlight=False)
    from shadowprice.instances.cluster import Cluster

    where = Cluster.load(cluster)
    from shadowprice.analysis.semantics import Semantics
    from shadowprice.instances.instance import Overheads

    charges_s = options.charges_s
    semantics = Semantics(
        preset=options.preset,
        placement=options.placement,
        round_s=options.round_s,
        first_round_s=options.first_round_s,
        overheads=Overheads(**charges_s) if charges_s else None,
        samples=None if options.samples is None else _distribution(options.samples),
        seed=options.seed,
        together=table,
        predictor=options.predictor,
        network=None if options.network is None else _network(options.network, where),
        **conditions,
        **switches,
    )
    if semantics.profiles is not None:
        _report_unprofiled(semantics.profiles, imported.workload)
    return RunInputs(imported.workload, where, semantics, options.drop_infeasible)


def _table(path: Path) -> Throughputs:
    from shadowprice.instances.speeds.throughputs import load_throughputs

    return load_throughputs(path)


def _distribution(path: Path) -> ServiceDistribution:
    from shadowprice.instances.samples import load_samples
    from shadowprice.solvers.tiresias.gittins_index import ServiceDistribution

    return ServiceDistribution(load_samples(path))


def _network(text: str, cluster: Cluster) -> Network:
    from shadowprice.cli.network import parse_network

    return parse_network(text, cluster)


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


def report_dropped(outcome: Outcome) -> None:
    """Say on stderr which jobs were left out."""
    dropped: Any = outcome.settings.get("dropped", [])
    if dropped:
        stderr.print(
            f"dropped {len(dropped)} jobs that fit no GPU type: {_first(dropped)}",
            style="yellow",
            markup=False,
        )
