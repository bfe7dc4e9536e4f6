"""Real jobs with faults thrown at them; what was lost, and that nothing else was.

::

    python benchmarks/fault_campaign.py --runs 200 --seed 1 --host local    # or ray, slurm
    python benchmarks/fault_campaign.py [--jobs 20] [--faults 200] [--seed 1]

Two hundred short runs, each of a few jobs with one to three faults, all drawn from the seed; or
twenty jobs in one run with 200 faults, on this machine, some ten minutes. Ray and Slurm are clusters of
this machine that the command starts. As root the state directory is a small file system of its own, so
that it can be full; else it is on the disk, and only the checkpoints of a job find no room. Exit code
1 if a promise was broken.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from support.fault_campaign import Campaign, Outcome, run_campaign
from support.fault_record import machine, page, totals
from support.fault_series import PARALLEL, RunResult, Series, run_series
from support.run_clusters import HOSTS

PROGRAM = "python benchmarks/fault_campaign.py"


def told(campaign: Campaign, outcome: Outcome) -> None:
    """The table."""
    counts, allowed = outcome.counts, campaign.allowed_loss["job-0"]
    print(f"\n{'fault':36} thrown")
    for kind, count in sorted(outcome.faults.items()):
        print(f"{kind:36} {count:6}")
    print(f"{'all':36} {sum(outcome.faults.values()):6}\n")
    for what, number in (
        ("jobs finished, of " + str(campaign.jobs), counts["jobs"]),
        ("  equal bit for bit to a run without faults", outcome.same),
        ("leases", counts["leases"]),
        ("drivers that took over", counts["drivers"] - 1),
        ("double allocations, by log and by locks", outcome.double),
        ("stale workers that went on, and were refused", f"{outcome.stale}, {outcome.fenced}"),
        ("commits after the fence showed a later epoch", outcome.late),
        ("processes left", outcome.left),
        ("steps of all jobs", sum(map(campaign.iterations_of, range(campaign.jobs)))),
        ("steps lost", counts["steps_lost"]),
        (f"  most at once (allowed {allowed})", counts["most_lost"]),
        ("wall time [s]", f"{outcome.wall_s:.0f}"),
    ):
        print(f"{what:48} {number}")
    print("\nhow leases ended, and what followed")
    for what, number in sorted(outcome.recoveries.items()):
        print(f"{what:48} {number}")


def series(given: argparse.Namespace) -> int:
    """Many short runs; 1 if a promise was broken in one of them."""
    numbers = range(given.runs) if given.only is None else range(given.only, given.only + 1)
    again = f"{PROGRAM} --runs 1 --host {given.host} --seed {given.seed}"

    def tell(result: RunResult, so_far: Series) -> None:
        print(result.line(), flush=True)
        if given.record is not None:  # what was done is kept, also of a campaign that is stopped
            several = f" --parallel {given.parallel}" if given.parallel else ""
            command = (
                f"{PROGRAM} --runs {given.runs} --host {given.host} --seed {given.seed}{several}"
            )
            given.record.write_text(page(so_far, given.host, given.seed, command))

    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        found = run_series(
            given.seed,
            numbers,
            given.host,
            Path(folder),
            mounted=os.geteuid() == 0,
            parallel=given.parallel or PARALLEL[given.host],
            tell=tell,
        )
    print(f"\n{'fault':36} thrown")
    for kind, count in sorted(found.faults().items()):
        print(f"{kind:36} {count:6}")
    print(f"\n{machine(found)}\n{totals(found, given.host, given.seed)}")
    for result in found.broken:
        print(f"again: {again} --only {result.number}")
    return int(bool(found.broken))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, help="so many short runs, instead of one long one")
    parser.add_argument("--host", choices=HOSTS, default="local", help="of short runs")
    parser.add_argument("--parallel", type=int, help="so many short runs at once")
    parser.add_argument("--record", type=Path, metavar="FILE", help="a page on the short runs")
    parser.add_argument("--only", type=int, metavar="NUMBER", help="that one of the short runs")
    parser.add_argument("--jobs", type=int, default=20)
    parser.add_argument("--faults", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--iterations", type=int, default=1400, help="of a job, on average")
    parser.add_argument("--within-s", type=float, default=2400.0)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    given = parser.parse_args()
    if given.record is not None and not given.record.parent.is_dir():
        parser.error(f"--record {given.record}: there is no folder {given.record.parent}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # and clean up
    # Hundreds of processes are started; each would compile the package again.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    load = "/".join(f"{each:.1f}" for each in os.getloadavg())
    print(f"{os.cpu_count()} cores, load {load}, Python {sys.version.split()[0]}", flush=True)
    return one_long_run(given) if given.runs is None else series(given)


def one_long_run(given: argparse.Namespace) -> int:
    """Many faults thrown at one run of many jobs; 1 if a promise was broken."""
    campaign = Campaign(
        given.jobs,
        given.faults,
        given.seed,
        given.iterations,
        every_s=1.6,
        mounted=os.geteuid() == 0,
    )
    print(
        f"{campaign.jobs} jobs on {campaign.slots} CPU slots, policy {campaign.policy}, rounds of "
        f"{campaign.round_s:g} s, a step takes {campaign.step_ms:g} ms, seed {campaign.seed}",
        flush=True,
    )
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        try:
            outcome = run_campaign(campaign, Path(folder), given.within_s)
            told(campaign, outcome)
            assert not outcome.unthrown, f"not thrown: {', '.join(outcome.unthrown)}"
        except AssertionError as error:
            print(f"a promise was broken: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
