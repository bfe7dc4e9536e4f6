"""Commands about real runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from shadowprice.cli.commands import Commands, DirectoryVerifier, Example
from shadowprice.hosts.cli.commands import (
    cancel_command,
    drain_command,
    print_verified,
    retry_command,
    status_command,
    submit_command,
    undrain_command,
)
from shadowprice.hosts.cli.execute import execute_command
from shadowprice.hosts.cli.profile import profile_command


def _is_state_directory(path: Path) -> bool:
    from shadowprice.hosts.reports.results import is_state_directory

    return is_state_directory(path)


RUN: Mapping[str, Callable[..., None]] = {
    "execute": execute_command,
    "submit": submit_command,
    "status": status_command,
    "cancel": cancel_command,
    "retry": retry_command,
    "drain": drain_command,
    "undrain": undrain_command,
    "profile": profile_command,
}

COMMANDS = Commands(
    panels={"Real hosts": tuple(RUN)},
    run=RUN,
    verifiers=(DirectoryVerifier(_is_state_directory, print_verified),),
    examples={
        "execute": (
            Example(
                "execute jobs.yaml --policy srtf --hosts local:2 --dry-run",
                "Nodes, commands and predictions; starts nothing.",
            ),
            Example(
                "execute jobs.yaml --policy las2d --hosts local:2 --round 5 --state run1",
                "Run them on two CPU slots of this machine; the same command goes on after a stop.",
            ),
            Example(
                "execute jobs.yaml --policy srtf --hosts slurm --state run2",
                "On the nodes of a Slurm allocation; --hosts ray for a Ray cluster.",
            ),
            Example(
                "execute --queue --state pool --policy srtf --hosts local:2 --round 5",
                "Jobs that `submit` brings, until Ctrl-C; the same command goes on.",
            ),
        ),
        "submit": (
            Example(
                "submit pool jobs.yaml", "All jobs of a file, or none (needs `execute --queue`)."
            ),
        ),
        "status": (
            Example("status run1 --follow", "Until the run is over."),
            Example("status run1 resnet-a", "Where one job runs, or why it waits."),
            Example("status run1 --csv", "A row a job, for programs."),
            Example("status run1 --page run1.html", "One page that needs no network."),
        ),
        "cancel": (Example("cancel run1 resnet-a resnet-b", "Two jobs, or neither."),),
        "retry": (
            Example("retry run1", "All jobs that were given up, from their last checkpoints."),
            Example("retry run1 resnet-a", "One of them."),
        ),
        "drain": (
            Example("drain run1 localhost:0 --reason 'ECC errors'", "No new lease on a device."),
        ),
        "undrain": (Example("undrain run1 localhost:0", "It is given out again."),),
        "profile": (
            Example(
                "profile --model mine --storage dataset_gb=1,disk_gb_per_s=0.5 --units-per-epoch 100 "
                "--work-per-run 100 -o mine.json -- python train.py",
                "Speeds by CPUs and memory of a training command.",
            ),
        ),
    },
)
