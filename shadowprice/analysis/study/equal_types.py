"""Notes of a study on GPU types that its jobs do not tell apart."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from shadowprice.analysis.study.plan import PlannedRun
from shadowprice.analysis.study.run_task import read_run
from shadowprice.errors import ShadowpriceError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.speeds.equal_types import types_taken_as_equal


def equal_types(runs: Iterable[PlannedRun]) -> Iterator[str]:
    """A sentence for each workload without throughputs and cluster of several GPU types."""
    seen: set[tuple[str, str]] = set()
    for run in runs:
        labels, settings = (run.workload, run.cluster), json.loads(run.task.settings)
        if labels in seen:
            continue
        seen.add(labels)
        try:
            if len(Cluster.load(settings["cluster"]).gpu_types) == 1:
                continue
            given = read_run(settings)
        except ShadowpriceError:  # The run itself says what is wrong.
            continue
        sentence = types_taken_as_equal(given.workload, given.cluster)
        if sentence is not None:
            yield f"workload {run.workload!r}, cluster {run.cluster!r}: {sentence}"
