"""Evaluation, record and page of policies that are trusted; those of sealed ones are in test_scoring.py."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import ClassVar

import pytest

from shadowprice.errors import VerificationError
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.library.score.evaluation import Score, evaluate
from shadowprice.library.score.feedback import feedback
from shadowprice.library.score.page import headline, score_page
from shadowprice.library.score.ratios import LOST, decimal_text
from shadowprice.library.score.record import record_digest, score_record
from shadowprice.library.score.suites import ScoredInstance
from shadowprice.solvers.policy import Decision, Knowledge, State
from shadowprice.solvers.registry import policy
from support.tiny_suites import TINY, drawn


@cache
def instances() -> tuple[ScoredInstance, ...]:
    return drawn(TINY, 0)


@cache
def scored(name: str) -> Score:
    return evaluate(policy(name), TINY, instances(), 0)


@dataclass(frozen=True)
class Fails:
    """FIFO until one of the instances, on which it does something else."""

    how: str
    name: str = "fails"
    knows: ClassVar[frozenset[Knowledge]] = frozenset()
    preemptive: ClassVar[bool] = True

    def decide(self, state: State) -> Decision:
        fails = not state.environment.overheads.free and state.now_s > 0
        if fails and self.how == "crashes":
            raise ZeroDivisionError("no such thing\nas this")
        if fails and self.how == "stalls":
            return Decision(state)
        decision = Decision(state).start_all()
        if fails and self.how == "lies":
            decision.starts[0] = ((0, 99),)
        return decision


def test_a_score_is_made_of_its_ratios() -> None:
    found = scored("srtf")
    assert not found.lost
    assert found.geometric_mean >= 1
    assert found.combined <= 1 / found.geometric_mean
    assert all(each.ratio is not None and each.ratio >= 1 for each in found.results)
    assert found.worst.ratio == max(each.ratio or LOST for each in found.results)
    for each in found.results:
        assert each.measures is not None
        assert each.cost is not None
        mean_s = each.measures.mean_wait_s + float(each.scored.instance.shortest_s.mean())
        charged = each.measures.charged_gpu_s > 0
        assert charged == (each.scored.name.startswith("drawn-tiny-charges"))
        if not charged:
            flow_s = float(each.cost) / TICKS_PER_S
            assert flow_s == pytest.approx(mean_s * each.measures.jobs, rel=1e-12)


def test_who_knows_more_and_preempts_scores_better() -> None:
    assert scored("srtf").combined > scored("sjf").combined > scored("fifo").combined


def test_the_adversary_and_the_laws_are_part_of_it() -> None:
    found = scored("fifo")
    assert found.adversary is not None
    assert found.adversary.worst is not None
    assert found.adversary.worst.ratio > 1
    assert found.adversary.evaluations == TINY.evaluations
    assert found.laws is not None
    assert not any(each.broken for each in found.laws)


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("crashes", "ZeroDivisionError: no such thing"),
        ("lies", "expected each to be made by a method"),
        ("stalls", "wait"),
    ],
)
def test_one_instance_is_lost_and_the_others_count(how: str, why: str) -> None:
    found = evaluate(Fails(how), TINY, instances(), 0)
    (lost,) = found.lost
    assert lost.scored.name == "drawn-tiny-charges-0"
    assert why in lost.feedback
    assert lost.feedback.startswith("Lost: ")
    assert "\n" not in lost.feedback
    assert found.worst is lost
    assert (found.adversary, found.laws) == (None, None)
    alone = replace(found, results=found.results[:1])
    assert found.geometric_mean > alone.geometric_mean
    assert 0 < found.combined < Fraction(1, 30)
    told = json.loads(json.dumps(score_record(found)))["score"]
    assert told["lost"] == [lost.scored.name]
    assert told["worst"] == {"instance": lost.scored.name, "ratio": None}
    text = score_page(found)
    assert "1 instance of 2 instances lost" in headline(found)
    assert "Not looked for: an instance was lost" in text


def test_a_policy_that_is_lost_to_the_adversary_says_so() -> None:
    @dataclass(frozen=True)
    class Small:
        name: str = "small"
        knows: ClassVar[frozenset[Knowledge]] = frozenset()
        preemptive: ClassVar[bool] = False

        def decide(self, state: State) -> Decision:
            if state.total_gpus == TINY.families[0].gpus:
                raise ValueError("too few")
            return Decision(state).start_all()

    found = evaluate(Small(), TINY, instances(), 0)
    assert not found.lost
    assert found.adversary is not None
    assert found.adversary.worst is None
    assert "Lost on an instance of the adversary" in found.adversary.sentence


def test_the_record_is_the_same_again_and_apart_from_the_machine() -> None:
    one = score_record(scored("las"))
    again = score_record(evaluate(policy("las"), TINY, drawn(TINY, 0), 0))
    assert one["score"] == again["score"]
    assert one["sha256"] == again["sha256"]
    assert (
        one["sha256"] == score_record(replace(scored("las"), laws=None, adversary=None))["sha256"]
    )
    assert one["sha256"] != score_record(scored("fifo"))["sha256"]
    assert set(one["machine"]) == {"decisions", "decisions_per_s", "runs_s", "wall_s", "seal"}
    better = replace(instances()[0], best=instances()[0].bound)
    found = evaluate(policy("las"), replace(TINY, families=(), law_examples=0), (better,), 0)
    known = score_record(found)
    assert known["ratio_to_best_known"] == {better.name: known["score"]["instances"][0]["ratio"]}
    assert "ratio_to_best_known" not in known["score"]["instances"][0]
    text = json.dumps(one, allow_nan=False)
    assert json.loads(text)["score"]["combined_score"] == decimal_text(scored("las").combined)


def test_the_digest_does_not_depend_on_the_order_of_entries() -> None:
    assert record_digest({"a": 1, "b": 2}) == record_digest({"b": 2, "a": 1})
    assert record_digest({"a": 1}) != record_digest({"a": 2})


def test_a_bound_that_the_checker_does_not_accept_gives_no_score() -> None:
    one = instances()[0]
    wrong = replace(one, certificate=replace(one.certificate, ticks=one.bound + 1))
    with pytest.raises(VerificationError):
        evaluate(policy("fifo"), TINY, (wrong,), 0)


@pytest.mark.parametrize("name", ["fifo", "las"])
def test_the_page_says_what_the_score_says(name: str) -> None:
    found = scored(name)
    text = score_page(found, made_by="made here")
    assert "<script" not in text
    assert "made here" in text
    assert headline(found) in text
    for each in found.results:
        assert each.feedback.split(":")[0] in text
        assert each.ratio is not None
        assert decimal_text(each.ratio) in text
    assert score_page(found, made_by="made here") == text


def test_feedback_on_wide_gangs_slower_runs_and_no_waiting() -> None:
    one = scored("fifo").results[0].measures
    assert one is not None
    fair = replace(one, wide_jobs=2, wide_gpus=4, wide_wait_s=15.0, narrow_wait_s=10.0)
    assert "Wide gangs" not in feedback(fair, Fraction(20), Fraction(10), Fraction(5))
    unfair = replace(fair, wide_wait_s=15.1)
    assert (
        "Wide gangs starve: 2 jobs of 4 GPUs or more waited 15.1 s on average, the others 10 s."
        in (feedback(unfair, Fraction(20), Fraction(10), Fraction(5)))
    )
    none = replace(one, mean_wait_s=0.0, longest=(), mean_slower_s=7200.0, idle_gpu_s=0.0)
    text = feedback(none, Fraction(5), Fraction(5), Fraction(5))
    assert text.startswith("Optimal: it costs its bound")
    assert "No job waited. Slower GPUs and checkpoints took 2 h a job." in text
    assert "No GPU idled while a job waited that fits." in text
    assert "Slower" not in feedback(one, Fraction(20), Fraction(10), Fraction(5))


def test_feedback_says_what_was_lost_where() -> None:
    fifo = next(each for each in scored("fifo").results)
    assert "GPU-hours (" in fifo.feedback
    assert "idled while a job waited that would have fit" in fifo.feedback
    las = scored("las").results[1]
    assert "GPU-hours of starts and restarts" in las.feedback
    srtf = scored("srtf").results[0]
    assert "times the optimum" in srtf.feedback or srtf.feedback.startswith("Optimal")
