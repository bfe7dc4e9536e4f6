"""Commands about real runs."""

from __future__ import annotations

from pathlib import Path

from shadowprice.cli.commands import Commands, DirectoryVerifier, Example
from shadowprice.hosts.cli.commands import (
    cancel_command,
    drain_command,
    print_verified,
    report_command,
    retry_command,
    status_command,
)
from shadowprice.hosts.cli.execute import execute_command
from shadowprice.hosts.cli.profile import profile_command
from shadowprice.hosts.cli.queue import queue_command, submit_command


def _is_state_directory(path: Path) -> bool:
    from shadowprice.hosts.reports.results import is_state_directory

    return is_state_directory(path)


COMMANDS = Commands(
    panels={
        "Real hosts": (
            "execute",
            "status",
            "cancel",
            "retry",
            "drain",
            "report",
            "submit",
            "queue",
            "profile",
        )
    },
    run={
        "execute": execute_command,
        "status": status_command,
        "cancel": cancel_command,
        "retry": retry_command,
        "drain": drain_command,
        "report": report_command,
        "submit": submit_command,
        "queue": queue_command,
        "profile": profile_command,
    },
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
        "queue": (
            Example("queue pool", "Where each job runs, or why it waits."),
            Example("queue pool resnet-a", "One of them."),
        ),
        "status": (Example("status run1 --follow", "Until the run is over."),),
        "cancel": (Example("cancel run1 resnet-a resnet-b", "Two jobs, or neither."),),
        "retry": (
            Example("retry run1", "All jobs that were given up, from their last checkpoints."),
            Example("retry run1 resnet-a", "One of them."),
        ),
        "drain": (
            Example("drain run1 localhost:0 --reason 'ECC errors'", "No new lease on a device."),
            Example("drain run1 localhost:0 --back", "It is given out again."),
        ),
        "report": (Example("report run1 -o report.html", "One page that needs no network."),),
        "profile": (
            Example(
                "profile --model mine --dataset-gb 1 --disk-gb-per-s 0.5 --units-per-epoch 100 --work-per-run 100 "
                "-o mine.json -- python train.py",
                "Speeds by CPUs and memory of a training command.",
            ),
        ),
    },
)
