"""What an instance may say: its features, the pairs that do not go together, and the one refusal."""

from __future__ import annotations

import pytest

from shadowprice.errors import InputError
from shadowprice.instances.features import (
    APART,
    DECLARED_KNOWS,
    Feature,
    missing,
    require,
    require_compatible,
    unknown,
)
from shadowprice.instances.instance import Instance
from support.feature_instances import instance_with, pairs_that_meet


@pytest.mark.parametrize("feature", list(Feature))
def test_an_instance_has_what_it_says(feature):
    # `instance_with` asserts that it has exactly what was asked for.
    assert feature in instance_with(feature).features


@pytest.mark.parametrize("pair", pairs_that_meet(), ids="-".join)
def test_every_pair_that_is_not_apart_can_be_said(pair):
    assert set(pair) <= instance_with(*pair).features


@pytest.mark.parametrize("pair", sorted(map(sorted, APART)), ids="-".join)
def test_pairs_that_are_apart_are_refused_with_a_reason(pair):
    one, other = (Feature(name) for name in pair)
    reason = APART[frozenset((one, other))]
    with pytest.raises(InputError, match="expected one of the two") as refusal:
        require_compatible({one, other}, "jobs.csv")
    assert one.phrase in str(refusal.value)
    assert other.phrase in str(refusal.value)
    assert str(refusal.value).endswith(reason)


def test_a_plain_instance_has_none():
    assert instance_with().features == frozenset()


def test_reasons_are_about_the_world():
    for reason in APART.values():
        assert not any(word in reason for word in ("implement", "support", "not yet", "code"))


def test_who_does_not_know_a_feature_refuses_it_by_name():
    instance = instance_with(Feature.QUOTAS, Feature.CHARGES)
    assert missing(instance, {Feature.CHARGES}) == (Feature.QUOTAS,)
    assert unknown(instance, ()) == (
        "there are charges for starts, restarts or migrations",
        "there are quotas of tenants",
    )
    require(instance, {Feature.CHARGES, Feature.QUOTAS}, "a reader")
    expected = r"workload: has quotas of tenants, not known to a reader"
    with pytest.raises(InputError, match=expected):
        require(instance, {Feature.CHARGES}, "a reader")


def test_a_rule_of_preemption_may_be_given_by_name():
    plain = instance_with()
    named = Instance(plain.cluster, plain.workload, preemption="restart")
    assert named.features == {Feature.RESTART}
    with pytest.raises(InputError, match="preemption is 'anew', expected resume or restart"):
        Instance(plain.cluster, plain.workload, preemption="anew")


def test_fewer_pairs_are_apart_than_before() -> None:
    """Of 136 pairs of what is not declared; the number only falls."""
    assert len([pair for pair in APART if not pair & DECLARED_KNOWS]) <= 12


def test_declared_terms_are_apart_by_facts_alone() -> None:
    """What comes in a module of its own takes no line of the table of pairs."""
    assert all(
        reason.startswith("both say") for pair, reason in APART.items() if pair & DECLARED_KNOWS
    )
