"""Records of a file, whatever it is: rounds, a log, or a table of pieces."""

from __future__ import annotations

from pathlib import Path

from shadowprice.errors import InputError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.files import read_bytes
from shadowprice.instances.recorded.record import RunRecord
from shadowprice.instances.recorded.rounds import read_rounds
from shadowprice.instances.recorded.schedule_table import read_schedule_table


def read_records(path: str | Path, *, zone: str | None = None) -> list[RunRecord]:
    """Records of a file, recognised by how it begins.

    Parameters
    ----------
    zone : str, optional
        Zone of dates without one.

    Raises
    ------
    InputError
        If the file is of no form that has starts and ends.
    """
    path = Path(path)
    head = read_bytes(path)[:65536].decode("utf-8-sig", errors="replace").lstrip()
    if not head:
        raise InputError(f"{path}: is empty")
    if head.startswith("{"):
        return read_rounds(path)
    return [read_schedule_table(path)]


def cluster_of(record: RunRecord, given: Cluster | None) -> Cluster:
    """The cluster that was given, or the one of the file.

    Raises
    ------
    InputError
        If there is neither.
    """
    found = record.cluster if given is None else given
    if found is None:
        raise InputError(
            f"{record.source}: does not say on which cluster it ran, expected one such as 16x8 (--cluster)"
        )
    return found
