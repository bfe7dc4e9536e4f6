"""Faults for real runs on a Ray or Slurm cluster of this machine: daemons and nodes that are lost.

As those of :mod:`support.fault_kinds`, each says what it was done to.
"""

from __future__ import annotations

import math
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from shadowprice.hosts.supervision.processes import process
from support.driver_process import with_number
from support.fault_scene import Scene
from support.ray_cluster import RayCluster
from support.slurm_cluster import SlurmCluster

BACK_S = 6.0
"""Until a controller that came back knows all nodes again."""

# Ray.


def kill_raylet(scene: Scene) -> str:
    """A node's Ray daemon dies, and a new node of its name comes."""
    cluster: RayCluster = scene.cluster
    name = scene.draw.choice(sorted(cluster.nodes))
    if not scene.targets() or len(cluster.nodes) < 2:
        return ""
    cluster.kill(name)

    def again() -> bool:
        cluster.forget(name)
        cluster.add(name)
        return True

    scene.after(scene.draw.uniform(0.5, 4.0), again)
    return f"node {name}"


def kill_agent(scene: Scene) -> str:
    """The actor on a node that starts supervisors."""
    cluster: RayCluster = scene.cluster
    raylets = {cluster.raylet(name): name for name in cluster.nodes}
    agents = {
        pid: raylets[parent]
        for pid, words in _commands()
        if words.startswith(b"ray::Agent") and (parent := (process(pid) or (0,))[0]) in raylets
    }
    if not agents or not scene.targets():
        return ""
    pid = scene.draw.choice(sorted(agents))
    with_number(pid, signal.SIGKILL)
    return f"node {agents[pid]}"


def stop_raylet(scene: Scene) -> str:
    """A node's Ray daemon hangs for a while, shorter than it takes to call it dead."""
    cluster: RayCluster = scene.cluster
    if not scene.targets():
        return ""
    name = scene.draw.choice(sorted(cluster.nodes))
    pid = cluster.raylet(name)
    with_number(pid, signal.SIGSTOP)

    def wake() -> bool:
        with_number(pid, signal.SIGCONT)
        return True

    scene.after(scene.draw.uniform(0.3, 1.0), wake)
    return f"node {name}"


# Slurm.


def cancel_step(scene: Scene) -> str:
    """Somebody else cancels a step of the run."""
    cluster: SlurmCluster = scene.cluster
    said = cluster.run("squeue", "-h", "-s", "-o", "%i", check=False).split()
    steps = [step for step in said if step.rpartition(".")[2].isdigit()]
    if not steps or not scene.targets():
        return ""
    step = scene.draw.choice(steps)
    cluster.run("scancel", step, check=False)
    return f"Slurm step {step}"


def kill_slurmd(scene: Scene) -> str:
    """A node loses its daemon; its jobs go on. It comes back."""
    cluster: SlurmCluster = scene.cluster
    name = scene.draw.choice(["n0", "n1"])
    if name not in cluster.processes or not scene.targets():
        return ""
    cluster.kill_node(name)

    def again() -> bool:
        cluster.start_node(name)
        return True

    scene.after(scene.draw.uniform(0.5, 6.0), again)
    return f"node {name}"


def stop_slurmd(scene: Scene) -> str:
    """A node's daemon hangs for a while; if it is to start a job then, Slurm closes the node."""
    cluster: SlurmCluster = scene.cluster
    name = scene.draw.choice(["n0", "n1"])
    if name not in cluster.processes or not scene.targets():
        return ""
    daemon = cluster.processes[name]
    daemon.send_signal(signal.SIGSTOP)

    def wake() -> bool:
        daemon.send_signal(signal.SIGCONT)
        return True

    scene.after(scene.draw.uniform(1.0, 6.0), wake)
    return f"node {name}"


def close_node(scene: Scene) -> str:
    """An administrator takes a node out of use; it is opened again some time later."""
    cluster: SlurmCluster = scene.cluster
    name = scene.draw.choice(["n0", "n1"])
    if "slurmctld" not in cluster.processes or not scene.targets():
        return ""
    change = (f"NodeName={name}", "State=DRAIN", "Reason=maintenance")
    cluster.run("scontrol", "update", *change, check=False)
    return f"node {name}"


def restart_controller(scene: Scene) -> str:
    """Slurm's controller is killed, and comes back."""
    cluster: SlurmCluster = scene.cluster
    if "slurmctld" not in cluster.processes or not scene.targets():
        return ""
    cluster.kill_node("slurmctld")
    scene.away_until = math.inf

    def again() -> bool:
        cluster.start_controller()
        scene.away_until = time.monotonic() + BACK_S
        return True

    scene.after(scene.draw.uniform(0.2, 2.0), again)
    return "controller"


def _commands() -> list[tuple[int, bytes]]:
    """Numbers and command lines of all processes."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            found.append((int(name), Path(f"/proc/{name}/cmdline").read_bytes()))
        except OSError:
            continue
    return found


RAY_KINDS: dict[str, tuple[Callable[[Scene], str], int]] = {
    "SIGKILL raylet, and a new node": (kill_raylet, 2),
    "SIGKILL agent": (kill_agent, 4),
    "SIGSTOP raylet for a while": (stop_raylet, 3),
}
SLURM_KINDS: dict[str, tuple[Callable[[Scene], str], int]] = {
    "scancel by somebody else": (cancel_step, 5),
    "SIGKILL slurmd, and back": (kill_slurmd, 2),
    "SIGKILL slurmctld, and back": (restart_controller, 3),
    "SIGSTOP slurmd for a while": (stop_slurmd, 3),
    "node drained for a while": (close_node, 2),
}
CLUSTER_KINDS = RAY_KINDS | SLURM_KINDS
"""Name, fault and how often in proportion."""
