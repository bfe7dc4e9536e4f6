"""Records of a file, whatever it is: rounds, a log, or a table of pieces."""

from __future__ import annotations

from pathlib import Path

from shadowprice.errors import InputError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.files import read_bytes
from shadowprice.instances.recorded.imported import read_imported
from shadowprice.instances.recorded.job_logs import is_job_log, read_job_log, read_philly_log
from shadowprice.instances.recorded.record import RunRecord
from shadowprice.instances.recorded.rounds import read_rounds
from shadowprice.instances.recorded.schedule_table import is_schedule_table, read_schedule_table
from shadowprice.instances.recorded.slurm_accounts import is_accounts, read_accounts
from shadowprice.instances.traces import collection_paused


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
    with collection_paused():
        return _read(path, zone)


def _read(path: Path, zone: str | None) -> list[RunRecord]:
    head = read_bytes(path)[:65536].decode("utf-8-sig", errors="replace").lstrip()
    if not head:
        raise InputError(f"{path}: is empty")
    if head.startswith("{"):
        return read_rounds(path)
    if head.startswith("["):
        return [read_philly_log(path)]
    first_line = head.splitlines()[0]
    if is_accounts(first_line):
        return [read_accounts(path, zone)]
    if zone is not None:
        raise InputError(f"{path}: zone {zone!r}: is for accounts of Slurm, whose dates have none")
    if is_job_log(first_line):
        return [read_job_log(path)]
    if is_schedule_table(first_line):
        return [read_schedule_table(path)]
    return [read_imported(path)]


def cluster_of(record: RunRecord, raw: Cluster | None) -> Cluster:
    """The cluster that was given, or the one of the file.

    Raises
    ------
    InputError
        If there is neither.
    """
    result = record.cluster if raw is None else raw
    if result is None:
        raise InputError(
            f"{record.source}: does not say on which cluster it ran, expected one such as 16x8 (--cluster)"
        )
    return result
