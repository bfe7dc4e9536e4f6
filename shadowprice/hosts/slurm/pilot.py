r"""Pilot mode: one long Slurm allocation, and inside it Ray with the whole run.

On a cluster with other users each lease's own job would wait in the queue, round after round. A pilot
waits once: it starts Ray on the nodes it was given and runs ``shadowprice execute --hosts ray``
there, so that leases are Ray's business and start in about a second::

    python -m shadowprice.hosts.slurm.pilot --nodes 2 --gpus v100:4 --time 8:00:00 \
        --partition gpu,account=lab --state /shared/run -- jobs.yaml --policy srtf

Two minutes before Slurm takes the allocation back the driver is told to stop: running jobs make a
checkpoint, and the same command again, in a new pilot, goes on where this one ended. ``--print``
shows the script instead of submitting it.
"""

from __future__ import annotations

import argparse
import re
import secrets
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from shadowprice.errors import HostError, ShadowpriceError
from shadowprice.hosts.slurm.commands import Slurm
from shadowprice.hosts.slurm.jobs import SlurmOptions, checked_limit
from shadowprice.hosts.supervision.files import write_text

NOTICE_S = 120
_GPUS = re.compile(r"(?:(?P<type>[A-Za-z][A-Za-z0-9._-]*):)?(?P<count>[1-9]\d*)")
_ANYWHERE = SlurmOptions()
_TOKEN, _LOG = "pilot.token", "pilot.log"

_SCRIPT = """\
#!/bin/bash
# Ray on the nodes of this allocation, and the driver on the first of them.
umask 077
state={state}
[ -w "$state" ] || {{ echo "$(hostname) cannot write $state, which all nodes must share" >&2; exit 66; }}
exec >>"$state/{log}" 2>&1
PATH={programs}:$PATH
export RAY_USAGE_STATS_ENABLED=0 RAY_AUTH_MODE=token RAY_AUTH_TOKEN_PATH="$state/{token}"
export RAY_kill_child_processes_on_worker_exit_with_raylet_subreaper=1 RAY_worker_niceness=0
port=$((20000 + SLURM_JOB_ID % 10000))
head=$SLURMD_NODENAME
if [ "$SLURM_NNODES" -eq 1 ]; then
    address=127.0.0.1
else
    address=$(hostname -I | cut -d ' ' -f 1)
fi
# Steps are given all of a node that the allocation has of it, and no more than one task on each.
step="srun --overlap --exact --ntasks-per-node=1 --cpus-per-task=$SLURM_CPUS_ON_NODE"
gpus="--num-gpus=${{SLURM_GPUS_ON_NODE:-0}} --num-cpus=$SLURM_CPUS_ON_NODE"
pids=
$step --nodes=1 --ntasks=1 --nodelist="$head" \\
    ray start --head --node-ip-address="$address" --port="$port" --include-dashboard=false \\
    --temp-dir="/tmp/ray-pilot-$SLURM_JOB_ID" $gpus{resources} --block &
pids=$!
if [ "$SLURM_NNODES" -gt 1 ]; then
    sleep 5
    $step --nodes=$((SLURM_NNODES - 1)) --ntasks=$((SLURM_NNODES - 1)) --exclude="$head" \\
        ray start --address="$address:$port" $gpus{resources} --block &
    pids="$pids $!"
fi
ready=1
for attempt in $(seq {attempts}); do
    sleep 2
    alive=$(timeout 30 {python} -I -c {count} "$address:$port" 2>/dev/null) || continue
    [ "$alive" -ge "$SLURM_NNODES" ] && ready=0 && break
done
if [ $ready -eq 0 ]; then
    {python} -m shadowprice execute --hosts "ray:$address:$port" --no-view {arguments} &
    driver=$!
    # Slurm tells this script alone; the driver asks its jobs for a last checkpoint.
    trap 'kill -TERM $driver 2>/dev/null' USR1 TERM
    wait $driver
    code=$?
    # A trap ends the first wait, not the driver.
    while kill -0 $driver 2>/dev/null; do wait $driver; code=$?; done
else
    echo "Ray did not come up on $SLURM_NNODES nodes"
    code=69
fi
kill -TERM $pids 2>/dev/null
wait
rm -rf "/tmp/ray-pilot-$SLURM_JOB_ID"
exit $code
"""
_COUNT = (
    "import sys, ray; ray.init(address=sys.argv[1], logging_level='error', log_to_driver=False); "
    "print(sum(node['Alive'] for node in ray.nodes()))"
)


@dataclass(frozen=True)
class Pilot:
    """One allocation and the run inside it.

    Parameters
    ----------
    state : Path
        State directory of the run, on storage that all nodes share.
    arguments : tuple of str
        Of ``shadowprice execute``, but for ``--hosts`` and ``--state``.
    nodes : int
        Nodes, each with ``gpus``.
    gpus : str
        GPUs of each node, ``COUNT`` or ``TYPE:COUNT``; empty for CPU slots.
    time_limit : str
        As ``--time`` of ``sbatch`` takes it.
    cpus : int
        CPU cores of each node; 0 for all of it, with nobody else on it.
    start_s : float
        How long Ray may take to come up on all nodes [s].
    """

    state: Path
    arguments: tuple[str, ...]
    nodes: int = 1
    gpus: str = ""
    time_limit: str = ""
    cpus: int = 0
    start_s: float = 120.0
    options: SlurmOptions = _ANYWHERE
    python: str = sys.executable

    def __post_init__(self) -> None:
        """Refuse what Slurm would.

        Raises
        ------
        HostError
            If GPUs are malformed, or there is no node.
        """
        if self.gpus and not _GPUS.fullmatch(self.gpus):
            raise HostError(f"slurm pilot: gpus {self.gpus!r}, expected COUNT or TYPE:COUNT")
        if self.nodes < 1:
            raise HostError(f"slurm pilot: {self.nodes} nodes, expected at least 1")

    def sbatch_options(self) -> list[str]:
        """Options of ``sbatch``."""
        room = [f"--cpus-per-task={self.cpus}"] if self.cpus else ["--exclusive", "--mem=0"]
        return [
            "--no-requeue",
            f"--nodes={self.nodes}",
            "--ntasks-per-node=1",
            "--job-name=shadowprice-pilot",
            *room,
            *([f"--gres=gpu:{self.gpus}"] if self.gpus else []),
            *([f"--time={self.time_limit}"] if self.time_limit else []),
            f"--signal=B:USR1@{NOTICE_S}",
            "--output=/dev/null",
            *self.options.arguments(),
        ]

    def script(self) -> str:
        """Script that runs on the first node of the allocation."""
        found = _GPUS.fullmatch(self.gpus)
        kind = found["type"] if found else None
        # Ray finds types of real GPUs by itself; the name that Slurm has for them is the site's.
        named = f" --resources='{{\"accelerator_type:{kind}\": 1}}'" if kind else ""
        arguments = shlex.join([*self.arguments, "--state", str(self.state)])
        return _SCRIPT.format(
            state=shlex.quote(str(self.state)),
            log=_LOG,
            token=_TOKEN,
            programs=shlex.quote(str(Path(self.python).parent)),
            resources=named,
            attempts=max(1, round(self.start_s / 2)),
            python=shlex.quote(self.python),
            count=shlex.quote(_COUNT),
            arguments=arguments,
        )

    def submit(self, slurm: Slurm) -> int:
        """Make the state directory with a token for Ray, and submit; the number of the job.

        Raises
        ------
        HostError
            If the directory cannot be written or Slurm refuses.
        """
        try:
            self.state.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not (self.state / _TOKEN).exists():
                write_text(str(self.state / _TOKEN), secrets.token_hex(32))
        except OSError as error:
            raise HostError(f"state directory {self.state}: {error.strerror}") from None
        return slurm.submit(self.sbatch_options(), self.script())


def main(arguments: list[str] | None = None) -> int:
    """Submit a pilot, or print its script."""
    parser = argparse.ArgumentParser(
        prog="slurm_pilot", description=(__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--gpus", default="", help="of each node: COUNT or TYPE:COUNT")
    parser.add_argument("--time", default="", help="of the allocation, as sbatch takes it")
    parser.add_argument("--cpus", type=int, default=0, help="of each node; 0: all, exclusively")
    parser.add_argument("--partition", default="", help="PARTITION[,account=NAME][,qos=NAME]...")
    parser.add_argument("--state", type=Path, required=True, help="shared by all nodes")
    parser.add_argument("--print", action="store_true", help="show the script, submit nothing")
    parser.add_argument("execute", nargs="+", help="JOBS and options of `shadowprice execute`")
    parsed = parser.parse_args(arguments)
    try:
        options = SlurmOptions.parse(parsed.partition)
        pilot = Pilot(
            parsed.state.resolve(),
            tuple(parsed.execute),
            parsed.nodes,
            parsed.gpus,
            parsed.time and checked_limit(parsed.time),
            parsed.cpus,
            options=options,
        )
        if parsed.print:
            print(pilot.script(), end="")
            return 0
        print(f"submitted job {pilot.submit(Slurm())}; see {pilot.state / _LOG}")
    except ShadowpriceError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
