"""Discovery of this machine's GPUs by ``nvidia-smi``, which is there wherever their driver is.

Types are the names that it gives, lower-case, without the maker's and the series' words, joined by
hyphens: ``NVIDIA A100-SXM4-40GB`` is ``a100-sxm4-40gb``, ``NVIDIA GeForce RTX 3090`` is ``rtx-3090``.
"""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass

from shadowprice.errors import HostError
from shadowprice.hosts.supervision.processes import lease_of

SMI_TIMEOUT_S = 10.0
_NO_GPU = frozenset({6, 9, 12})
"""Exit codes of the program where there is no GPU, no driver, or no library of it."""
_SERIES = frozenset({"nvidia", "tesla", "geforce", "quadro", "graphics", "device"})
_GPU = re.compile(r"GPU \d+: (?P<name>.+) \(UUID: (?P<uuid>GPU-[\w-]+)\)")
_MIG = re.compile(r"\s+MIG (?P<name>\S+)\s+Device\s+\d+: \(UUID: (?P<uuid>MIG-[\w/-]+)\)")


@dataclass(frozen=True)
class DiscoveredGpu:
    """A GPU or a MIG instance.

    Parameters
    ----------
    uuid : str
        What ``CUDA_VISIBLE_DEVICES`` takes.
    gpu_type : str
        Its name, normalised.
    processes : frozenset of int
        Processes that compute on it now; of a MIG instance, those on any of its GPU that belong to no lease: which
        instance a lease has, claims tell.
    """

    uuid: str
    gpu_type: str
    processes: frozenset[int] = frozenset()


def find_gpus(smi: str = "nvidia-smi") -> tuple[DiscoveredGpu, ...]:
    """GPUs and MIG instances in the order of PCI addresses; empty where there is no driver.

    Parameters
    ----------
    smi : str
        Program to ask.

    Raises
    ------
    HostError
        If there is a driver that does not answer.
    """
    listed = _ask(smi, "-L")
    query = (
        _ask(smi, "--query-compute-apps=gpu_uuid,pid", "--format=csv,noheader") if listed else ""
    )
    running: dict[str, set[int]] = {}
    for line in query.splitlines():
        uuid, _, pid = line.partition(",")
        if pid.strip().isdigit():
            running.setdefault(uuid.strip(), set()).add(int(pid))
    found: dict[str, DiscoveredGpu] = {}
    model = whole = ""
    for line in listed.splitlines():
        if match := _GPU.match(line):
            model, whole = match["name"], match["uuid"]
        elif match := _MIG.match(line):
            found.pop(whole, None)  # only its parts can be used
        else:
            continue
        name = model if match["uuid"] == whole else f"{model} MIG {match['name']}"
        pids = frozenset(running.get(whole, ()))
        if match["uuid"] != whole:
            pids = frozenset(pid for pid in pids if not lease_of(pid))
        found[match["uuid"]] = DiscoveredGpu(match["uuid"], normalised(name), pids)
    return tuple(found.values())


def normalised(name: str) -> str:
    """Type of a GPU by the name of its model."""
    words = [word for word in name.lower().split() if word not in _SERIES]
    return re.sub(r"[^a-z0-9.-]", "-", "-".join(words)) or "gpu"


def _ask(smi: str, *arguments: str) -> str:
    """Output of the program; empty where it, or the driver, is missing."""
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        done = subprocess.run(
            [smi, *arguments],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SMI_TIMEOUT_S,
            stdin=subprocess.DEVNULL,
            env=environment,
        )
    except subprocess.TimeoutExpired:
        raise HostError(
            f"{smi} does not answer within {SMI_TIMEOUT_S:g} s: repair the driver, or run on CPU "
            "slots with local:SLOTS"
        ) from None
    except OSError:
        return ""
    if done.returncode and done.returncode not in _NO_GPU:
        words = " ".join((done.stdout + done.stderr).split())[:200]
        raise HostError(
            f"{smi} ended with {done.returncode}: {words}; repair the driver, or run on CPU slots with "
            "local:SLOTS"
        )
    return "" if done.returncode else done.stdout
