"""All terms that can be written, by name; what else brings the features that are none of them.

A new term is a file beside this one and a line in :data:`WRITTEN`; one that declares what runs hold, or how much
slower they are, is written by its own fields, and an entry in :mod:`shadowprice.instances.terms.registry`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from shadowprice.analysis.terms.charges import ChargesSettings
from shadowprice.analysis.terms.failures import FailuresSettings
from shadowprice.analysis.terms.graphs import GraphsSettings
from shadowprice.analysis.terms.profiles import ProfilesSettings
from shadowprice.analysis.terms.quotas import QuotasSettings
from shadowprice.analysis.terms.restart import RestartSettings
from shadowprice.analysis.terms.sharing import SharingSettings
from shadowprice.analysis.terms.spread import SpreadSettings
from shadowprice.analysis.terms.widths import WidthsSettings
from shadowprice.analysis.terms.window import WindowSettings
from shadowprice.analysis.terms.written_term import WrittenTerm
from shadowprice.instances.features import Feature

WRITTEN: tuple[type[WrittenTerm], ...] = (
    ChargesSettings,
    SharingSettings,
    GraphsSettings,
    ProfilesSettings,
    SpreadSettings,
    WidthsSettings,
    FailuresSettings,
    QuotasSettings,
    WindowSettings,
    RestartSettings,
)

TERMS: Mapping[str, type[WrittenTerm]] = MappingProxyType(
    {term.feature.value: term for term in WRITTEN}
)
"""Terms by name, in the order in which they are read whatever the order in which they are written."""

OTHERWISE: Mapping[Feature, str] = MappingProxyType(
    {
        Feature.RATES: "columns iterations and model with --throughputs, or columns throughput:TYPE, of the trace",
        Feature.TYPES: "nodes of several GPU types in --cluster, and --throughputs or allowed_types of jobs",
        Feature.SHARING: "--throughputs with rates of pairs of jobs",
        Feature.COPIES: "--policy hadare",
        Feature.PARTS: "gangs below 1 in the trace (gpus 0.5)",
        Feature.CORES: "jobs of allowed_types cores (--format helios:cpu-jobs=keep), on nodes of type cores",
        Feature.AMOUNTS: "columns cpus and memory_gb of the trace",
        Feature.STOPPED: "Ctrl-C while the run goes on",
        Feature.OWN: "--with FILE.py:NAME, a class in a file of one's own",
    }
)
"""Origin of features in words, where it is not, or not only, a term that is written."""


def term_of_switch(switch: str) -> str | None:
    """Name of the term that sets a switch of :class:`Semantics`, None if none does by itself."""
    return next((name for name, term in TERMS.items() if switch in term.sets), None)
