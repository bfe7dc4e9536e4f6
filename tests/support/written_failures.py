"""Failures as an option has them."""

from __future__ import annotations

from shadowprice.instances.cluster import Cluster
from shadowprice.instances.failures.failures import Failures
from shadowprice.instances.terms.options.reading import terms_of_options, with_terms
from shadowprice.instances.terms.settings import TermContext


def failures_of(settings: str, interval_s: float | None = None, cost_s: float = 0.0) -> Failures:
    """Failures by settings such as ``mtbf_s=86400,repair_s=60``; none are drawn by seed 0."""
    checkpoints = "" if interval_s is None else f",interval_s={interval_s},cost_s={cost_s}"
    terms = terms_of_options([f"failures:{settings}{checkpoints}"])
    failures = with_terms(TermContext(Cluster.parse("1x1"), "jobs"), terms).options["failures"]
    assert isinstance(failures, Failures)
    return failures
