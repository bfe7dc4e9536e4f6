"""The evaluator of a program that writes policies, as OpenEvolve and SkyDiscover load it: ``evaluate(program_path)``.

What comes back are numbers, ``combined_score`` among them, and texts that the next prompt may show. Both frameworks
take a dict for numbers alone and have a record for both, which is used where one of them is running.
"""

import sys

from shadowprice.errors import ShadowpriceError
from shadowprice.library.score.ratios import LOST
from shadowprice.library.score.scoring import score

RECORDS = ("openevolve.evaluation_result", "skydiscover.evaluation.evaluation_result")
SUITE, SEED = "v1-quick", 0


def evaluate(program_path: str):
    """Score the policy ``Evolved`` of a file on the suite; a file that cannot be used scores 0."""
    try:
        result = score(f"{program_path}:Evolved", SUITE, seed=SEED)
    except ShadowpriceError as error:
        return as_result({"combined_score": 0.0}, {"error": str(error)})
    ratios = {each.scored.name: float(each.ratio or LOST) for each in result.results}
    metrics = {"combined_score": float(result.combined), "lost": float(len(result.lost)), **ratios}
    texts = {f"feedback on {each.scored.name}": each.feedback for each in result.results}
    if result.adversary is not None:
        texts["adversary"] = result.adversary.sentence
    return as_result(metrics, texts)


def as_result(metrics: dict[str, float], artifacts: dict[str, str]):
    """The record of the framework that is running; a dict of numbers and texts where none is."""
    for name in RECORDS:
        if name in sys.modules:
            return sys.modules[name].EvaluationResult(metrics=metrics, artifacts=artifacts)
    return {**metrics, **artifacts}
