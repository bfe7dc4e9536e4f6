"""Cuts of Hadar's offline optimum from what fits into a round."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shadowprice.instances.utility import effective_throughput
from shadowprice.models.round_jobs import RoundJobs
from shadowprice.solvers.hadar.offline.branch_and_price import Pricing, SearchNode, running
from shadowprice.solvers.hadar.offline.cuts import PackingCuts
from shadowprice.solvers.hadar.offline.linking import LinkingRows
from shadowprice.solvers.hadar.offline.master import Master
from shadowprice.solvers.hadar.offline.pricing import states_of
from shadowprice.solvers.hadar.offline.programme import LinearRows, TimeIndexed
from support.hadar_plans import ROUND_S, brute_force, make

CLUSTERS = ("1x3:a,1x2:b", "1x3:a,1x1:b,1x2:c", "1x4:a")


def jobs_of(seed, n, rounds, cluster):
    instance = make(seed, n, rounds, cluster)
    table = effective_throughput(instance, ROUND_S, rounds)
    return instance, table, RoundJobs.of(instance, table)


def fits(jobs, chosen):
    """Whether jobs at speeds, -1 for none, have GPUs: every way to place them is tried."""
    if not chosen:
        return True

    def placed(rest, free):
        if not rest:
            return True
        (job, speed), *others = rest
        types = jobs.speeds[job][speed].types
        for gpus in product(
            *(range(free[r] + 1) if r in types else (0,) for r in range(len(free)))
        ):
            left = [have - held for have, held in zip(free, gpus, strict=True)]
            if sum(gpus) == jobs.gang[job] and placed(others, left):
                return True
        return False

    return placed([pair for pair in chosen if pair[1] >= 0], jobs.capacity.tolist())


def all_that_fit(jobs):
    """Every choice of a speed, or -1, for every job that fits into a round, as 0 and 1."""
    width = max(len(speeds) for speeds in jobs.speeds)
    found = []
    for choice in product(*(range(-1, len(speeds)) for speeds in jobs.speeds)):
        if fits(jobs, list(enumerate(choice))):
            table = np.zeros((jobs.jobs, width))
            for job, speed in enumerate(choice):
                table[job, speed] += speed >= 0
            found.append(table)
    return np.array(found)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(CLUSTERS), st.data())
def test_packing_cuts_hold_for_all_that_fits_and_cut_off_their_share(seed, cluster, data):
    _, _, jobs = jobs_of(seed, 4, 4, cluster)
    packing, fitting = PackingCuts(jobs), all_that_fit(jobs)
    width = fitting.shape[2]
    parts = data.draw(st.lists(st.integers(0, 4), min_size=4 * width, max_size=4 * width))
    share = np.array(parts, dtype=float).reshape(4, width)
    share *= [[speed < len(speeds) for speed in range(width)] for speeds in jobs.speeds]
    share /= np.maximum(share.sum(axis=1, keepdims=True), 4.0)
    for _, cut in packing.separate(share[None], fresh=True):
        assert (cut.weights * share).sum() > cut.limit
        values = (fitting * cut.weights).sum(axis=(1, 2))
        assert values.max() == pytest.approx(cut.limit, abs=1e-12)


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(CLUSTERS))
def test_means_of_what_fits_are_not_cut_off(seed, cluster):
    _, _, jobs = jobs_of(seed, 4, 4, cluster)
    fitting = all_that_fit(jobs)
    rng = np.random.default_rng(seed)
    mean = np.tensordot(rng.dirichlet(np.ones(len(fitting))), fitting, axes=1)
    corner = fitting[rng.integers(len(fitting))]
    assert PackingCuts(jobs).separate(np.array([mean, corner]), fresh=True) == []


def test_a_gang_beside_single_jobs_is_cut_off():
    """Two thirds of a gang of 3 and all of a gang of 1 ask for 3 GPUs, but never share them."""
    for seed in range(100):
        _, _, jobs = jobs_of(seed, 2, 4, "1x3:a")
        if sorted(jobs.gang.tolist()) == [1, 3]:
            break
    share = np.where(jobs.gang == 3, 2 / 3, 1.0)[:, None]
    ((_, cut),) = PackingCuts(jobs).separate(share[None], fresh=True)
    assert cut.weights.ravel() / cut.limit == pytest.approx([1.0, 1.0])
    # Known cuts are found in other rounds without a search.
    packing = PackingCuts(jobs)
    packing.separate(share[None], fresh=True)
    (found,) = packing.separate(np.array([0 * share, share]), fresh=False)
    assert found[0] == 1


@pytest.mark.parametrize("seed", range(6))
def test_packing_cuts_tighten_the_relaxation_and_keep_every_plan(seed):
    instance, table, jobs = jobs_of(seed, 4, 3, "1x2:a,1x1:b")
    known = TimeIndexed.of(jobs)
    linking = LinkingRows(known, LinearRows.none(known.columns))
    master, node = Master(jobs, linking), SearchNode.root(linking.allowed)
    pricing = Pricing(master, [states_of(jobs, job) for job in range(jobs.jobs)])
    packing, bounds = PackingCuts(jobs), []
    while True:
        while True:
            relaxed = master.relax(node.columns(master), 1e6)
            bound, _, new = pricing.price(node, relaxed)
            if not new:
                break
        bounds.append(bound)
        found = packing.separate(running(master, relaxed), fresh=True)
        if not found:
            break
        master.add_packing_cuts(
            np.array([t for t, _ in found]),
            np.array([cut.weights for _, cut in found]),
            np.array([cut.limit for _, cut in found]),
        )
        again = master.relax(node.columns(master), 1e6)
        assert again.value <= relaxed.value + 1e-9
    assert all(after <= before + 1e-9 for before, after in pairwise(bounds))
    assert bounds[-1] >= brute_force(instance, table) - 1e-9


def test_clusters_with_many_gpus_have_no_packing_cuts():
    _, _, jobs = jobs_of(0, 3, 3, "1x99:a,1x99:b")
    packing = PackingCuts(jobs)
    assert not packing.usable
    assert packing.separate(np.ones((3, 3, 2)), fresh=True) == []
