"""Run directories of fork records: ``forks.parquet`` instead of a schedule, verified when read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from shadowprice.analysis.copies.outcome import ForkOutcome
from shadowprice.analysis.run_directory.files import (
    FORKS,
    FORMAT,
    RUN,
    WORKLOAD,
    Description,
    RunFile,
    check_digests,
    check_metrics,
    described_cluster,
    parsed,
    write_run,
)
from shadowprice.errors import VerificationError
from shadowprice.instances.documents.schema import decode
from shadowprice.instances.files import read_bytes
from shadowprice.instances.forks import Forks
from shadowprice.instances.instance import Instance
from shadowprice.instances.workload_files import read_workload, write_workload

KIND = "forks"


class ForksRunFile(RunFile, frozen=True, kw_only=True):
    """``run.json`` of a fork record."""

    forks: dict[str, Any]


def save_forks(outcome: ForkOutcome, directory: Path) -> None:
    """Write a run directory; losses of models are left out, as their seed gives them again.

    Raises
    ------
    InputError
        As :func:`shadowprice.analysis.run_directory.files.write_run`.
    """
    table = pa.Table.from_pandas(outcome.record.to_frame(), preserve_index=False)
    described: Description = {
        "format": FORMAT,
        "kind": KIND,
        "policy": outcome.policy,
        "settings": dict(outcome.settings),
        "cpu_s": outcome.cpu_s,
        "verify_cpu_s": outcome.verify_cpu_s,
        "cluster": described_cluster(outcome.instance.cluster),
        "forks": outcome.record.settings,
        "metrics": outcome.summary(),
    }
    write_run(
        directory,
        {
            WORKLOAD: lambda path: write_workload(outcome.instance.workload, path),
            FORKS: lambda path: pq.write_table(table, path),
        },
        described,
    )


def load_forks(described: Description, directory: Path) -> ForkOutcome:
    """Read the rest of a run directory and verify its record, metrics and files again.

    Raises
    ------
    InputError
        If a file is missing, corrupt or of another format.
    VerificationError
        If a file is not the one that was saved, the record breaks a rule, or a recorded metric
        is not what the record gives.
    """
    run_path, path = directory / RUN, directory / FORKS
    saved = decode(ForksRunFile, described, str(run_path))
    instance = Instance(saved.nodes(run_path), parsed(directory / WORKLOAD, read_workload))

    def read(file: Path) -> Forks:
        frame = pq.read_table(pa.BufferReader(read_bytes(file))).to_pandas()
        return Forks.from_frame(frame, saved.forks, source=str(file))

    record = parsed(path, read)
    try:
        outcome = ForkOutcome(instance, record, saved.policy, saved.settings, saved.cpu_s)
    except VerificationError as error:
        raise VerificationError(f"{path}: {error}") from error
    check_metrics(saved.metrics, outcome.summary(), run_path)
    check_digests(described, directory, (WORKLOAD, FORKS))
    return outcome
