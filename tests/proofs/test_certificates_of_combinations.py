"""Every pair of features that can be simulated has a certificate of every objective, or a refusal in one line."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest

import shadowprice as sp
from shadowprice.analysis.certify import certify
from shadowprice.analysis.certify_utility import certify_utility
from shadowprice.errors import InputError
from shadowprice.instances.clusters.quotas import Quotas
from shadowprice.instances.graphs.network import Network
from shadowprice.instances.speeds.interference import Interference
from shadowprice.instances.speeds.model_skew import published_skews
from shadowprice.instances.speeds.profiles import Profiles
from shadowprice.instances.terms.widths import Growth
from shadowprice.instances.terms.window import JobWindow
from shadowprice.proofs.checker import check
from support.written_failures import failures_of

LAW = "mtbf_s=600,repair_s=20,seed=4"
ROUND_S = 5.0

# Columns of jobs, nodes, switches and a policy that a feature asks for.
COLUMNS = {
    "types": {
        "throughput": [[1.0, 0.5], [0.5, 1.0], [1.0, 1.0], [0.25, 0.5], [1.0, 0.75]],
        "gpu_types": ("a", "b"),
    },
    "parts": {"gpu_milli": [1000, 500, 1000, 250, 500], "gpus": [2, 1, 1, 1, 1]},
    "allowed types": {"allowed_types": ["a", "", "b", "", "a"]},
    "cpu-memory": {"cpus": [10, 0, 1, 9, 4], "memory_gb": [0, 16, 100, 64, 0]},
    "weights": {"weight": [1, 2, 0.5, 3, 1]},
    "deadlines": {"deadline_s": [30, 20, np.inf, 60, 40]},
}
SWITCHES = {
    "rounds": {"round_s": ROUND_S},
    "charges": {"overheads": sp.Overheads(1.0, 2.0, 1.0)},
    "job graphs": {"network": Network(300e9, 12.5e9, 4)},
    "profiles": {"profiles": Profiles.synthetic()},
    "spreading": {"skews": published_skews()},
    "growth": {"growth": Growth(4, 0.9)},
    "sharing": {"interference": Interference({"vgg-19": 0.4, "resnet-50": 0.5})},
    "a window": {"until_complete": JobWindow(1, 3)},
    "failures": {"failures": failures_of(LAW, 10.0, 1.0)},
    "restarts": {"preemption": sp.Preemption.RESTART},
}
POLICY = {"growth": "hesrpt", "sharing": "gandiva", "copies": "hadare", "rounds": "gavel"}
FEATURES = sorted({*COLUMNS, *SWITCHES, "quotas", "copies"})


def simulated(features, name=None):
    """A run of five jobs with some features, or None where simulate refuses them, in a line."""
    columns = {
        "arrival_s": [0, 0, 3, 7, 150],
        "gpus": [2, 1, 1, 3, 1],
        "work": [30, 22, 7, 16, 25],
        "model": ["vgg-19", "resnet-50", "vgg-19", "resnet-50", "resnet-50"],
        "tenant": ["x", "y", "x", "y", "x"],
    }
    switches = {}
    for feature in features:
        columns |= COLUMNS.get(feature, {})
        switches |= SWITCHES.get(feature, {})
    typed = {"types", "allowed types"} & set(features)
    kinds = ("a", "b") if typed else ("", "")
    ends = [f":{kind}" if kind else "" for kind in kinds]
    more = "+16cpu+256gb" if {"profiles", "cpu-memory"} & set(features) else ""
    cluster = sp.Cluster.parse(",".join(f"1x4{end}{more}" for end in ends))
    if "quotas" in features:
        cluster = replace(cluster, quotas=Quotas(("x", "y"), (0.0,), ((4, 4),)))
    policies = [POLICY[feature] for feature in features if feature in POLICY]
    try:
        jobs = sp.Workload.from_columns(**columns)
        return sp.simulate(
            jobs, cluster, name or (policies or ["srtf"])[-1], sp.RunOptions(**switches)
        )
    except InputError as error:
        assert_one_line(error)
        return None


def assert_one_line(error):
    assert str(error)
    assert "\n" not in str(error)


def certified(outcome):
    """Objectives of which a certificate is made, and what is refused, in a line each."""
    made, refused = [], []
    for objective in ("flow", "completion", "makespan"):
        try:
            found = certify(outcome, objective, budget_s=0.0)
            assert check(found.text)["class"] == found.of_class
            made.append(objective)
        except InputError as error:
            assert_one_line(error)
            refused.append(str(error))
    for utility in ("effective_throughput", "completion_time", "fairness", "deadline"):
        try:
            earned = certify_utility(outcome, utility, ROUND_S, budget_s=0.0)
            assert check(earned.text)["class"] == earned.of_class
            made.append(utility)
        except InputError as error:
            assert_one_line(error)
            refused.append(str(error))
    return made, refused


COSTS = {"flow", "completion", "makespan"}


@pytest.mark.parametrize("feature", FEATURES)
def test_a_feature_by_itself_is_certified(feature):
    outcome = simulated([feature])
    assert outcome is not None
    made, refused = certified(outcome)
    assert set(made) >= COSTS
    # A job whose speed alone is not known has no fair share of it.
    assert all("earned nothing" in each or "fairness" in each for each in refused)


@pytest.mark.parametrize("arrivals", [[0, 0, 3, 7, 150], [0, 0, 0, 150, 150]])
def test_a_window_of_jobs_may_end_before_any_holds_a_part_of_a_gpu(arrivals):
    """Or after: a schedule has the number of the GPU where one of its jobs may have a part."""
    parts = {"gpu_milli": [1000, 1000, 1000, 250, 500], "gpus": [2, 1, 1, 1, 1]}
    columns = {"arrival_s": arrivals, "work": [30, 22, 7, 16, 25], **parts}
    jobs = sp.Workload.from_columns(**columns)
    options = sp.RunOptions(until_complete=JobWindow(0, 3))
    outcome = sp.simulate(jobs, "1x4", "srtf", options)
    assert (outcome.schedule.shared_gpu is None) == (arrivals[3] == 150)
    assert set(certified(outcome)[0]) >= COSTS


@pytest.mark.slow
@pytest.mark.parametrize(("one", "other"), list(combinations(FEATURES, 2)))
def test_two_features_are_certified_or_refused_by_simulate(one, other):
    asked = [simulated([one, other]), simulated([other, one]), simulated([one, other], "fifo")]
    for outcome in asked:
        if outcome is None:
            continue
        made, refused = certified(outcome)
        assert set(made) >= COSTS
        assert all("earned nothing" in each or "fairness" in each for each in refused)


@pytest.mark.slow
def test_three_features_are_certified_or_refused_by_simulate():
    draw = np.random.default_rng(7)
    triples = list(combinations(FEATURES, 3))
    some = [triples[k] for k in draw.choice(len(triples), 60, replace=False)]
    ran = 0
    for features, name in product(some, (None, "srtf")):
        outcome = simulated(features, name)
        if outcome is not None:
            made, refused = certified(outcome)
            assert set(made) >= COSTS, features
            assert all("earned nothing" in each or "fairness" in each for each in refused)
            ran += 1
    assert ran > 20
