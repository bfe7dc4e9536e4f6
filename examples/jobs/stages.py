"""A pipeline whose stages are placed: says which replicas run here, and takes as long as they compute.

    shadowprice execute stages.yaml --policy asrpt --hosts local:2x2

A stand-in for training with a job graph: any framework finds its replica as this does. Under torchrun,
``lease.replicas[int(os.environ["RANK"])]`` is the replica of a process; a command that is no launcher
is the one process of its node, and runs all that the node has.
"""

from __future__ import annotations

import argparse
import json
import os
import time

# A copy of job.py beside this file does as well: `from job import Lease`.
from shadowprice.hosts.job import Lease


def main() -> None:
    """Run the replicas of this process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--step-ms", type=float, default=20.0, help="a step takes so long")
    parser.add_argument("--iterations", type=int, default=100, help="steps without a scheduler")
    given = parser.parse_args()
    here = [tuple(each) for each in json.loads(os.environ.get("SHADOWPRICE_NODE_REPLICAS", "[]"))]
    with Lease(iterations=given.iterations) as lease:
        if "LOCAL_RANK" in os.environ:
            here = [here[int(os.environ["LOCAL_RANK"])]]
            assert lease.replicas[int(os.environ["RANK"])] == here[0]
        words = ", ".join(f"{stage} {number}" for stage, number in here)
        # One write, since the processes of a node have one log.
        rank = os.environ.get("RANK", "0")
        print(f"rank {rank} runs {words or 'all stages'}\n", end="", flush=True)
        lease.restore(lambda folder: None)
        lease.checkpoints(lambda folder: None)
        for _ in lease.steps():
            time.sleep(given.step_ms / 1e3)


if __name__ == "__main__":
    main()
