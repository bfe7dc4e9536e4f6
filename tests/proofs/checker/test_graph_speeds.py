"""Speeds of job graphs on any nodes at all, and on two or more, against all mappings of small graphs."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest

from shadowprice.proofs.checker import Rejected
from shadowprice.proofs.checker.limits import Effort
from shadowprice.proofs.checker.speeds import Graph

SLOW = {"intra": Fraction(4), "nic": Fraction(1), "gpus": 4, "sharing": "per-job"}
PER_GPU = {**SLOW, "sharing": "per-gpu"}
FAST = {**SLOW, "nic": Fraction(8)}
CHAIN = {"stages": [[1, 1, 1, 0], [1, 2, 1, 0]], "links": [[0, 1, 8, False]]}
RING = {"stages": [[2, 1, 0, 8]], "links": []}
APART = {"stages": [[1, 3, 0, 0], [1, 1, 0, 0]], "links": []}
THREE = {"stages": [[1, 1, 0, 0]] * 3, "links": [[0, 1, 8, False], [1, 2, 2, False]]}
WIDE = {"stages": [[2, 1, 0, 4], [1, 1, 0, 0]], "links": [[0, 1, 3, True]]}
LOOSE = {"stages": [[1, 1, 0, 0]] * 3, "links": [[0, 1, 8, False]]}


def graph(network, stages, links, microbatches=2):
    record = {"microbatches": microbatches, "stages": stages, "links": links}
    return Graph(record, network, Effort("graphs"))


def mappings(replicas, nodes=3):
    """All ways to put the replicas of every stage on nodes, those without any left out."""
    rows = [
        [each for each in product(range(count + 1), repeat=nodes) if sum(each) == count]
        for count in replicas
    ]
    for each in product(*rows):
        found = tuple(sorted(node for node in zip(*each, strict=True) if any(node)))
        if max(map(sum, found)) <= 4:
            yield found


@pytest.mark.parametrize("network", [SLOW, PER_GPU, FAST])
@pytest.mark.parametrize("shape", [CHAIN, RING, APART, THREE, WIDE, LOOSE])
def test_no_mapping_is_faster_than_the_least_times(network, shape):
    found = graph(network, **shape)
    for mapping in mappings(found.replicas):
        ticks = found.ticks(7.0, mapping)
        assert found.ticks(7.0, ()) <= ticks
        if len(mapping) > 1:
            assert found.spread_ticks(7.0) <= ticks


@pytest.mark.parametrize(
    ("network", "shape"),
    [(SLOW, CHAIN), (SLOW, RING), (SLOW, APART), (SLOW, THREE), (SLOW, LOOSE), (FAST, RING)],
)
def test_the_least_time_across_nodes_is_attained(network, shape):
    found = graph(network, **shape)
    across = [each for each in mappings(found.replicas) if len(each) > 1]
    assert found.spread_ticks(7.0) == min(found.ticks(7.0, each) for each in across)


def test_a_replica_by_itself_sends_nothing():
    found = graph(SLOW, [[1, 1, 0, 0]], [])
    assert found.spread_ticks(1.0) == found.ticks(1.0, ()) == found.ticks(1.0, ((1,),))


@pytest.mark.parametrize(
    ("links", "says"),
    [
        ([[0, 0, 1, False]], "a link is of no stages"),
        ([[0, 2, 1, False]], "a link is of no stages"),
        ([[2, 0, 1, False]], "a link is of no stages"),
        ([[0, 1, 1, 0]], "neither an exchange nor none"),
        ([[0, 1, 1, False], [1, 0, 1, False]], "links go round"),
    ],
)
def test_links_of_nothing_are_rejected(links, says):
    with pytest.raises(Rejected, match=says):
        graph(SLOW, CHAIN["stages"], links)


def test_exchanges_may_go_round():
    graph(SLOW, CHAIN["stages"], [[0, 1, 1, False], [1, 0, 1, True]])


def test_a_pipeline_takes_as_many_more_microbatches_as_it_has_links():
    """Two stages on one node: a microbatch waits for one more where there are two of them."""
    lone = {"stages": [[1, 1, 0, 0], [1, 1, 0, 0]], "links": [[0, 1, 0, False]]}
    times = [graph(SLOW, **lone, microbatches=q).ticks(1.0, ((1, 1),)) for q in (0, 1, 2, 4)]
    assert [Fraction(each, times[0]) for each in times] == [1, 2, Fraction(3, 2), Fraction(5, 4)]


@pytest.mark.parametrize(
    ("mapping", "says"),
    [
        (((5, 0),), "5 replicas are on one node"),
        (((4, 0), (0, 1)), "4 replicas of stage 0, not 5"),
        (((3, 1), (2, 1)), "2 replicas of stage 1, not 1"),
    ],
)
def test_mappings_of_other_replicas_are_rejected(mapping, says):
    found = graph(SLOW, [[5, 1, 0, 0], [1, 1, 0, 0]], [])
    with pytest.raises(Rejected, match=says):
        found.ticks(1.0, mapping)
