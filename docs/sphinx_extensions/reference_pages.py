"""The API reference: every public name of the package, and the modules that an author of code of one's own uses.

``TOPICS`` says which page has which name of ``shadowprice.__all__``; a name without a page fails the build and a test.
"""

from __future__ import annotations

import shadowprice

TOPICS: dict[str, tuple[str, tuple[str, ...]]] = {
    "running": (
        "Simulating and comparing",
        (
            "simulate",
            "RunOptions",
            "Outcome",
            "compare",
            "Comparison",
            "compare_utility",
            "UtilityComparison",
            "audit",
            "Audit",
            "JobWindow",
            "plot_prices",
            "prices_frame",
            "study",
            "StudyResults",
            "HadarE",
        ),
    ),
    "inputs": (
        "Traces, clusters, instances",
        (
            "load",
            "generate",
            "endless",
            "EndlessWorkload",
            "Workload",
            "Cluster",
            "Node",
            "Instance",
            "Overheads",
            "Failures",
            "Preemption",
            "Objective",
            "Schedule",
            "Throughputs",
            "load_throughputs",
        ),
    ),
    "bounds": (
        "Verifying, bounds and optima",
        (
            "verify",
            "strongest_bound",
            "optimum",
            "preemptive_optimum",
            "slotted_preemptive_optimum",
            "copies_optimum",
        ),
    ),
    "shares": ("Shares of GPU types", ("AllocationProblem", "allocate")),
    "errors": ("Errors", ("ShadowpriceError",)),
}
"""Title and names of ``shadowprice`` by page."""

MODULES: dict[str, tuple[str, tuple[str, ...]]] = {
    "policies": (
        "Writing policies",
        (
            "shadowprice.solvers.policy",
            "shadowprice.solvers.index_policy",
            "shadowprice.solvers.registry",
            "shadowprice.proofs.testing",
        ),
    ),
    "jobs_on_hosts": (
        "Jobs and hosts",
        (
            "shadowprice.hosts.job",
            "shadowprice.hosts.callbacks.pytorch",
            "shadowprice.hosts.callbacks.lightning",
            "shadowprice.hosts.callbacks.huggingface",
            "shadowprice.hosts.protocol",
        ),
    ),
    "evidence": (
        "Certificates, limits, worst instances",
        (
            "shadowprice.analysis.certify",
            "shadowprice.analysis.certify_utility",
            "shadowprice.proofs.checker",
            "shadowprice.analysis.limits",
            "shadowprice.analysis.adversary.search",
            "shadowprice.analysis.adversary.hidden_times",
            "shadowprice.analysis.resource_augmentation",
            "shadowprice.instances.speeds.augmentation",
            "shadowprice.instances.hard_instances",
        ),
    ),
    "files": (
        "Traces, run directories, code of one's own",
        (
            "shadowprice.instances.traces",
            "shadowprice.analysis.run_directory.directory",
            "shadowprice.user_code",
            "shadowprice.entry_points",
        ),
    ),
    "figures": (
        "Figures",
        (
            "shadowprice.studies.figures.figure",
            "shadowprice.analysis.plots.page",
            "shadowprice.analysis.statistics.estimates",
            "shadowprice.studies.figures.published",
            "shadowprice.studies.figures.verdicts",
        ),
    ),
    "conditions": (
        "Speeds: graphs, sharing, CPUs and memory",
        (
            "shadowprice.instances.graphs.job_graph",
            "shadowprice.instances.graphs.iteration_time",
            "shadowprice.instances.speeds.profiles",
            "shadowprice.instances.speeds.model_skew",
            "shadowprice.instances.speeds.interference",
            "shadowprice.instances.terms.spread",
            "shadowprice.instances.terms.widths",
        ),
    ),
}
"""Title and modules by page."""


def unlisted() -> set[str]:
    """Public names that no page has, and names on pages that are not public."""
    listed = [name for _, names in TOPICS.values() for name in names]
    return set(listed) ^ set(shadowprice.__all__)


def pages() -> dict[str, str]:
    """Texts of the reference."""
    if unlisted():
        raise ValueError(f"reference_pages.TOPICS and shadowprice.__all__ differ in {unlisted()}")
    texts = {f"reference/{name}.rst": _topic(*topic) for name, topic in TOPICS.items()}
    texts.update({f"reference/{name}.rst": _modules(*topic) for name, topic in MODULES.items()})
    listed = "\n".join(f"   {name}" for name in (*TOPICS, *MODULES))
    texts["reference/index.rst"] = (
        f"{_title('API reference')}\n"
        "Names of the package itself, ``import shadowprice as sp``, and the modules for code of one's own. What is "
        "not listed here is not public: it may change without notice (:doc:`/versioning`).\n\n"
        f".. toctree::\n   :maxdepth: 1\n\n{listed}\n"
    )
    return texts


def _title(text: str) -> str:
    return f"{text}\n{'=' * len(text)}\n"


def _topic(title: str, names: tuple[str, ...]) -> str:
    parts = [_title(title), ".. currentmodule:: shadowprice\n"]
    for name in names:
        if isinstance(getattr(shadowprice, name), type):
            parts.append(f".. autoclass:: {name}\n   :members:\n")
        else:
            parts.append(f".. autofunction:: {name}\n")
    return "\n".join(parts)


def _modules(title: str, modules: tuple[str, ...]) -> str:
    parts = [_title(title)]
    for module in modules:
        heading = module.removeprefix("shadowprice.")
        parts += [heading, "-" * len(heading), "", f".. automodule:: {module}\n   :members:\n"]
    return "\n".join(parts)
