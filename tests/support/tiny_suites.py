"""A suite that is scored in seconds."""

from __future__ import annotations

from dataclasses import replace

from shadowprice.analysis.adversary.family import InstanceFamily
from shadowprice.instances.terms.charges import Overheads
from shadowprice.library.score.suites import DrawnLaw, ScoredInstance, Suite

TINY = Suite(
    "tiny",
    ("gangs-10-lognormal-1",),
    (
        DrawnLaw("drawn-tiny", "lognormal", 25, ("1x4", "2x4"), (1.2,)),
        DrawnLaw(
            "drawn-tiny-charges",
            "lognormal",
            20,
            ("2x2",),
            (1.5,),
            overheads=Overheads(start_s=10.0, restart_s=100.0),
        ),
    ),
    (InstanceFamily(jobs=3, gpus=2, max_arrival=2, max_work=3),),
    evaluations=30,
    law_examples=2,
)

QUICK = replace(TINY, name="quick", drawn=TINY.drawn[:1], families=(), law_examples=0)
"""Two instances alone."""
WHOLE = replace(TINY, name="whole", fixed=(), drawn=TINY.drawn[1:], evaluations=10, law_examples=1)
"""One instance, with adversary and laws."""


def drawn(suite: Suite, seed: int) -> tuple[ScoredInstance, ...]:
    """Those that a seed draws."""
    return tuple(law.draw(seed) for law in suite.drawn)
