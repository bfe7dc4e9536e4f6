"""Points on a Ray cluster, each tried again elsewhere when its node is lost.

Ray starts, places and retries the tasks; rows come back to this process, which alone writes them. Nodes need the same
version of the package, and the files of the study at the same paths; each task checks both.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from shadowprice.errors import HostError, InputError
from shadowprice.hosts.ray.connection import CONNECT_S, RayThread, connect, import_ray
from shadowprice.studies.points.runner import (
    Carrier,
    Ends,
    FailedPoint,
    PointResult,
    PointTask,
    run_point,
)

RETRIES = 10
"""Times that a task is tried again whose worker or node is lost."""

WAIT_S = 5.0
PATIENCE_S = 120.0
"""Time without a core in the cluster after which the study stops."""

IN_FLIGHT = 4
"""Tasks a core that Ray knows of at a time."""

NAMESPACE = "shadowprice-study"


def ray_pool(text: str) -> Carrier:
    """Carry tasks out on the cluster of ``--on``.

    The carrier raises HostError if the cluster cannot be reached, hangs, or has no core left.

    Raises
    ------
    InputError
        If it is anything but ``ray``, ``ray:HOST:PORT`` or ``ray://HOST:PORT``.
    """
    if text == "ray":
        return partial(_ends, "")
    if text.startswith("ray://"):
        return partial(_ends, text)
    if text.startswith("ray:"):
        return partial(_ends, text.removeprefix("ray:"))
    raise InputError(f"on {text!r}: expected ray, ray:HOST:PORT or ray://HOST:PORT")


def _ends(address: str, tasks: Sequence[PointTask]) -> Ends:
    if not tasks:
        return
    ray, calls = import_ray(), RayThread()
    ours = connect(calls, address, NAMESPACE)
    try:
        yield from _run_tasks(ray, calls, tasks)
    except HostError as error:
        raise HostError(f"{error}; what has ended is kept: the same command goes on") from error
    finally:
        if ours:
            # A cluster that hangs is not to keep the rows from being written.
            with suppress(HostError):
                calls.call("let this driver go", ray.shutdown, CONNECT_S)


def _run_tasks(ray: Any, calls: RayThread, tasks: Sequence[PointTask]) -> Ends:
    remote = ray.remote(num_cpus=1, max_retries=RETRIES)(run_point)
    waiting, running = deque(tasks), dict[Any, PointTask]()
    seen = time.monotonic()
    cores = 0
    while waiting or running:
        while waiting and len(running) < max(IN_FLIGHT * cores, 1):
            task = waiting.popleft()
            running[calls.call("take a task", partial(remote.remote, task), CONNECT_S)] = task
        ready, _ = calls.call(
            "wait for tasks",
            lambda: ray.wait(list(running), num_returns=1, timeout=WAIT_S),
            WAIT_S + CONNECT_S,
        )
        # All that have ended by now, at once.
        if ready and len(running) > 1:
            ready, _ = calls.call(
                "look for tasks that ended",
                lambda: ray.wait(list(running), num_returns=len(running), timeout=0),
                CONNECT_S,
            )
        for reference in ready:
            task = running.pop(reference)
            yield task, calls.call("give rows", partial(_ended, ray, reference), CONNECT_S)
        cores = int(calls.call("list its cores", ray.cluster_resources, CONNECT_S).get("CPU", 0))
        if ready or cores:
            seen = time.monotonic()
        elif time.monotonic() - seen > PATIENCE_S:
            raise HostError(f"hosts ray: no core in the cluster for {PATIENCE_S:g} s")


def _ended(ray: Any, reference: Any) -> PointResult:
    """Rows of a task that ended, or why Ray gave it up."""
    try:
        result: PointResult = ray.get(reference)
    except ray.exceptions.RayError as error:
        return FailedPoint(f"Ray gave it up: {' '.join(str(error).split())[:300]}")
    return result
