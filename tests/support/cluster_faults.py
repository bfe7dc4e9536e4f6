"""Faults for real runs on a Ray or Slurm cluster of this machine: daemons and nodes that are lost.

As those of :mod:`support.fault_kinds`, each says whether it was done.
"""

from __future__ import annotations

import math
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from shadowprice.execution.supervision.processes import process
from support.driver_process import with_number
from support.fault_scene import Scene
from support.ray_cluster import RayCluster
from support.slurm_cluster import SlurmCluster

ADMINISTRATOR_S = 6.0
"""After which nodes are opened again that Slurm closed: it does so where jobs ran that it had lost."""

# Ray.


def kill_raylet(scene: Scene) -> bool:
    """A node's Ray daemon dies, and a new node of its name comes."""
    cluster: RayCluster = scene.cluster
    name = scene.draw.choice(sorted(cluster.nodes))
    if not scene.targets() or len(cluster.nodes) < 2:
        return False
    cluster.kill(name)

    def again() -> bool:
        cluster.forget(name)
        cluster.add(name)
        return True

    scene.after(scene.draw.uniform(0.5, 4.0), again)
    return True


def kill_agent(scene: Scene) -> bool:
    """The actor on a node that starts supervisors."""
    cluster: RayCluster = scene.cluster
    raylets = {cluster.raylet(name) for name in cluster.nodes}
    agents = [
        pid
        for pid, words in _commands()
        if words.startswith(b"ray::Agent") and (process(pid) or (0,))[0] in raylets
    ]
    if not agents or not scene.targets():
        return False
    with_number(scene.draw.choice(agents), signal.SIGKILL)
    return True


def stop_raylet(scene: Scene) -> bool:
    """A node's Ray daemon hangs for a while, shorter than it takes to call it dead."""
    cluster: RayCluster = scene.cluster
    if not scene.targets():
        return False
    pid = cluster.raylet(scene.draw.choice(sorted(cluster.nodes)))
    with_number(pid, signal.SIGSTOP)

    def wake() -> bool:
        with_number(pid, signal.SIGCONT)
        return True

    scene.after(scene.draw.uniform(0.3, 1.0), wake)
    return True


# Slurm.


def cancel_job(scene: Scene) -> bool:
    """Somebody else cancels a job of the run."""
    cluster: SlurmCluster = scene.cluster
    jobs = cluster.run("squeue", "-h", "-t", "running", "-o", "%i", check=False).split()
    if not jobs or not scene.targets():
        return False
    cluster.run("scancel", scene.draw.choice(jobs), check=False)
    return True


def kill_slurmd(scene: Scene) -> bool:
    """A node loses its daemon; its jobs go on. It comes back."""
    cluster: SlurmCluster = scene.cluster
    name = scene.draw.choice(["n0", "n1"])
    if name not in cluster.processes or not scene.targets():
        return False
    cluster.kill_node(name)

    def again() -> bool:
        cluster.start_node(name)
        scene.after(ADMINISTRATOR_S, resume)
        return True

    def resume() -> bool:
        cluster.resume()
        return True

    scene.after(scene.draw.uniform(0.5, 6.0), again)
    return True


def restart_controller(scene: Scene) -> bool:
    """Slurm's controller is killed, and comes back."""
    cluster: SlurmCluster = scene.cluster
    if "slurmctld" not in cluster.processes or not scene.targets():
        return False
    cluster.kill_node("slurmctld")
    scene.away_until = math.inf

    def again() -> bool:
        cluster.start_controller()
        scene.away_until = time.monotonic() + ADMINISTRATOR_S
        scene.after(ADMINISTRATOR_S, resume)
        return True

    def resume() -> bool:
        cluster.resume()
        return True

    scene.after(scene.draw.uniform(0.2, 2.0), again)
    return True


def _commands() -> list[tuple[int, bytes]]:
    """Numbers and command lines of all processes."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            found.append((int(name), Path(f"/proc/{name}/cmdline").read_bytes()))
        except OSError:
            continue
    return found


RAY_KINDS: dict[str, tuple[Callable[[Scene], bool], int]] = {
    "SIGKILL raylet, and a new node": (kill_raylet, 2),
    "SIGKILL agent": (kill_agent, 4),
    "SIGSTOP raylet for a while": (stop_raylet, 3),
}
SLURM_KINDS: dict[str, tuple[Callable[[Scene], bool], int]] = {
    "scancel by somebody else": (cancel_job, 5),
    "SIGKILL slurmd, and back": (kill_slurmd, 2),
    "SIGKILL slurmctld, and back": (restart_controller, 3),
}
CLUSTER_KINDS = RAY_KINDS | SLURM_KINDS
"""Name, fault and how often in proportion."""
