"""Notes of a study on GPU types that its jobs do not tell apart."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from shadowprice.analysis.study.plan import PlannedRun
from shadowprice.errors import ShadowpriceError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.speeds.equal_types import types_taken_as_equal


def equal_types(runs: Iterable[PlannedRun]) -> Iterator[str]:
    """A sentence for each workload without throughputs and cluster of several GPU types."""
    seen: set[tuple[str, str]] = set()
    for run in runs:
        labels = run.axes["workload"], run.axes["cluster"]
        if labels in seen:
            continue
        seen.add(labels)
        try:
            if len(Cluster.load(json.loads(run.task.settings)["cluster"]).gpu_types) == 1:
                continue
            read = run.task.arguments()
        except ShadowpriceError:  # The run itself says what is wrong.
            continue
        sentence = types_taken_as_equal(read.workload, read.cluster)
        if sentence is not None:
            yield f"workload {labels[0]!r}, cluster {labels[1]!r}: {sentence}"
