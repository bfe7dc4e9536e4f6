"""CPU time of Gandiva with all its introspection: 1,000 jobs on 45 servers of 4 GPUs.

Run: ``python benchmarks/gandiva_introspection.py [--jobs 1000]``. Target: under 30 s.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import shadowprice as sp
from shadowprice.execution.engine import run
from shadowprice.instances.speeds.interference import Interference, locality_of
from shadowprice.instances.terms.widths import Elasticity
from shadowprice.solvers.registry import policy

TARGET_S = 30.0


def instance(jobs: int) -> sp.Instance:
    """The packing experiment, with losses of spread gangs, and single-GPU jobs that may grow to 4."""
    workload = sp.generate("gandiva", jobs=jobs, seed=0)
    cluster = sp.Cluster.parse("45x4")
    widest = np.where(workload.gpus == 1, 4, workload.gpus)
    conditions = dict(
        locality=locality_of(workload), elasticity=Elasticity(widest, np.full(jobs, 0.9))
    )
    together = Interference().of(workload, cluster)
    charges = sp.Overheads(restart_s=1.0, migration_s=2.0)
    return sp.Instance(cluster, workload, charges, together, **conditions)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1000)
    given = instance(parser.parse_args().jobs)
    for name in ("gandiva-reactive", "gandiva"):
        result = run(given, policy(name))
        began = time.process_time()
        sp.verify(given, result.schedule)
        verified_s = time.process_time() - began
        print(
            f"{name:17} {result.cpu_s:6.2f} s CPU (target {TARGET_S:.0f}), {result.decisions:,} decisions, "
            f"{len(result.schedule):,} rows, verified in {verified_s:.2f} s"
        )


if __name__ == "__main__":
    main()
