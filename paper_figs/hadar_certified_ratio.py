"""Our own, on Hadar's theorem: certified ratio of runs against the demand fraction theta.

The published guarantee 2 alpha asks for demands that are tiny beside a node. Here every run of the
commit-once algorithm certifies itself: D / P, its repaired dual value over the utility it earned, is no
less than OPT / P (proofs.hadar.run_certificate), and is drawn beside the theorem's bound for gangs of that
size, 2 alpha_theta (proofs.hadar.competitive). 'reserved' prices reach the top before a gang might not
fit, and the bound holds; with the published ones, at the top when a node is full, it does not where
capacity refuses a job that the prices admit, and the picture counts those runs. Black bars
are where OPT / P is, by branch and price, for runs with few jobs: a line if proven. No paper has this picture.

One node of 16 V100s and one of 16 P100s at 0.6 of the speed, 12 rounds; gangs are powers of two, equally
frequent, up to theta times 16; jobs of 1 to 4 rounds on V100s arrive in the first 6 rounds, their number
such that they ask for 1.2 times the GPUs' time; utility: iterations over time in the system. Run: ``python
paper_figs/hadar_certified_ratio.py`` (minutes), ``--quick`` (seconds); writes
paper_figs/out/hadar_certified_ratio.{csv,png}.
"""

import numpy as np
import pandas as pd
from _hadar import COLOURS, GREY, Scale, arguments, note, save
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

import shadowprice as sp
from shadowprice.instances.utility import effective_throughput
from shadowprice.proofs.hadar.competitive import commit_once
from shadowprice.proofs.hadar.run_certificate import certify
from shadowprice.solvers.hadar.commit_schedule import committable_jobs
from shadowprice.solvers.hadar.offline.optimum import optimum

NODE_GPUS, ROUNDS, ROUND_S, LOAD = 16, 12, 360.0, 1.2
CLUSTER = f"1x{NODE_GPUS}:v100,1x{NODE_GPUS}:p100"
SPEEDS = (10.0, 6.0)
SCALES = {
    Scale.QUICK: ((4, 8, 16), 2, 2.0),
    Scale.USUAL: ((1, 2, 4, 8, 16), 8, 3.0),
    Scale.FULL: ((1, 2, 4, 8, 16), 100, 30.0),
}
"""Largest gangs [GPUs], draws of the jobs, CPU time for an optimum [s]."""
OPTIMUM_UP_TO = 60
"""Jobs for which an optimum is tried."""
PRICES = {"reserved": COLOURS[0], "published": COLOURS[1]}


def instance(largest: int, seed: int) -> sp.Instance:
    """Jobs with gangs up to a size, as many as the load asks for."""
    rng = np.random.default_rng([seed, largest])
    where = sp.Cluster.parse(CLUSTER)
    sizes = 2 ** np.arange(largest.bit_length())
    longest = 4.0
    jobs = round(LOAD * where.total_gpus * ROUNDS / (sizes.mean() * (1.0 + longest) / 2.0))
    rounds = 1.0 + (longest - 1.0) * rng.random(jobs)
    return sp.Instance(
        where,
        sp.Workload.from_columns(
            arrival_s=np.sort(rng.integers(0, ROUNDS // 2, jobs)) * ROUND_S,
            gpus=rng.choice(sizes, jobs),
            work=np.floor(rounds * ROUND_S * SPEEDS[0]),
            throughput=np.tile(SPEEDS, (jobs, 1)),
            gpu_types=("v100", "p100"),
            source=f"gangs up to {largest}, seed {seed}",
        ),
    )


def runs(gang: int, seed: int, limit_s: float) -> list[dict[str, object]]:
    """One row for either kind of prices."""
    given = instance(gang, seed)
    utility = effective_throughput(given, ROUND_S, ROUNDS)
    tasks, cluster = committable_jobs(given, utility), given.cluster
    size, kinds = cluster.gpus_per_node, cluster.type_of_node
    least = most = np.nan  # not known
    if len(tasks) <= OPTIMUM_UP_TO:
        found = optimum(given, utility, time_limit_s=limit_s)
        least, most = found.value, found.bound
    rows = []
    for prices in PRICES:
        made = commit_once(tasks, size, kinds, ROUNDS, reserved=prices == "reserved")
        proof = certify(tasks, size, kinds, made.prices, made.earned)
        earned = float(made.earned)
        rows.append(
            {
                "prices": prices,
                "theta": gang / NODE_GPUS,
                "seed": seed,
                "jobs": len(tasks),
                "committed": sum(each is not None for each in made.commitments),
                "certified": float(proof.dual) / earned,
                "optimum_at_least": max(least / earned, 1.0),
                "optimum_at_most": most / earned,
                "bound": 2.0 * made.alpha,
                "conflicts": sum(delta > 0 for delta in made.conflicts),
            }
        )
    return rows


def boxes(axes: Axes, frame: pd.DataFrame) -> None:
    """Boxes of certified ratios, bars where the true ones are."""
    thetas = np.unique(frame["theta"])
    for (prices, colour), shift in zip(PRICES.items(), (0.86, 1.16), strict=True):
        mine = frame[frame["prices"] == prices]
        drawn = axes.boxplot(
            [mine.loc[mine["theta"] == theta, "certified"] for theta in thetas],
            positions=thetas * shift,
            widths=thetas * 0.22,
            manage_ticks=False,
            patch_artist=True,
            medianprops={"color": "black"},
            flierprops={"ms": 3},
        )
        for box in drawn["boxes"]:
            box.set(facecolor=colour, alpha=0.6)
        drawn["boxes"][0].set_label(f"D / P, {prices} prices")
        known = "where OPT / P is" if prices == "reserved" else None
        # Side by side, in the order of the draws.
        beside = shift * (0.92 + 0.16 * mine["seed"] / max(mine["seed"].max(), 1))
        low, high = mine["optimum_at_least"], mine["optimum_at_most"]
        axes.vlines(
            mine["theta"] * beside, 0.99 * low, 1.01 * high, color="black", lw=2, label=known
        )
    axes.axhline(1.0, color=GREY, ls=":", lw=1)
    axes.set(xscale="log", xlabel="demand fraction theta = largest gang / GPUs of a node")
    axes.xaxis.set_major_locator(FixedLocator(thetas.tolist()))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticklabels([f"{theta:g}" for theta in thetas])


def bounds(axes: Axes, frame: pd.DataFrame) -> None:
    """The theorem's factor for either kind of prices."""
    for prices, colour in PRICES.items():
        bound = frame[frame["prices"] == prices].groupby("theta")["bound"].mean()
        holds = "holds" if prices == "reserved" else "void in runs where capacity refuses"
        axes.plot(
            bound,
            color=colour,
            lw=1.4,
            ls="-" if prices == "reserved" else "--",
            label=f"$2\\,\\alpha_\\theta$, {prices} prices ({holds})",
        )


def picture(frame: pd.DataFrame) -> Figure:
    """Left with the bounds, right what is certified alone."""
    figure = Figure(figsize=(13, 5), layout="constrained")
    left, right = figure.subplots(1, 2)
    for axes in (left, right):
        boxes(axes, frame)
    bounds(left, frame)
    left.set(yscale="log", ylabel="optimum over what was earned, at most")
    right.set(ylabel="optimum over what was earned, at most", ylim=(0, None))
    left.set_ylim(top=left.get_ylim()[1] * 300)  # room for the legend
    left.legend(frameon=False, fontsize=8, loc="upper left")
    reserved, published = (frame[frame["prices"] == prices] for prices in PRICES)
    refused = (published["conflicts"] > 0).mean()
    note(
        left,
        "bound and certified ratio",
        f"bound {reserved['bound'].min():.0f} to {reserved['bound'].max():,.0f}, certified at most "
        f"{reserved['certified'].max():.2f} with reserved prices; ours, nothing published\n"
        f"published prices: in {refused:.0%} of the runs capacity refuses a job that they admit, and "
        "no bound follows",
    )
    few = frame[frame["optimum_at_most"].notna()]
    known = [few[name].median() for name in ("optimum_at_least", "optimum_at_most", "certified")]
    note(
        right,
        "certified ratio alone",
        f"median {reserved['certified'].median():.2f} with reserved, {published['certified'].median():.2f} "
        f"with published prices\nruns with at most {OPTIMUM_UP_TO} jobs: OPT / P is {known[0]:.2f} to "
        f"{known[1]:.2f} where D / P is {known[2]:.2f} (medians)",
    )
    return figure


if __name__ == "__main__":
    given = arguments(__doc__ or "")
    gangs, draws, limit_s = SCALES[given.scale]
    results = pd.DataFrame(
        [each for gang in gangs for seed in range(draws) for each in runs(gang, seed, limit_s)]
    )
    save(results, picture(results), "hadar_certified_ratio")
