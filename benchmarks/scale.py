"""Cost per job and peak memory of long runs, from ten thousand to ten million jobs at load 0.95.

Run: ``python benchmarks/scale.py [--most 10000000] [--policies fifo,srtf,las2d,easy] [--folder DIR]``. Every size
runs in a process of its own, into a run directory that is removed afterwards: jobs generated (lognormal law,
75 nodes of 8 GPUs), streamed to disk by the compiled loop, verified there in parts, metrics computed. The last
column is the cost per job of loop and verification, over that of the smallest size; at most 3 is the target,
and 8 GB of memory at ten million jobs.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import shadowprice as sp
from shadowprice.analysis.preparation import prepare_run
from shadowprice.analysis.run_directory.streamed import stream

SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
POLICIES = "fifo,srtf,las2d,easy"
CLUSTER, GPUS = "75x8", 600


def measure(jobs: int, name: str, folder: Path) -> dict[str, float]:
    """Costs of one run [CPU-s], and the peak memory of this process [GB]."""
    few = sp.generate("lognormal", jobs=100, seed=1, load=0.95, gpus_total=GPUS)
    stream(prepare_run(few, CLUSTER, name), folder / "few")  # Loads compiled code.
    workload = sp.generate("lognormal", jobs=jobs, seed=1, load=0.95, gpus_total=GPUS)
    began = time.process_time()
    outcome = stream(prepare_run(workload, CLUSTER, name), folder / "run")
    assert outcome is not None
    outcome.summary()
    return {
        "engine_s": outcome.cpu_s,
        "verifier_s": outcome.verify_cpu_s,
        "whole_s": time.process_time() - began,
        "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
        "disk_mb": sum(path.stat().st_size for path in (folder / "run").iterdir()) / 1e6,
    }


def in_a_process(jobs: int, name: str, folder: Path | None) -> dict[str, float]:
    """The same in a process of its own, whose memory is that of this run alone."""
    with tempfile.TemporaryDirectory(dir=folder) as made:
        command = [sys.executable, __file__, "--one", str(jobs), name, made]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=SIZES[-1], help="largest number of jobs")
    parser.add_argument("--policies", default=POLICIES, help="comma-separated")
    parser.add_argument("--folder", type=Path, help="where to write runs for a while")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        jobs, name, folder = arguments.one
        print(json.dumps(measure(int(jobs), name, Path(folder))))
        return
    print(
        "policy        jobs  microseconds a job: loop  verification   whole   peak GB   disk MB   ratio"
    )
    for name in arguments.policies.split(","):
        first = None
        for jobs in (size for size in SIZES if size <= arguments.most):
            cost = in_a_process(jobs, name, arguments.folder)
            both = (cost["engine_s"] + cost["verifier_s"]) / jobs
            first = first or both
            loop, check, whole = (
                1e6 * cost[k] / jobs for k in ("engine_s", "verifier_s", "whole_s")
            )
            print(
                f"{name:8} {jobs:10,} {loop:26.2f} {check:13.2f} {whole:7.2f} {cost['peak_gb']:9.2f} "
                f"{cost['disk_mb']:9.1f} {both / first:7.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
