"""Discovery of this machine's GPUs: by NVML, else by ``nvidia-smi``, else none.

``pynvml`` is the import name of nvidia-ml-py (extra ``gpu``). Types are the names that NVML gives,
lower-case, without the maker's and the series' words, joined by hyphens: ``NVIDIA A100-SXM4-40GB``
is ``a100-sxm4-40gb``, ``NVIDIA GeForce RTX 3090`` is ``rtx-3090``.
"""

from __future__ import annotations

import importlib
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from shadowprice.errors import HostError

SMI_TIMEOUT_S = 10.0
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
        Processes that compute on it now.
    """

    uuid: str
    gpu_type: str
    processes: frozenset[int] = frozenset()


def load_nvml() -> ModuleType | None:
    """The module ``pynvml``, None where it is not installed."""
    try:
        return importlib.import_module("pynvml")
    except ImportError:
        return None


def find_gpus(nvml: ModuleType | None, smi: str = "nvidia-smi") -> tuple[DiscoveredGpu, ...]:
    """GPUs and MIG instances in the order of PCI addresses; empty where there is no driver.

    Parameters
    ----------
    nvml
        The module ``pynvml``.
    smi
        Program to ask where the module is missing.

    Raises
    ------
    HostError
        If there is a driver that does not answer.
    """
    if nvml is None:
        return _by_smi(smi)
    try:
        nvml.nvmlInit()
    except (nvml.NVMLError_LibraryNotFound, nvml.NVMLError_DriverNotLoaded):
        return ()
    except nvml.NVMLError as error:
        raise HostError(
            f"NVML does not start: {error}; repair the driver, or run on CPU slots with local:SLOTS"
        ) from None
    try:
        return tuple(_by_nvml(nvml))
    except nvml.NVMLError as error:
        raise HostError(f"NVML does not tell the GPUs: {error}") from None
    finally:
        nvml.nvmlShutdown()


def normalised(name: str) -> str:
    """Type of a GPU by the name of its model."""
    words = [word for word in name.lower().split() if word not in _SERIES]
    return re.sub(r"[^a-z0-9.-]", "-", "-".join(words)) or "gpu"


def _by_nvml(nvml: ModuleType) -> Iterator[DiscoveredGpu]:
    for index in range(nvml.nvmlDeviceGetCount()):
        gpu = nvml.nvmlDeviceGetHandleByIndex(index)
        if _is_split(nvml, gpu):
            for k in range(nvml.nvmlDeviceGetMaxMigDeviceCount(gpu)):
                try:
                    instance = nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, k)
                except nvml.NVMLError_NotFound:
                    continue
                yield _described(nvml, instance)
        else:
            yield _described(nvml, gpu)


def _is_split(nvml: ModuleType, gpu: Any) -> bool:
    try:
        return bool(nvml.nvmlDeviceGetMigMode(gpu)[0])
    except nvml.NVMLError_NotSupported:
        return False


def _described(nvml: ModuleType, gpu: Any) -> DiscoveredGpu:
    try:
        running = nvml.nvmlDeviceGetComputeRunningProcesses(gpu)
    except nvml.NVMLError_NotSupported:
        running = []
    return DiscoveredGpu(
        _text(nvml.nvmlDeviceGetUUID(gpu)),
        normalised(_text(nvml.nvmlDeviceGetName(gpu))),
        frozenset(int(item.pid) for item in running),
    )


def _text(value: str | bytes) -> str:
    """Older versions of the module give bytes."""
    return value.decode() if isinstance(value, bytes) else value


def _by_smi(smi: str) -> tuple[DiscoveredGpu, ...]:
    listed = _ask(smi, "-L")
    if listed is None:
        return ()
    query = _ask(smi, "--query-compute-apps=gpu_uuid,pid", "--format=csv,noheader") or ""
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
        found[match["uuid"]] = DiscoveredGpu(match["uuid"], normalised(name), pids)
    return tuple(found.values())


def _ask(smi: str, *arguments: str) -> str | None:
    """Output of the program; None where it, or the driver, is missing."""
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
        return None
    return done.stdout if done.returncode == 0 else None
