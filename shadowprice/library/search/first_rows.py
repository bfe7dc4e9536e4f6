"""First rows: what the systems and the classics make of an instance, and the best of these."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from shadowprice.analysis.certificates.certificate_file import expect_each_begins_once
from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.run_options import RunOptions
from shadowprice.analysis.simulate import simulate
from shadowprice.errors import ShadowpriceError
from shadowprice.instances.features import Feature
from shadowprice.instances.instance import Instance

CLASSICS = (
    "srtf",
    "srsf",
    "server-filling-srpt",
    "sjf",
    "fifo-skip",
    "wcs-workload",
    "msf",
    "easy",
    "las2d",
)
"""Orders of jobs, which every instance runs."""

SYSTEMS = (
    "asrpt-early",
    "gandiva",
    "hadar",
    "synergy-opt:srtf",
    "gavel:max_sum_throughput",
    "gavel:min_total_duration",
    "gavel:finish_time_fairness",
    "synergy-tune:srtf",
    "asrpt",
)
"""Systems, with the parameters that serve total completion time, or the last completion, best."""

_OF_FEATURES = {
    Feature.WIDTHS: ("hesrpt", "lpf", "afs"),
    Feature.PROFILES: ("synergy-tune:srtf", "synergy-opt:srtf"),
    Feature.GRAPHS: ("asrpt-guarded",),
}
"""Policies that are for instances of a feature."""

_MANY = 500
"""Jobs from which on some policies are left out: each is minutes, and systems with programmes of their own hours."""
_QUICK = ("srtf", "srsf", "sjf", "wcs-workload", "asrpt-early", "asrpt")
"""Policies that are run with many jobs as well."""

PLACEMENTS = ("count", "consolidate")
"""Placements that are tried where it matters on which nodes a gang is."""


@dataclass(frozen=True, eq=False)
class FirstRow:
    """A verified run.

    Parameters
    ----------
    method : str
        Policy, and placement if it is not the usual one.
    outcome : Outcome
    """

    method: str
    outcome: Outcome


def policies_for(instance: Instance) -> tuple[str, ...]:
    """Policies that are worth a run on an instance."""
    many = len(instance.workload) >= _MANY
    more = [each for each, names in _OF_FEATURES.items() if each in instance.features]
    special = tuple(name for each in more for name in _OF_FEATURES[each])
    return (*_QUICK, *special) if many else (*special, *CLASSICS, *SYSTEMS)


def first_rows(instance: Instance, *, preemptive: bool, seconds: float) -> Iterator[FirstRow]:
    """Verified runs of all policies that know the instance, as long as there is time.

    Parameters
    ----------
    preemptive : bool
        Whether jobs may begin again; else runs in which one does are left out.
    seconds : float
        CPU time after which no run begins but the first [s].
    """
    until, none = time.process_time() + seconds, True
    where = PLACEMENTS if Feature.SPREAD in instance.features else (None,)
    for policy in policies_for(instance):
        for placement in where:
            if time.process_time() > until and not none:
                return
            try:
                outcome = simulate(instance, None, policy, RunOptions(placement=placement))
                if not preemptive:
                    expect_each_begins_once(outcome)
            except ShadowpriceError:
                continue  # The policy does not know the instance, or stops jobs.
            none = False
            yield FirstRow(policy if placement is None else f"{policy}, {placement}", outcome)
