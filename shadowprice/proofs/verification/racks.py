"""Racks by the verifier's own code: speeds by the levels that a gang crosses, gangs on each uplink at each instant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from shadowprice.proofs.verification.rules import SeenRun, TermRule

if TYPE_CHECKING:
    from shadowprice.instances.terms.racks import Racks

_CORES = "cores"


def _racks(term: Racks, run: SeenRun) -> list[int]:
    """Numbers of the racks that a run is on, of nodes in blocks; none on nodes of cores."""
    nodes = sorted(node for node, _ in run.pieces)
    if run.cluster.nodes[nodes[0]].gpu_type == _CORES:
        return []
    first = list(range(0, nodes[-1] + 1, term.nodes))
    return [
        rack
        for rack, begin in enumerate(first)
        if any(begin <= node < begin + term.nodes for node in nodes)
    ]


def _speed(term: Racks, run: SeenRun) -> float:
    racks = _racks(term, run)
    if len(racks) > 1:
        return term.across_racks
    return term.across_nodes if racks and len(run.pieces) > 1 else 1.0


def _crowded(term: Racks, runs: Sequence[SeenRun]) -> Iterator[tuple[int, str]]:
    """Runs with whose beginning an uplink has more gangs than it carries; O(R log R)."""
    if term.uplink is None:
        return
    events: list[tuple[float, int, int, int]] = []
    for k, seen in enumerate(runs):
        racks = _racks(term, seen)
        if len(racks) > 1:
            for rack in racks:
                # At one time gangs leave an uplink before others come.
                events += [(seen.end_s, 0, rack, k), (seen.start_s, 1, rack, k)]
    crossing: dict[int, int] = {}
    for time_s, comes, rack, k in sorted(events):
        crossing[rack] = crossing.get(rack, 0) + (1 if comes else -1)
        if comes and crossing[rack] > term.uplink:
            yield (
                k,
                f"{crossing[rack]} gangs cross the uplink of rack {rack} at {time_s} s, it carries {term.uplink}",
            )


RULE = TermRule(_crowded, _speed)
"""What there is to check of racks."""
