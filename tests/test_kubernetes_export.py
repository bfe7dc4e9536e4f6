"""Manifests for Kubernetes; none is executed, here or elsewhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from shadowprice.errors import HostError
from shadowprice.execution.real.hosts.kubernetes import (
    NAME_LIMIT,
    KubernetesOptions,
    label_of,
    lease_name,
    manifests,
)
from shadowprice.execution.real.protocol import Device, LeaseKey, Order

LABEL = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
JOB_NAMES = st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")
OPTIONS = KubernetesOptions("lab/train:1", {"v100": "Tesla-V100-SXM2-16GB"})
TYPES = {"n0": "v100", "n1": "v100", "n2": "k80"}


def order(
    job: str = "job7",
    epoch: int = 12,
    rank: int = 0,
    node: str = "n0",
    gpus: int = 2,
    shared: bool = False,
    argv: tuple[str, ...] = ("python", "train.py"),
    env: dict[str, str] | None = None,
) -> Order:
    devices = tuple(Device(node, k, f"{node}/gpu:{k}") for k in range(gpus))
    ours = {
        "SHADOWPRICE_EPOCH": str(epoch), "SHADOWPRICE_RANK": str(rank), "SHADOWPRICE_RANKS": "2",
        "MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "20131", "CUDA_VISIBLE_DEVICES": "GPU-1,GPU-2",
        "SHADOWPRICE_DEVICES": "GPU-1,GPU-2",
    }  # fmt: skip
    directory = Path("/state/jobs", job, "leases", f"e{epoch}-r{rank}")
    key = LeaseKey(job, epoch, rank)
    return Order(
        key, devices, shared, argv, ours | (env or {}), directory, Path("/work"), 60.0, 10.0
    )


def read(*orders: Order, options: KubernetesOptions = OPTIONS) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(manifests(orders, TYPES, options)))


def pod_of(job_set: dict[str, Any]) -> dict[str, Any]:
    pod: dict[str, Any] = job_set["spec"]["replicatedJobs"][0]["template"]["spec"]["template"][
        "spec"
    ]
    return pod


def test_a_gang_is_one_job_set() -> None:
    (job_set,) = read(order(rank=1, node="n1"), order())
    assert job_set["kind"] == "JobSet"
    assert job_set["metadata"]["name"] == "job7-e12"
    assert "kueue.x-k8s.io/queue-name" not in job_set["metadata"]["labels"]
    assert job_set["spec"]["suspend"] is False
    ranks = job_set["spec"]["replicatedJobs"][0]["template"]["spec"]
    assert (ranks["parallelism"], ranks["completions"], ranks["backoffLimit"]) == (2, 2, 0)
    pod = pod_of(job_set)
    assert pod["nodeSelector"] == {"nvidia.com/gpu.product": "Tesla-V100-SXM2-16GB"}
    assert pod["terminationGracePeriodSeconds"] == 10
    assert pod["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": 2}
    values = {entry["name"]: entry.get("value") for entry in pod["containers"][0]["env"]}
    assert values["MASTER_ADDR"] == "job7-e12-ranks-0-0.job7-e12"
    assert values["SHADOWPRICE_RANK"] is None  # from the pod's index
    assert "CUDA_VISIBLE_DEVICES" not in values


def test_says_that_it_was_not_executed() -> None:
    text = manifests([order()], TYPES, OPTIONS)
    assert text.startswith("# NOT EXECUTED")
    assert read(order())[0]["metadata"]["annotations"]["shadowprice/status"] == "not executed"


def test_kueue_label_suspends_first() -> None:
    options = KubernetesOptions("image", queue="lab", namespace="ml", state_claim="state")
    (job_set,) = read(order(), options=options)
    assert job_set["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "lab"
    assert job_set["metadata"]["namespace"] == "ml"
    assert job_set["spec"]["suspend"] is True
    assert pod_of(job_set)["volumes"][0]["persistentVolumeClaim"] == {"claimName": "state"}
    assert pod_of(job_set)["nodeSelector"] == {"nvidia.com/gpu.product": "v100"}


def test_slots_ask_for_cpus() -> None:
    slots = (Device("n0", 0, "n0/cpu:0"), Device("n0", 1, "n0/cpu:1"))
    one = order()
    one = Order(one.key, slots, False, one.argv, one.env, one.directory, one.directory, 60.0, 10.0)
    pod = pod_of(read(one)[0])
    assert pod["containers"][0]["resources"]["limits"] == {"cpu": 2}
    assert "nodeSelector" not in pod


def test_secrets_are_in_a_secret_alone() -> None:
    secret, job_set = read(order(env={"API_TOKEN": "hunter2", "HOST": "yes"}))
    assert secret["kind"] == "Secret"
    assert secret["stringData"] == {"API_TOKEN": "hunter2", "HOST": "yes"}
    assert "hunter2" not in yaml.safe_dump(job_set)
    assert "hunter2" not in yaml.safe_dump(secret["metadata"])
    assert pod_of(job_set)["containers"][0]["envFrom"] == [{"secretRef": {"name": "job7-e12"}}]


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), min_size=1, max_size=5)
)
def test_arguments_survive(arguments: list[str]) -> None:
    argv = ("run", *arguments)
    (job_set,) = read(order(argv=argv))
    given_back = pod_of(job_set)["containers"][0]["command"]
    assert tuple(expanded(argument) for argument in given_back) == argv


def expanded(text: str) -> str:
    """As the kubelet does with arguments: $$ is a dollar sign, $(NAME) a variable, here gone."""
    return re.sub(r"\$\$|\$\([^)]*\)", lambda found: "$" if found[0] == "$$" else "", text)


@given(JOB_NAMES, st.integers(1, 10**6), st.integers(0, 12))
def test_names_are_labels(job: str, epoch: int, copy: int) -> None:
    name = lease_name(LeaseKey(job, epoch, 0, copy))
    assert LABEL.fullmatch(name)
    assert LABEL.fullmatch(f"{name}-ranks-0-0-abcde")


@given(st.lists(JOB_NAMES, min_size=2, max_size=20, unique=True))
def test_different_jobs_have_different_names(jobs: list[str]) -> None:
    assert len({lease_name(LeaseKey(job, 1)) for job in jobs}) == len(jobs)


@pytest.mark.parametrize(
    "alike",
    [("a.b", "a-b", "a_b", "A-b", "a--b"), ("x" * 64, "x" * 63, "X" * 64), ("1", "j-1", "j.1")],
)
def test_names_that_look_alike_stay_apart(alike: tuple[str, ...]) -> None:
    labels = {label_of(name) for name in alike} | {label_of(label_of(name)) for name in alike}
    assert len({label_of(name) for name in alike}) == len(alike)
    assert all(LABEL.fullmatch(label) and len(label) <= NAME_LIMIT for label in labels)


def test_a_name_that_imitates_a_made_one_is_made_anew() -> None:
    made = label_of("a.b")
    assert label_of(made) != made
    assert lease_name(LeaseKey("a-e1", 2)) != lease_name(LeaseKey("a", 1))
    assert lease_name(LeaseKey("a-e1", 2)) != lease_name(LeaseKey("a", 1, 0, 2))


def test_what_cannot_be_asked_for_is_refused() -> None:
    with pytest.raises(HostError, match="job7 shares devices"):
        manifests([order(shared=True)], TYPES, OPTIONS)
    for other in (order(rank=1, node="n2"), order(rank=1, gpus=1), order(rank=1, argv=("x",))):
        with pytest.raises(HostError, match="ranks of job job7 differ"):
            manifests([order(), other], TYPES, OPTIONS)
