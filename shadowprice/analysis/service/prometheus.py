"""Metrics of a service in Prometheus' text format; names and labels are said in docs/serve.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.exposition import generate_latest

from shadowprice.analysis.service.snapshot import ServiceReader

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def exposition(reader: ServiceReader) -> bytes:
    """Metrics of now, as a scrape gets them; O(jobs + leases)."""
    registry = CollectorRegistry()
    registry.register(_Collected(_families(reader.snapshot(), reader)))
    return generate_latest(registry)


class _Collected:
    """Families that were made already, as a registry takes them."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = list(families)

    def collect(self) -> Iterator[Metric]:
        """Give them."""
        yield from self._families


def _families(snapshot: Mapping[str, Any], reader: ServiceReader) -> Iterator[Metric]:
    jobs = GaugeMetricFamily(
        "shadowprice_jobs", "Jobs by state and user.", labels=("state", "user")
    )
    for labels, number in sorted(reader.counts().items()):
        jobs.add_metric(labels, number)
    yield jobs
    waiting = GaugeMetricFamily(
        "shadowprice_waiting_gpus", "GPUs that waiting jobs need together.", labels=("user",)
    )
    needed: Counter[str] = Counter()
    for job in snapshot["jobs"]:
        needed[job["user"]] += job["gpus"] if job["state"] in ("expected", "waiting") else 0
    for user, number in sorted(needed.items()):
        waiting.add_metric((user,), number)
    yield waiting
    devices = GaugeMetricFamily(
        "shadowprice_devices",
        "Devices by node and state: held, free, quarantined or lost.",
        labels=("node", "state"),
    )
    for node in snapshot["nodes"]:
        states = Counter(_state(node, device) for device in node["devices"])
        for state in ("held", "free", "quarantined", "lost"):
            devices.add_metric((node["name"], state), states[state])
    yield devices
    prices = snapshot["prices"] or {"by_node": {}}
    price = GaugeMetricFamily(
        "shadowprice_gpu_price", "Price of a GPU, where the policy sets prices.", labels=("node",)
    )
    for node, value in prices["by_node"].items():
        price.add_metric((node,), value)
    yield price
    yield from _totals(reader)
    yield GaugeMetricFamily(
        "shadowprice_driver_running",
        "1 while a driver runs.",
        value=float(snapshot["driver"] == "running"),
    )
    yield GaugeMetricFamily(
        "shadowprice_run_seconds", "Seconds since the service began.", value=snapshot["now_s"]
    )


def _totals(reader: ServiceReader) -> Iterator[Metric]:
    leases, lost = reader.totals()
    yield CounterMetricFamily("shadowprice_leases", "Leases that were granted.", value=leases)
    yield CounterMetricFamily(
        "shadowprice_lost_steps", "Steps after a last checkpoint that are run again.", value=lost
    )
    events = CounterMetricFamily("shadowprice_events", "Events by kind.", labels=("kind",))
    for kind, number in sorted(reader.kinds.items()):
        events.add_metric((kind,), number)
    yield events
    jct_s = reader.completion_s()
    yield SummaryMetricFamily(
        "shadowprice_job_completion_seconds",
        "Time from submission to end of the jobs that finished.",
        count_value=len(jct_s),
        sum_value=sum(jct_s),
    )


def _state(node: Mapping[str, Any], device: Mapping[str, Any]) -> str:
    if node["lost"]:
        return "lost"
    if device["quarantined"]:
        return "quarantined"
    return "held" if device["held_by"] else "free"
