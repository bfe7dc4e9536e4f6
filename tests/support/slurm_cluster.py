"""A real Slurm cluster on this machine: a controller and four nodes with fake GPUs, for tests.

The GPUs are copies of ``/dev/null`` made by ``mknod``: Slurm insists on character devices before it
hands out an index. Nodes n0 and n1 have two ``v100`` each, n2 and n3 two ``k80`` each. Everything is
in one folder, with a munge key and ports of its own, so that several may run side by side.
"""

from __future__ import annotations

import fcntl
import math
import os
import secrets
import shutil
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import pytest

PROGRAMS = (
    "munged",
    "slurmctld",
    "slurmd",
    "sbatch",
    "squeue",
    "scancel",
    "scontrol",
    "sinfo",
    "srun",
)
NODES = {"n0": "v100", "n1": "v100", "n2": "k80", "n3": "k80"}
GPUS_PER_NODE, CPUS, MEMORY_MB = 2, 8, 4000
ADMINISTRATOR_S, ADMINISTRATOR_LOOKS_S = 4.0, 2.0
"""After which time a node is opened again that Slurm closed, and between two looks for one."""
# Below the range from which Linux takes ports of outgoing connections.
FIRST_PORT, PORT_STEP, PORT_BLOCKS = 17000, 8, 200

CONFIGURATION = """\
ClusterName=fake
SlurmctldHost={machine}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={root}/munge.socket,cred_expire=2
CommunicationParameters=NoAddrCache
SlurmctldPort={port}
SlurmctldPidFile={root}/slurmctld.pid
SlurmdPidFile={root}/slurmd-%n.pid
SlurmctldLogFile={root}/slurmctld.log
SlurmdLogFile={root}/slurmd-%n.log
StateSaveLocation={root}/controller
SlurmdSpoolDir={root}/spool-%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SwitchType=switch/none
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
KillWait=3
ReturnToService=2
SlurmctldTimeout=30
SlurmdTimeout={lost_s}
MessageTimeout=3
InactiveLimit=0
MinJobAge=60
CompleteWait=0
SlurmdParameters=config_overrides
GresTypes=gpu
{nodes}
PartitionName=all Nodes=n[0-3] Default=YES MaxTime=INFINITE State=UP
PartitionName=first Nodes=n[0-1] MaxTime=INFINITE State=UP
"""
NODE = (
    "NodeName={name} NodeHostname={machine} NodeAddr=127.0.0.1 Port={port} CPUs={cpus} Boards=1 "
    "SocketsPerBoard=1 CoresPerSocket={cpus} ThreadsPerCore=1 RealMemory={memory}{gres}"
)
GPUS = "NodeName={name} Name=gpu Type={type} File={root}/dev/nvidia[0-{last}] Flags=nvidia_gpu_env"


def _path() -> str:
    return os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin"


def missing() -> str:
    """Why no cluster can be started here, empty if it can."""
    absent = [name for name in PROGRAMS if shutil.which(name, path=_path()) is None]
    if absent:
        return f"Slurm is not installed: {', '.join(absent)} not found"
    if os.geteuid() != 0:
        return "starting slurmd with fake GPUs needs root"
    return ""


needs_slurm = [pytest.mark.slurm, pytest.mark.skipif(bool(missing()), reason=missing() or "-")]


@contextmanager
def _ports(count: int) -> Iterator[range]:
    """Consecutive free ports, held against other processes of the tests by a lock file each."""
    folder = Path("/tmp/shadowprice-test-ports")
    folder.mkdir(mode=0o700, exist_ok=True)
    for block in range(PORT_BLOCKS):
        first = FIRST_PORT + block * PORT_STEP
        with (folder / f"{first}.lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            if all(_is_free(port) for port in range(first, first + count)):
                yield range(first, first + count)
                return
    raise RuntimeError(f"no {count} free ports from {FIRST_PORT} on")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


@dataclass
class SlurmCluster:
    """A running cluster; ``environment`` is what commands need to reach it."""

    root: Path
    ports: range
    gpus: bool = True
    lost_s: int = 4
    gpus_per_node: int = GPUS_PER_NODE
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    logs: list[IO[bytes]] = field(default_factory=list)
    _looked_s: float = -math.inf
    _closed_s: dict[str, float] = field(default_factory=dict)
    _asked: subprocess.Popen[str] | None = None

    @property
    def environment(self) -> dict[str, str]:
        return {"SLURM_CONF": str(self.root / "slurm.conf"), "PATH": _path()}

    def run(self, *argv: str, check: bool = True) -> str:
        done = subprocess.run(
            argv, env={**os.environ, **self.environment}, capture_output=True, text=True, timeout=20
        )
        if check and done.returncode:
            raise RuntimeError(f"{argv[0]} exited {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def start(self) -> None:
        """Write the configuration, start all daemons, wait until all nodes are idle."""
        self._write()
        files = {
            "key-file": "munge.key",
            "socket": "munge.socket",
            "pid-file": "munged.pid",
            "log-file": "munged.log",
            "seed-file": "munged.seed",
        }
        options = [f"--{option}={self.root}/{name}" for option, name in files.items()]
        self._spawn("munged", "munged", "--foreground", "--force", *options)
        self._wait(lambda: (self.root / "munge.socket").exists(), "munged")
        self.start_controller()
        for name in NODES:
            self.start_node(name)
        self._wait(lambda: self.idle() == len(NODES), "four idle nodes")

    def start_controller(self) -> None:
        self._spawn("slurmctld", *_daemon("slurmctld"))

    def start_node(self, name: str) -> None:
        self._spawn(name, *_daemon(name))

    def kill_node(self, name: str) -> None:
        """SIGKILL of a daemon; the jobs of a slurmd stay behind, as when a node loses it."""
        process = self.processes.pop(name)
        process.kill()
        process.wait(10)

    def resume(self) -> None:
        """Open nodes again that Slurm closed, as after losing sight of a job, like an administrator."""
        for name in NODES:
            self._open(name)

    def tend(self) -> None:
        """Look after the nodes as an administrator does, without waiting for an answer of Slurm.

        Slurm closes nodes by itself: where it had lost jobs, and where the answer to a start came
        late, so that it asked for the start twice. They are opened again after a while.
        """
        now_s = time.monotonic()
        if self._asked is None and now_s - self._looked_s > ADMINISTRATOR_LOOKS_S:
            self._looked_s = now_s
            self._asked = self._ask_closed() if "slurmctld" in self.processes else None
        if self._asked is None or self._asked.poll() is None:
            return
        said, code = self._asked.communicate()[0], self._asked.returncode
        self._asked = None
        if code:
            return
        closed = {name for name in said.split() if name in self.processes}
        self._closed_s = {name: self._closed_s.get(name, now_s) for name in closed}
        for name, since_s in self._closed_s.items():
            if now_s - since_s >= ADMINISTRATOR_S:
                self._open(name)

    def _ask_closed(self) -> subprocess.Popen[str]:
        """A process that prints the nodes that take no jobs."""
        states = "drain,draining,drained,down"
        return subprocess.Popen(
            ["sinfo", "-h", "-N", "-p", "all", "-t", states, "-o", "%N"],
            env={**os.environ, **self.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def _ask_no_more(self) -> None:
        """Give up a question that waits for its answer."""
        if self._asked is not None:
            self._asked.kill()
            self._asked.communicate()
            self._asked = None

    def told(self) -> str:
        """What Slurm says of nodes and jobs."""
        nodes = self.run("sinfo", "-N", "-p", "all", "-o", "%N %T %E", check=False)
        return nodes + self.run("squeue", "-o", "%i %T %N %r", check=False)

    def _open(self, name: str) -> None:
        self.run("scontrol", "update", f"NodeName={name}", "State=RESUME", check=False)

    def restore(self) -> None:
        """Bring all daemons and nodes up, whatever was done to them; no job is left."""
        self._ask_no_more()
        for name in ("slurmctld", *NODES):
            if name in self.processes:
                self.processes[name].send_signal(signal.SIGCONT)
            if name in self.processes and self.processes[name].poll() is not None:
                self.processes.pop(name)
            if name not in self.processes:
                self._spawn(name, *_daemon(name))
        self.cancel_all()
        self.resume()
        self._wait(lambda: self.idle() == len(NODES), "four idle nodes", 30.0)

    def idle(self) -> int:
        """Nodes that are idle and take jobs; ``-t idle`` counts drained ones too."""
        states = self.run("sinfo", "-h", "-N", "-p", "all", "-o", "%T", check=False)
        return states.split().count("idle")

    def node_state(self, name: str) -> str:
        return self.run("sinfo", "-h", "-n", name, "-p", "all", "-o", "%T").strip()

    def allocate(self, nodes: str = "n0,n1", gpus: int | None = None) -> int:
        """A job that holds all of some nodes, with so many of their GPUs; returns when it runs."""
        count = self.gpus_per_node if gpus is None else gpus
        asked = [f"--gres=gpu:{count}"] if self.gpus and count else []
        size = len(nodes.split(","))
        job = self.run(
            *("sbatch", "--parsable", "--no-kill", f"--nodelist={nodes}", f"--nodes={size}"),
            *("--ntasks-per-node=1", "--exclusive", "--mem=0", "--output=/dev/null", *asked),
            *("--partition=all", "--wrap", "exec sleep 100000"),
        ).strip()
        ask = ("squeue", "-h", "-j", job, "-o", "%T")
        self._wait(lambda: self.run(*ask, check=False).strip() == "RUNNING", f"running job {job}")
        return int(job)

    def cancel_all(self) -> None:
        """No job and no process of one is left when this returns."""
        self.run("scancel", "--user=root", check=False)
        limit = time.monotonic() + 10
        while self.run("squeue", "-h", "-o", "%i", check=False) and time.monotonic() < limit:
            time.sleep(0.05)
        self.kill_strays()

    def kill_strays(self) -> None:
        """SIGKILL to every process of a job of this cluster, known by its environment."""
        for _ in range(20):
            found = [
                pid for pid in _processes_with(f"SLURM_CONF={self.root}/") if pid != os.getpid()
            ]
            own = {process.pid for process in self.processes.values()}
            found = [pid for pid in found if pid not in own and _has(pid, "SLURM_JOB_ID=")]
            if not found:
                return
            for pid in found:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            time.sleep(0.05)

    def stop(self) -> None:
        """End all jobs and daemons."""
        self._ask_no_more()
        if "slurmctld" in self.processes and self.processes["slurmctld"].poll() is None:
            self.run("scancel", "--user=root", check=False)
        for name in [*NODES, "slurmctld", "munged"]:
            process = self.processes.pop(name, None)
            if process is None:
                continue
            process.terminate()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(5)
        self.kill_strays()
        for log in self.logs:
            log.close()

    def _spawn(self, name: str, *argv: str) -> None:
        log = (self.root / f"{name}.output").open("ab")
        self.logs.append(log)
        self.processes[name] = subprocess.Popen(
            argv,
            env={**os.environ, **self.environment},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )

    def _wait(self, ready, what: str, limit_s: float = 20.0) -> None:
        limit = time.monotonic() + limit_s
        while not ready():
            dead = [name for name, process in self.processes.items() if process.poll() is not None]
            if dead or time.monotonic() > limit:
                tail = "".join(
                    f"\n--- {log.name}\n{log.read_text(errors='replace')[-1500:]}"
                    for log in sorted(self.root.glob("*.output"))
                )
                raise RuntimeError(f"no {what} after {limit_s:.0f} s; ended: {dead}{tail}")
            time.sleep(0.02)

    def _write(self) -> None:
        machine = socket.gethostname().split(".")[0]
        for name in ("dev", "controller", *(f"spool-{node}" for node in NODES)):
            (self.root / name).mkdir()
        key = self.root / "munge.key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o400)
        for index in range(self.gpus_per_node):
            os.mknod(self.root / f"dev/nvidia{index}", stat.S_IFCHR | 0o666, os.makedev(1, 3))
        nodes, gpus = [], ["AutoDetect=off"]
        for port, (name, kind) in zip(self.ports[1:], NODES.items(), strict=False):
            gres = f" Gres=gpu:{kind}:{self.gpus_per_node}" if self.gpus else ""
            nodes.append(
                NODE.format(
                    name=name, machine=machine, port=port, cpus=CPUS, memory=MEMORY_MB, gres=gres
                )
            )
            if self.gpus:
                last = self.gpus_per_node - 1
                gpus.append(GPUS.format(name=name, type=kind, root=self.root, last=last))
        (self.root / "gres.conf").write_text("\n".join(gpus) + "\n")
        (self.root / "slurm.conf").write_text(
            CONFIGURATION.format(
                machine=machine,
                root=self.root,
                port=self.ports[0],
                lost_s=self.lost_s,
                nodes="\n".join(nodes),
            )
        )


def _daemon(name: str) -> tuple[str, ...]:
    """Command of the controller, or of the daemon of a node."""
    return ("slurmctld", "-D") if name == "slurmctld" else ("slurmd", "-D", "-N", name)


def _processes_with(text: str) -> list[int]:
    return [int(path.name) for path in Path("/proc").glob("[0-9]*") if _has(int(path.name), text)]


def _has(pid: int, text: str) -> bool:
    try:
        return text.encode() in Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False


@contextmanager
def slurm_cluster(
    root: Path, gpus: bool = True, lost_s: int = 4, gpus_per_node: int = GPUS_PER_NODE
) -> Iterator[SlurmCluster]:
    """A cluster for the block; all of it is gone afterwards."""
    with _ports(1 + len(NODES)) as ports:
        cluster = SlurmCluster(root, ports, gpus, lost_s, gpus_per_node)
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()
