"""The written form of instances: nothing is lost, whatever an instance has."""

from __future__ import annotations

import json
from itertools import combinations

import msgspec
import numpy as np
import pytest
from hypothesis import given

import shadowprice as sp
from shadowprice.errors import InputError
from shadowprice.instances.documents.plain_data import text_of
from shadowprice.instances.documents.schema import decode
from shadowprice.instances.documents.written_instance import (
    KNOWS,
    InstanceWithJobs,
    WrittenJobs,
    written_with_jobs,
)
from shadowprice.instances.features import Feature
from shadowprice.instances.strategies import instances
from shadowprice.instances.workload import COLUMNS
from shadowprice.studies.instance_digest import digest_of
from support.feature_instances import instance_with, may_meet


def read_again(instance: sp.Instance) -> sp.Instance:
    text = text_of(written_with_jobs(instance))
    return decode(InstanceWithJobs, json.loads(text), "x.json").whole("x.json")


@pytest.mark.parametrize("feature", sorted(KNOWS, key=str))
def test_what_is_read_says_what_was_written(feature: Feature) -> None:
    """With each feature, and each that may be beside it."""
    beside = [each for each in sorted(KNOWS, key=str) if each is not feature]
    for more in ((), *((each,) for each in beside if may_meet((feature, each)))):
        instance = instance_with(feature, *more)
        again = read_again(instance)
        assert (again.features, digest_of(again)) == (instance.features, digest_of(instance))
        assert again.workload == instance.workload
        failures = instance.failures, again.failures
        if failures[0] is not None and failures[1] is not None:
            assert failures[0].known_until_s == failures[1].known_until_s
            assert np.array_equal(failures[0].up_s, failures[1].up_s)


@given(instances(min_jobs=0))
def test_any_instance_survives(instance: sp.Instance) -> None:
    assert read_again(instance) == instance


def test_digests_tell_features_apart() -> None:
    digests = {feature: digest_of(instance_with(feature)) for feature in sorted(KNOWS, key=str)}
    for one, other in combinations(digests, 2):
        if instance_with(one).features != instance_with(other).features:
            assert digests[one] != digests[other], (one, other)


def test_jobs_have_the_columns_of_workloads() -> None:
    assert [*COLUMNS, "throughput"] == [each.name for each in msgspec.structs.fields(WrittenJobs)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gpus": [1, 2]}, "columns have .*'gpus': 2.* values, expected as many each"),
        ({"gpus": [0]}, "row 1, column 'gpus': got 0"),
        ({"gpus": [9]}, "needs 9 GPUs"),
        ({"deadline_s": ["never"]}, r"jobs: deadline_s\[0\] is 'never'"),
        ({"throughput": {"k80": [1.0]}}, "no throughput for GPU type 'gpu'"),
        ({"colour": ["red"]}, "unknown key 'colour'"),
    ],
)
def test_other_jobs_are_refused(change: dict[str, object], message: str) -> None:
    jobs = {"id": ["a"], "arrival_s": [0.0], "gpus": [1], "work": [1.0]}
    document = {"cluster": [{"count": 1, "gpus": 2}], "jobs": {**jobs, **change}}
    with pytest.raises(InputError, match=f"x.json.*{message}"):
        decode(InstanceWithJobs, document, "x.json").whole("x.json")
