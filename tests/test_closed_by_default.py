"""Whoever reads an instance refuses what it does not know, and says what it knows feature by feature."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import build_features
import shadowprice
from shadowprice.errors import InputError
from shadowprice.instances.features import Feature
from support.consumers import bounds, runs, theorems
from support.feature_instances import instance_with, may_meet, with_implied
from support.paths import ROOT

CONSUMERS = (*theorems.CONSUMERS, *bounds.CONSUMERS, *runs.CONSUMERS)
PACKAGE = Path(shadowprice.__file__).parent


@pytest.mark.parametrize("consumer", CONSUMERS, ids=lambda each: each.name)
def test_what_is_not_known_is_refused_and_what_is_known_is_read(consumer):
    """Every reader x every feature outside what it knows is refused, by name; every one inside is read."""
    wrong = {feature: text for feature in Feature if (text := misread(consumer, feature))}
    assert wrong == {}


def misread(consumer, feature):
    """What a reader does wrong with an instance of a feature; nothing if all is well."""
    unknown = [each for each in with_implied({feature}) if each not in consumer.knows]
    if feature in consumer.knows:
        if not unknown:
            consumer.read(consumer.make(feature))
        return ""
    try:
        consumer.read(instance_with(feature))
    except InputError as refusal:
        named = any(each.phrase in str(refusal) for each in unknown)
        return "" if named else f"refused by another name: {refusal}"
    return "is read"


def test_no_reader_knows_alone_what_comes_with_more():
    """Who knows types knows throughputs, without which there are none."""
    for consumer in CONSUMERS:
        if Feature.TYPES in consumer.knows:
            assert Feature.RATES in consumer.knows, consumer.name
        assert any(may_meet({each}) for each in consumer.knows) or not consumer.knows


@cache
def constants() -> tuple[tuple[str, ast.expr], ...]:
    """Every constant of the package that says what a reader knows, with its value."""
    return tuple(_constants())


def _constants() -> Iterator[tuple[str, ast.expr]]:
    names = set(build_features.knowing())
    for module in sorted({module for module, _ in names}):
        path = PACKAGE / (module.replace(".", "/") + ".py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                if isinstance(target, ast.Name) and (module, target.id) in names:
                    yield f"{module}.{target.id}", node.value


def test_the_page_of_features_is_up_to_date():
    page = (ROOT / "docs" / "features.md").read_text(encoding="utf-8")
    assert build_features.page() == page, "run `make features`"
    record = (ROOT / "benchmarks" / "records" / "readers.md").read_text(encoding="utf-8")
    assert build_features.record() == record, "run `make features`"


def test_every_reader_is_held_to_the_law():
    assert {name for name, _ in constants()} == {consumer.name for consumer in CONSUMERS}


def test_what_is_known_is_written_out():
    """No complements, by which the next feature would be known to everybody."""
    for name, value in constants():
        allowed = (ast.Call, ast.Name, ast.Load, ast.Set, ast.Attribute, ast.BinOp, ast.BitOr)
        for node in ast.walk(value):
            assert isinstance(node, allowed), f"{name}: {ast.unparse(value)}"
        names = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
        other = {each for each in names if each not in ("frozenset", "Feature")}
        assert all(each.endswith("KNOWS") for each in other), f"{name}: {other}"


SAYS = {
    "throughput": Feature.TYPES,
    "overheads": Feature.CHARGES,
    "sharing_rates": Feature.SHARING,
    "graphs": Feature.GRAPHS,
    "sensitivity": Feature.PROFILES,
    "locality": Feature.SPREAD,
    "elasticity": Feature.WIDTHS,
    "copies": Feature.COPIES,
    "failures": Feature.FAILURES,
    "quotas": Feature.QUOTAS,
    "fractional": Feature.PARTS,
    "gpu_milli": Feature.PARTS,
    "on_cores": Feature.CORES,
    "asking": Feature.CPU_MEMORY,
    "asked_cpu_memory": Feature.CPU_MEMORY,
    "until_complete": Feature.WINDOW,
    "stopped_s": Feature.STOPPED,
    "restarts": Feature.RESTART,
    "preemption": Feature.RESTART,
}
"""Attributes by which code asks an instance for a feature without naming it."""

BUILDERS = {
    "analysis/preparation.py: _instance": "an instance from the switches of a run",
    "execution/engine.py: __init__": "the parts of an engine",
    "execution/sealed/outline.py: outline": "what a sealed policy is sent before a job arrives",
    "execution/simulated_hosts.py: __init__": "the tables of speeds and charges of simulated hosts",
    "proofs/testing/subject.py: __repr__": "a test case as text",
    "solvers/job_table.py: of": "the columns of what a policy sees",
    "solvers/job_table.py: _number_columns": "the same",
}
"""Functions that read four features or more of an instance and refuse none: what they make of them."""


def test_no_other_function_has_a_list_of_features():
    """What four features have in common is said by a constant; only what makes something of each may name them."""
    found = set()
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        words = re.findall(r"\.\s*(\w+)", text)
        if len({SAYS[word] for word in words if word in SAYS}) < 4 and text.count("Feature") < 4:
            continue  # No function of it can have four.
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            inner = [each for each in ast.walk(node) if isinstance(each, ast.Attribute)]
            asked = {SAYS[each.attr] for each in inner if each.attr in SAYS}
            values = [each for each in inner if isinstance(each.value, ast.Name)]
            named = {each.attr for each in values if each.value.id == "Feature"}
            if len(asked) >= 4 or len(named) >= 4:
                found.add(f"{path.relative_to(PACKAGE).as_posix()}: {node.name}")
    assert found == set(BUILDERS)
