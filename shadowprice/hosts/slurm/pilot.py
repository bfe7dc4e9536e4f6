r"""Pilot: one long Slurm allocation, and the whole run inside it.

On a cluster with other users a job a lease would wait in the queue, round after round. A pilot waits
once: ``shadowprice execute --hosts slurm`` runs on the first of its nodes, and starts supervisors on all
of them as steps, in a tenth of a second::

    python -m shadowprice.hosts.slurm.pilot --nodes 2 --gpus v100:4 --time 8:00:00 \
        --partition gpu,account=lab --state /shared/run -- jobs.yaml --policy srtf

Two minutes before Slurm takes the allocation back the driver is told to stop: running jobs make a
checkpoint, and the same command again, in a new pilot of the same shape, goes on where this one ended.
What an option asks for is Slurm's to refuse; ``--print`` shows the script instead of submitting it.
"""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from shadowprice.errors import HostError, InputError, ShadowpriceError
from shadowprice.hosts.slurm.commands import Slurm

NOTICE_S = 120
_BEFORE_OPTION = re.compile(r"(?:^|,+)(?=[a-z][\w-]*=)", re.IGNORECASE)
_LOG = "pilot.log"

_SCRIPT = """\
#!/bin/bash
# The driver, on the first node of this allocation.
umask 077
state={state}
[ -w "$state" ] || {{ echo "$(hostname) cannot write $state, which all nodes must share" >&2; exit 66; }}
exec >>"$state/{log}" 2>&1
{python} -m shadowprice execute --hosts "slurm:$SLURM_JOB_ID" --no-view {arguments} &
driver=$!
# Slurm tells this script alone; the driver asks its jobs for a last checkpoint.
trap 'kill -TERM $driver 2>/dev/null' USR1 TERM
wait $driver
code=$?
# A trap ends the first wait, not the driver.
while kill -0 $driver 2>/dev/null; do wait $driver; code=$?; done
exit $code
"""


def sbatch_options(nodes: int, gpus: str, time_limit: str, cpus: int, partition: str) -> list[str]:
    """Options of ``sbatch``.

    Parameters
    ----------
    nodes : int
        Nodes, each with ``gpus``.
    gpus : str
        GPUs of each node, ``COUNT`` or ``TYPE:COUNT``; empty for CPU slots.
    time_limit : str
        As ``--time`` of ``sbatch`` takes it; the partition's own if empty.
    cpus : int
        CPU cores of each node; 0 for all of it, with nobody else on it.
    partition : str
        Partitions and further options, whose values may be lists: ``gpu,account=lab,exclude=node1,node2``.
        What stands before a ``=`` is an option, also within a value; blanks beside commas are dropped.

    Raises
    ------
    InputError
        If an option is ``export``, whose value would be cut.
    """
    partitions, *more = _BEFORE_OPTION.split(re.sub(r"\s*,\s*", ",", partition).strip(", "))
    if any(option.startswith("export=") for option in more):
        raise InputError(
            "--partition: has export=, expected other options: jobs see the environment of this command, set it there"
        )
    return [
        "--no-requeue",
        "--no-kill",  # a node that is lost is not the end of the run
        f"--nodes={nodes}",
        "--ntasks-per-node=1",
        "--job-name=shadowprice-pilot",
        *([f"--cpus-per-task={cpus}"] if cpus else ["--exclusive", "--mem=0"]),
        *([f"--gres=gpu:{gpus}"] if gpus else []),
        *([f"--time={time_limit}"] if time_limit else []),
        f"--signal=B:USR1@{NOTICE_S}",
        "--output=/dev/null",
        *([f"--partition={partitions}"] if partitions else []),
        *(f"--{option}" for option in more),
    ]


def script(state: Path, arguments: Sequence[str]) -> str:
    """Script that runs ``shadowprice execute`` with these arguments on the first node of the allocation."""
    return _SCRIPT.format(
        state=shlex.quote(str(state)),
        log=_LOG,
        python=shlex.quote(sys.executable),
        arguments=shlex.join([*arguments, "--state", str(state)]),
    )


def main(arguments: list[str] | None = None) -> int:
    """Submit a pilot, or print its script."""
    parser = argparse.ArgumentParser(
        prog="slurm_pilot", description=(__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--gpus", default="", help="of each node: COUNT or TYPE:COUNT")
    parser.add_argument("--time", default="", help="of the allocation, as sbatch takes it")
    parser.add_argument("--cpus", type=int, default=0, help="of each node; 0: all, exclusively")
    parser.add_argument(
        "--partition",
        default="",
        help="PARTITION[,PARTITION]...[,OPTION=VALUE]..., options of sbatch: account=NAME, exclude=NODE,NODE; "
        "none without a value, and none whose value has a NAME= after a comma",
    )
    parser.add_argument("--state", type=Path, required=True, help="shared by all nodes")
    parser.add_argument("--print", action="store_true", help="show the script, submit nothing")
    parser.add_argument("execute", nargs="+", help="JOBS and options of `shadowprice execute`")
    asked = parser.parse_args(arguments)
    state = asked.state.resolve()
    text = script(state, asked.execute)
    if asked.print:
        print(text, end="")
        return 0
    try:
        options = sbatch_options(asked.nodes, asked.gpus, asked.time, asked.cpus, asked.partition)
        try:
            state.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise HostError(f"state directory {state}: {error.strerror}") from None
        print(f"submitted job {Slurm().submit(options, text)}; see {state / _LOG}")
    except ShadowpriceError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
