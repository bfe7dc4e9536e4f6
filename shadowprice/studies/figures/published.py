"""Published numbers beside ours: claims, verdicts, and causes of differences."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from shadowprice.analysis.statistics.estimates import Estimate, shown
from shadowprice.analysis.wording import at_most
from shadowprice.brief import Brief
from shadowprice.studies.figures.verdicts import (
    FACTORS,
    Claim,
    Independence,
    Relation,
    ReproductionVerdict,
    Sampling,
    numbers_verdict,
    verdict_of,
)

if TYPE_CHECKING:
    import pandas as pd


class Evidence(StrEnum):
    """Source of a published number; the words are defined in docs/semantics.md."""

    READ = "read"
    RECALLED = "recalled"
    DIGITISED = "digitised"
    """Measured in a drawing of the paper."""


class Cause(StrEnum):
    """Cause of a difference, or what could be one."""

    NOT_PUBLIC = "not public"
    """The trace, split or measurement that it was made with is not to be had."""

    NOT_READ = "not read by us"
    """The paper's text is to be had, and we have its abstract alone."""

    RECALLED = "recalled"
    """The paper's formula or setting is recalled, not read."""

    TESTBED = "testbed"
    """An effect of the hardware that a simulation leaves out."""

    ON_PURPOSE = "ours on purpose"
    """We do something else, and say what."""

    IMPOSSIBLE = "cannot be right"
    """A certified limit of the paper's own jobs is below it: no scheduler reaches it."""

    NOT_REACHABLE = "not reachable on our substitute"
    """A certified limit of the jobs that stand for the paper's is below it."""

    UNEXPLAINED = "not explained"

    NONE = "none known"
    """The same jobs, cluster and rules, as far as we know."""


@dataclass(frozen=True)
class Others:
    """Range over the settings among which one was chosen.

    Parameters
    ----------
    low, high : float
        Least and largest mean over all of them, the chosen one included.
    count : int
        Number of settings.
    of : str
        Words for them: ``mixes``.
    """

    low: float
    high: float
    count: int
    of: str

    @classmethod
    def over(cls, means: Iterable[float | Estimate | None], of: str) -> Others | None:
        """The range over settings; those without a number are left out. None if none has one."""
        found = [each.mean if isinstance(each, Estimate) else each for each in means]
        numbers = [each for each in found if each is not None]
        return cls(min(numbers), max(numbers), len(numbers), of) if numbers else None

    def text(self) -> str:
        """``1.14 to 5 over 7 mixes``, or that no other was run."""
        if self.count == 1:
            return f"no other {self.of} were run"
        return f"{shown(self.low)} to {shown(self.high)} over {self.count} {self.of}"


@dataclass(frozen=True, repr=False)
class Published(Brief):
    """A published number and ours.

    Parameters
    ----------
    system : str
        Scheduler whose paper it is of.
    place : str
        Paper and figure, table or section.
    what : str
        Quantity, with the setting that tells it from others.
    value : float
        As published.
    unit : str
        ``x`` for times better, ``%`` for a change, else of the quantity (``h``, ``min``, ``s`` ...).
    ours : callable
        From a figure's table to an estimate; None where the table has no rows for it.
    settings : str
        In a few words: jobs, cluster.
    cause : Cause
        What a difference comes from, or could come from.
    why : str
        The same in a sentence.
    evidence : Evidence
    claim : str
        The claim that it is a measurement of, if there are several; they are counted as one.
    printed : str
        The number as the paper prints it, where zeros at its end are lost (``1.00``) or it is a word (``flat``).
    relation : Relation
        What the paper says of it: that it is so much, at most or at least so much.
    sampling : Sampling
    paper_seeds : tuple of int
        Seeds of the paper, where these are compared; rows of other seeds are left out.
    independence : Independence
    own_jobs : bool
        True if the jobs are the paper's own, so that a limit below the number refutes it.
    limit : callable, optional
        From the table to the certified best factor that any scheduler could have, mean over the seeds.
    others : callable, optional
        From the table to the range over all settings that were run.
    remark : callable, optional
        From the table to a sentence that has to be read with the number.
    """

    system: str
    place: str
    what: str
    value: float
    unit: str
    ours: Callable[[pd.DataFrame], Estimate | None]
    settings: str
    cause: Cause
    why: str
    evidence: Evidence = Evidence.READ
    claim: str = ""
    printed: str = ""
    relation: Relation = Relation.EQUAL
    sampling: Sampling = Sampling.SEEDS
    paper_seeds: tuple[int, ...] = ()
    independence: Independence = Independence.TESTED
    own_jobs: bool = False
    limit: Callable[[pd.DataFrame], float | None] | None = None
    others: Callable[[pd.DataFrame], Others | None] | None = None
    remark: Callable[[pd.DataFrame], str] | None = None

    def __post_init__(self) -> None:
        if self.unit in FACTORS and self.value == 1.0 and not self.printed:
            raise ValueError(f"{self.what!r}: 1 says 'no difference'; give it as it is printed")
        if (self.sampling is Sampling.SAME_SEEDS) != bool(self.paper_seeds):
            raise ValueError(
                f"{self.what!r}: {Sampling.SAME_SEEDS} are given where they are compared"
            )

    @property
    def claim_key(self) -> tuple[str, str]:
        """System and claim: what is counted once."""
        return self.system, self.claim or self.what

    @property
    def text(self) -> str:
        """Number and unit as published: ``at most 1.1 x``."""
        number = f"{self.printed or shown(self.value, 6)} {self.unit}"
        return f"{self.relation} {number}".strip()

    @property
    def tested_claim(self) -> Claim:
        """The number as it is tested."""
        text = self.printed or shown(self.value, 12)
        digits = text.replace(",", "").lstrip("-").partition(".")
        is_number = digits[0].isdecimal()
        rounding = 0.5 * 10.0 ** -len(digits[2]) if is_number else 0.0
        return Claim(self.value, self.unit, rounding, self.relation)

    def compared(self, table: pd.DataFrame) -> Compared | None:
        """Our number from a table beside the published one; None where the table does not have it."""
        if self.paper_seeds:
            table = table[table["seed"].isin(self.paper_seeds)]
        ours = self.ours(table)
        if ours is None:
            return None
        limit = None if self.limit is None else self.limit(table)
        found = numbers_verdict(self.tested_claim, ours, self.sampling, limit)
        return Compared(
            self,
            ours,
            verdict_of(found, self.independence),
            limit,
            None if self.others is None else self.others(table),
            "" if self.remark is None else self.remark(table),
        )


@dataclass(frozen=True, repr=False)
class Compared(Brief):
    """A published number, ours, the verdict, the limit of all schedulers and other settings if known."""

    published: Published
    ours: Estimate
    verdict: ReproductionVerdict
    limit: float | None
    others: Others | None = None
    remark: str = ""

    @property
    def cause(self) -> Cause:
        """Cause of the difference: the limit, where that is below the number."""
        p = self.published
        if p.tested_claim.is_beyond(self.limit):
            return Cause.IMPOSSIBLE if p.own_jobs else Cause.NOT_REACHABLE
        return p.cause

    @property
    def seeds(self) -> str:
        """Number of seeds, or that nothing is drawn: ``10``, ``3, the paper's seeds``."""
        p = self.published
        if p.sampling is Sampling.NOTHING:
            return str(p.sampling)
        same = f", {p.sampling}" if p.sampling is Sampling.SAME_SEEDS else ""
        return f"{self.ours.count}{same}"

    def sentence(self) -> str:
        """One line for a caption."""
        p = self.published
        known = "" if p.evidence is Evidence.READ else f", {p.evidence}"
        said = f"{p.what} ({p.place}{known}): published {p.text}, ours {self.ours.text()} ({self._drawn()})"
        if self.limit is not None:
            said += f", no scheduler can exceed {at_most(self.limit)}"
            said += " on average over these draws" if self.ours.count > 1 else ""
        if self.others is not None:
            said += f", {self.others.text()}"
        return f"{said}: {self.verdict} ({self.cause})."

    def _drawn(self) -> str:
        nothing = self.published.sampling is Sampling.NOTHING
        return self.seeds if nothing else f"n = {self.seeds}"
