"""The address of a Slurm host: partition and what its jobs ask for.

``PARTITION[,time=LIMIT][,account=NAME][,qos=NAME][,reservation=NAME][,exclude=NODE]...``, every part
optional; ``gpu,time=2-00:00:00,account=lab`` for instance.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from shadowprice.errors import HostError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,127}")
_TIME = re.compile(r"(\d+-)?\d+(:\d\d){0,2}|UNLIMITED")
_PASSED = ("account", "qos", "reservation")


@dataclass(frozen=True)
class SlurmOptions:
    """Options in the address of a Slurm host.

    Parameters
    ----------
    partition : str
        Empty for all nodes of the cluster, and jobs to its default partition.
    time_limit : str
        Of each lease's job, as ``--time`` takes it; empty for the partition's own.
    passed : tuple of (str, str)
        Other options of ``sbatch``, name and value.
    exclude : frozenset of str
        Nodes that are not used.
    """

    partition: str = ""
    time_limit: str = ""
    passed: tuple[tuple[str, str], ...] = ()
    exclude: frozenset[str] = frozenset()

    @classmethod
    def parse(cls, address: str) -> SlurmOptions:
        """Read an address.

        Raises
        ------
        HostError
            If a part is unknown or malformed.
        """
        partition, time_limit, exclude = "", "", set()
        passed: dict[str, str] = {}
        for position, part in enumerate(filter(None, address.split(","))):
            name, equals, value = part.partition("=")
            if not equals and position == 0 and _NAME.fullmatch(name):
                partition = name
            elif name == "time" and _TIME.fullmatch(value):
                time_limit = value
            elif name == "exclude" and _NAME.fullmatch(value):
                exclude.add(value)
            elif name in _PASSED and _NAME.fullmatch(value):
                passed[name] = value
            else:
                raise HostError(
                    f"slurm: {part!r} in address {address!r}, expected PARTITION[,time=LIMIT][,account=NAME]"
                    "[,qos=NAME][,reservation=NAME][,exclude=NODE]"
                )
        return cls(partition, time_limit, tuple(passed.items()), frozenset(exclude))

    def arguments(self) -> list[str]:
        """Options of ``sbatch`` that place a job, its time limit left out."""
        chosen = [f"--partition={self.partition}"] if self.partition else []
        return chosen + [f"--{name}={value}" for name, value in self.passed]
