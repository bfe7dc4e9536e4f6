r"""Pilot: one long Slurm allocation, and the whole run inside it.

On a cluster with other users a job a lease would wait in the queue, round after round. A pilot waits
once: ``shadowprice execute --hosts slurm`` runs on the first of its nodes, and starts supervisors on all
of them as steps, in a tenth of a second::

    python -m shadowprice.hosts.slurm.pilot --nodes 2 --gpus v100:4 --time 8:00:00 \
        --partition gpu,account=lab --state /shared/run -- jobs.yaml --policy srtf

Two minutes before Slurm takes the allocation back the driver is told to stop: running jobs make a
checkpoint, and the same command again, in a new pilot of the same shape, goes on where this one ended.
``--print`` shows the script instead of submitting it.
"""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from shadowprice.errors import HostError, ShadowpriceError
from shadowprice.hosts.slurm.commands import Slurm
from shadowprice.hosts.slurm.time_limits import limit_s

NOTICE_S = 120
_GPUS = re.compile(r"(?:(?P<type>[A-Za-z][A-Za-z0-9._-]*):)?(?P<count>[1-9]\d*)")
_LOG = "pilot.log"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,127}")
_PASSED = ("account", "qos", "reservation", "exclude")

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


def placed(address: str) -> list[str]:
    """Options of ``sbatch`` that say where: ``PARTITION[,account=NAME][,qos=NAME][,reservation=NAME][,exclude=NODE]``.

    Raises
    ------
    HostError
        If a part is unknown or malformed.
    """
    options = []
    for position, part in enumerate(filter(None, address.split(","))):
        name, equals, value = part.partition("=")
        if not equals and position == 0 and _NAME.fullmatch(name):
            options.append(f"--partition={name}")
        elif name in _PASSED and _NAME.fullmatch(value):
            options.append(f"--{name}={value}")
        else:
            raise HostError(
                f"slurm pilot: {part!r} in {address!r}, expected PARTITION[,account=NAME][,qos=NAME]"
                "[,reservation=NAME][,exclude=NODE]"
            )
    return options


def checked_limit(text: str) -> str:
    """A time limit, as it was given.

    Raises
    ------
    HostError
        If it is none.
    """
    try:
        limit_s(text)
    except ValueError as error:
        raise HostError(f"slurm pilot: time {text}: {error}") from None
    return text


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
    options : tuple of str
        Further options of ``sbatch``.
    """

    state: Path
    arguments: tuple[str, ...]
    nodes: int = 1
    gpus: str = ""
    time_limit: str = ""
    cpus: int = 0
    options: tuple[str, ...] = ()
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
            "--no-kill",  # a node that is lost is not the end of the run
            f"--nodes={self.nodes}",
            "--ntasks-per-node=1",
            "--job-name=shadowprice-pilot",
            *room,
            *([f"--gres=gpu:{self.gpus}"] if self.gpus else []),
            *([f"--time={self.time_limit}"] if self.time_limit else []),
            f"--signal=B:USR1@{NOTICE_S}",
            "--output=/dev/null",
            *self.options,
        ]

    def script(self) -> str:
        """Script that runs on the first node of the allocation."""
        return _SCRIPT.format(
            state=shlex.quote(str(self.state)),
            log=_LOG,
            python=shlex.quote(self.python),
            arguments=shlex.join([*self.arguments, "--state", str(self.state)]),
        )

    def submit(self, slurm: Slurm) -> int:
        """Make the state directory, and submit; the number of the job.

        Raises
        ------
        HostError
            If the directory cannot be written or Slurm refuses.
        """
        try:
            self.state.mkdir(mode=0o700, parents=True, exist_ok=True)
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
        options = tuple(placed(parsed.partition))
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
