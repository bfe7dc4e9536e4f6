"""SRPT is optimal on one machine."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from shadowprice.analysis.guarantees.lookup import KnownBound
from shadowprice.analysis.outcome import Outcome
from shadowprice.instances.objective import Objective
from shadowprice.proofs.described_run import DescribedRun
from shadowprice.proofs.lower_bounds import srpt_one_machine


@dataclass(frozen=True)
class SrptTheorem:
    """SRPT-1, of completion and flow time on one GPU."""

    name: str = "srtf"

    def guarantee(self, outcome: Outcome, run: DescribedRun) -> None:
        """None: comparisons say where SRPT is optimal by the bound itself."""

    def known_bound(self, outcome: Outcome, run: DescribedRun) -> KnownBound | None:
        """1, on one GPU."""
        if run.objective is Objective.MAKESPAN or srpt_one_machine.missing_hypotheses(run):
            return None
        return KnownBound("SRPT-1 (one machine)", Fraction(1))


GUARANTEES = SrptTheorem()
