"""Manifests of leases for Kubernetes: one JobSet a lease, with a label for Kueue if wanted.

**Not executed.** No Kubernetes was at hand: neither have these manifests been validated against the
schema of a cluster, nor has one run. This is an export, not a host: nothing here starts, watches or
stops anything. What it follows are the documents of JobSet (``jobset.x-k8s.io/v1alpha2``) and Kueue.

On Kubernetes the device plugin chooses the device and nobody chooses who shares one, so orders that
share devices are refused. With a queue, Kueue suspends and admits by its quota: then it schedules,
and not the policy. The Ray host runs there unchanged on a KubeRay cluster.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from shadowprice.errors import HostError
from shadowprice.execution.real.protocol import LeaseKey, Order

HEADER = (
    "# NOT EXECUTED: written by shadowprice for JobSet (jobset.x-k8s.io/v1alpha2) without a cluster at\n"
    "# hand; neither validated against its schema nor run. Check before use.\n"
)
NAME_LIMIT = 63
"""Longest DNS label."""
_POD_SUFFIX = 20
"""What JobSet appends to a name for its jobs and pods (``-ranks-0-0-xxxxx``), which are labels too."""
_DIGITS = 8
_SAFE = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?")
_UNKNOWN_THERE = frozenset({"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "SHADOWPRICE_DEVICES"})
"""Which devices a pod gets, the device plugin decides."""
_PLAIN = re.compile(r"SHADOWPRICE_[A-Z_]+|MASTER_(ADDR|PORT)|[A-Z]+_NUM_THREADS")
"""Variables of ours, which hold no secret."""


@dataclass(frozen=True)
class KubernetesOptions:
    """What an order does not say.

    Parameters
    ----------
    image : str
        Container image with the job's programs.
    gpu_types : mapping of str to str
        Value of the node label ``nvidia.com/gpu.product`` for each GPU type of the run.
    queue : str
        Local queue of Kueue; empty if the policy decides, and not Kueue.
    namespace : str
        Empty for the current one.
    state_claim : str
        PersistentVolumeClaim (ReadWriteMany) that holds the state directory; empty to mount none.
    state : str
        Path at which it is mounted.
    """

    image: str
    gpu_types: Mapping[str, str] = field(default_factory=dict)
    queue: str = ""
    namespace: str = ""
    state_claim: str = ""
    state: str = "/state"


def label_of(name: str, limit: int = NAME_LIMIT) -> str:
    """A DNS label for any name; two names never get the same one, but for collisions of a hash.

    A name that is a label already, and does not look like one made here, stands for itself; any
    other is cut to what is allowed and ends in 8 hexadecimal digits of its SHA-256.

    Parameters
    ----------
    limit : int
        Longest result, at least 16.
    """
    made = re.fullmatch(r".*-x[0-9a-f]{8}", name)
    if _SAFE.fullmatch(name) and len(name) <= limit and not made:
        return name
    digits = hashlib.sha256(name.encode()).hexdigest()[:_DIGITS]
    kept = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    if not kept or not kept[0].isalpha():
        kept = f"j-{kept}".rstrip("-")
    kept = kept[: limit - _DIGITS - 2].rstrip("-")
    return f"{kept}-x{digits}"


def lease_name(key: LeaseKey) -> str:
    """Name of a lease's JobSet: job, epoch and copy; one for all ranks."""
    fork = f"-c{key.copy}" if key.copy else ""
    suffix = f"-e{key.epoch}{fork}"
    return label_of(key.job, NAME_LIMIT - _POD_SUFFIX - len(suffix)) + suffix


def manifests(
    orders: Sequence[Order], gpu_types: Mapping[str, str], options: KubernetesOptions
) -> str:
    """JobSets, and Secrets for their users' variables, as a stream of YAML documents.

    Variables that a job's own file sets may be secrets: they are in a Secret beside the JobSet, never
    in its metadata or pod template.

    Parameters
    ----------
    orders : sequence of Order
        Ranks of any number of leases.
    gpu_types : mapping of str to str
        GPU type of each node named in the orders.

    Raises
    ------
    HostError
        If leases share devices, or the ranks of one differ in what a JobSet has only once.
    """
    by_lease: dict[str, list[Order]] = {}
    for order in sorted(orders, key=lambda order: order.key):
        by_lease.setdefault(lease_name(order.key), []).append(order)
    documents: list[dict[str, Any]] = []
    for name, ranks in by_lease.items():
        _check(ranks, gpu_types)
        secret = _secret(name, ranks[0], options)
        if secret:
            documents.append(secret)
        documents.append(_job_set(name, ranks, gpu_types[ranks[0].node], options, bool(secret)))
    return HEADER + "".join(
        "---\n" + yaml.safe_dump(document, sort_keys=False, width=1000) for document in documents
    )


def _check(ranks: Sequence[Order], gpu_types: Mapping[str, str]) -> None:
    first = ranks[0]
    for order in ranks:
        if order.shared:
            raise HostError(
                f"kubernetes: job {order.key.job} shares devices, which no manifest can ask for; use a policy "
                "without packing, or the Ray host on KubeRay"
            )
        alike = (
            len(order.devices) == len(first.devices)
            and order.argv == first.argv
            and gpu_types[order.node] == gpu_types[first.node]
        )
        if not alike:
            raise HostError(
                f"kubernetes: the ranks of job {order.key.job} differ in devices, type or command, expected "
                "the same number of GPUs of one type on each node"
            )


def _metadata(name: str, options: KubernetesOptions) -> dict[str, Any]:
    namespace = {"namespace": options.namespace} if options.namespace else {}
    return {"name": name, **namespace}


def _secret(name: str, order: Order, options: KubernetesOptions) -> dict[str, Any] | None:
    values = {
        k: v for k, v in order.env.items() if not _PLAIN.fullmatch(k) and k not in _UNKNOWN_THERE
    }
    if not values:
        return None
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": _metadata(name, options),
        "type": "Opaque",
        "stringData": dict(sorted(values.items())),
    }


def _job_set(
    name: str, ranks: Sequence[Order], gpu_type: str, options: KubernetesOptions, secret: bool
) -> dict[str, Any]:
    first, count = ranks[0], len(ranks)
    labels = {
        "app.kubernetes.io/managed-by": "shadowprice",
        **({"kueue.x-k8s.io/queue-name": options.queue} if options.queue else {}),
    }
    # A label's value has a smaller alphabet than a job's name; an annotation takes any text.
    notes = {
        "shadowprice/status": "not executed",
        "shadowprice/job": first.key.job,
        "shadowprice/epoch": str(first.key.epoch),
    }
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {**_metadata(name, options), "labels": labels, "annotations": notes},
        "spec": {
            # Revoking a lease is suspending or deleting its JobSet; a restart is a new epoch, ours.
            "suspend": bool(options.queue),
            "failurePolicy": {"maxRestarts": 0},
            "network": {"enableDNSHostnames": True},
            "replicatedJobs": [
                {
                    "name": "ranks",
                    "replicas": 1,
                    "template": {
                        "spec": {
                            "parallelism": count,
                            "completions": count,
                            "completionMode": "Indexed",
                            "backoffLimit": 0,
                            "template": {"spec": _pod(name, first, gpu_type, options, secret)},
                        }
                    },
                }
            ],
        },
    }


def _pod(
    name: str, order: Order, gpu_type: str, options: KubernetesOptions, secret: bool
) -> dict[str, Any]:
    slots = "/cpu:" in order.devices[0].uuid
    held = len(order.devices)
    resource = {"cpu": held} if slots else {"nvidia.com/gpu": held}
    container: dict[str, Any] = {
        "name": "rank",
        "image": options.image,
        "command": [_literal(argument) for argument in order.argv],
        "workingDir": str(order.working_directory),
        "env": _variables(name, order),
        "resources": {"requests": resource, "limits": resource},
    }
    if secret:
        container["envFrom"] = [{"secretRef": {"name": name}}]
    pod: dict[str, Any] = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": max(1, round(order.grace_s)),
        "containers": [container],
    }
    if not slots:
        product = options.gpu_types.get(gpu_type, gpu_type)
        pod["nodeSelector"] = {"nvidia.com/gpu.product": product}
    if options.state_claim:
        container["volumeMounts"] = [{"name": "state", "mountPath": options.state}]
        claim = {"claimName": options.state_claim}
        pod["volumes"] = [{"name": "state", "persistentVolumeClaim": claim}]
    return pod


def _literal(text: str) -> str:
    """Text that the kubelet leaves as it is: it expands ``$(NAME)``, and ``$$`` to a dollar sign."""
    return text.replace("$", "$$")


def _variables(name: str, order: Order) -> list[dict[str, Any]]:
    """Variables of ours; rank and rendezvous are the cluster's to tell."""
    kept = {k: v for k, v in order.env.items() if _PLAIN.fullmatch(k) and k not in _UNKNOWN_THERE}
    kept |= {
        # First pod of the job "ranks", by the names that JobSet gives with DNS host names.
        "MASTER_ADDR": f"{name}-ranks-0-0.{name}",
        "SHADOWPRICE_EPOCH": str(order.key.epoch),
    }
    kept.pop("SHADOWPRICE_RANK", None)
    index = {"fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}
    listed: list[dict[str, Any]] = [
        {"name": k, "value": _literal(v)} for k, v in sorted(kept.items())
    ]
    return [*listed, {"name": "SHADOWPRICE_RANK", "valueFrom": {"fieldRef": index}}]
