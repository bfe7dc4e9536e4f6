"""Declared terms as the verifier checks them: by a rule each, of plain rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.features import Feature, require
from shadowprice.proofs.verification import goodput, racks
from shadowprice.proofs.verification.features import KNOWS
from shadowprice.proofs.verification.goodput import GoodputRuns, amiss_in_columns
from shadowprice.proofs.verification.rules import SeenRun, TermRule

if TYPE_CHECKING:
    from shadowprice.instances.instance import Instance
    from shadowprice.instances.schedule import Schedule
    from shadowprice.instances.terms.declared import DeclaredTerm
    from shadowprice.proofs.verification.speeds import Runs

RULES: Mapping[Feature, TermRule] = MappingProxyType(
    {Feature.RACKS: racks.RULE, Feature.GOODPUT: goodput.RULE}
)
"""Rules of the terms that come with the package; terms of one's own bring theirs."""

TermFault = tuple[str, NDArray[np.bool_], Callable[[int], str]]
"""Name of a term, runs that break it, and what to say of each."""


def rule_of(term: DeclaredTerm) -> TermRule | None:
    """The rule by which a term is checked; None if there is none."""
    if term.feature is not Feature.OWN:
        return RULES.get(term.feature)
    return term.rule if isinstance(term.rule, TermRule) else None


def expect_rules(instance: Instance) -> None:
    """Refuse an instance of which something is in no rule.

    Raises
    ------
    InputError
        Naming the features, or a term of one's own that has no rule.
    """
    bare = [each.name for each in instance.declared if rule_of(each) is None]
    if bare:
        raise InputError(
            f"{instance.workload.source}: has {Feature.OWN.phrase} ({', '.join(bare)}), not known to the verifier; "
            "expected a rule in the class, by which it can check them"
        )
    require(instance, KNOWS, "the verifier")


class DeclaredRuns:
    """Runs of a schedule under the declared terms of an instance; O(R) objects.

    Parameters
    ----------
    runs : Runs
        Of the schedule.

    Attributes
    ----------
    goodput : GoodputRuns or None
        Those of jobs that go through epochs.
    """

    def __init__(self, instance: Instance, schedule: Schedule, runs: Runs) -> None:
        self._instance, self._schedule = instance, schedule
        self.goodput = None
        if not amiss_in_columns(instance, schedule):
            self.goodput = GoodputRuns.of(instance, schedule, runs)
        s, order = schedule, runs.order
        pieces = list(zip(s.node[order].tolist(), s.gpus[order].tolist(), strict=True))
        firsts = [*runs.first.tolist(), len(pieces)]
        goes_on = runs.goes_on(s).tolist()
        self._seen: list[SeenRun] = []
        for k, row in enumerate(runs.row.tolist()):
            self._seen.append(
                SeenRun(
                    int(s.job[row]),
                    tuple(pieces[firsts[k] : firsts[k + 1]]),
                    bool(s.partner[row] >= 0),
                    float(s.start_s[row]),
                    float(s.end_s[row]),
                    goes_on[k],
                    instance.workload,
                    instance.cluster,
                )
            )

    def faults(self) -> Iterator[TermFault]:
        """Runs that break a term, term by term; of jobs with goodput those at the wrong batch besides."""
        amiss = amiss_in_columns(self._instance, self._schedule)
        if amiss:
            yield "batch", np.ones(len(self._seen), dtype=bool), lambda k: amiss
        elif self.goodput is not None:
            yield from self.goodput.faults()
        for term in self._instance.declared:
            said = _answer(term, self._faults, term)
            bad = np.zeros(len(self._seen), dtype=bool)
            bad[list(said)] = True
            yield term.name, bad, said.__getitem__

    def slower(self, speed: NDArray[np.float64]) -> NDArray[np.float64]:
        """Speeds of all runs by other terms, times those by these.

        Raises
        ------
        InputError
            If a rule says a speed that is not above 0 and at most 1.
        """
        for term in self._instance.declared:
            speed_of = self._rule(term).speed
            if speed_of is None:
                continue
            found = [_answer(term, speed_of, term, seen) for seen in self._seen]
            said = np.array(found, dtype=np.float64)
            if not ((said > 0) & (said <= 1)).all():
                wrong = said[~((said > 0) & (said <= 1))][0]
                raise InputError(
                    f"{term.name}: its rule says the speed {wrong}, expected one above 0 and at most 1"
                )
            speed = speed * said
        return speed

    def _faults(self, term: DeclaredTerm) -> dict[int, str]:
        return dict(self._rule(term).faults(term, self._seen))

    def _rule(self, term: DeclaredTerm) -> TermRule:
        rule = rule_of(term)
        assert rule is not None, "terms without a rule were refused"
        return rule


Answer = TypeVar("Answer")


def _answer(term: DeclaredTerm, ask: Callable[..., Answer], *about: object) -> Answer:
    """Answer of a rule, in whatever way it fails."""
    try:
        return ask(*about)
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        raise InputError(f"{term.name}: its rule cannot be asked: {said}") from error
