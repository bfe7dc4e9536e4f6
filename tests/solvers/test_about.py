"""What `shadowprice policies` says of every policy comes from the policy's own file."""

import importlib.util
import json
import sys

import pytest

from shadowprice.execution.simulator import schedulers
from shadowprice.solvers.about import About, about, first_clause
from shadowprice.solvers.registry import policies


@pytest.mark.parametrize("name", sorted({**policies(), **schedulers()}))
def test_every_policy_says_where_it_is_from_and_what_it_guarantees(name):
    found = about({**policies(), **schedulers()}[name])
    assert len(found.source) > 5
    assert len(found.guarantee) > 3
    # Short enough for a table.
    assert len(first_clause(found.source)) < 200


def test_a_file_without_a_source_says_nothing():
    class Unsourced:
        pass

    assert about(Unsourced()) == About("", "")


def test_statements_end_where_another_begins(tmp_path):
    module = tmp_path / "mine.py"
    module.write_text(
        '"""Mine.\n\nSource: me,\nhere.\nGuarantee: none.\nUse: ``mine`` always;\nnever.\n\nMore.\n"""\n'
        "class Mine:\n    pass\n"
    )
    spec = importlib.util.spec_from_file_location("mine_with_statements", module)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    sys.modules["mine_with_statements"] = loaded
    try:
        assert about(loaded.Mine()) == About("me, here.", "none.", "mine always; never.")
    finally:
        del sys.modules["mine_with_statements"]


def test_a_policy_that_says_itself_what_is_proven_of_it_goes_before_its_file():
    class Own:
        def __init__(self, guarded: bool) -> None:
            self.guarantee = "a factor" if guarded else "none"

    assert [about(Own(guarded)).guarantee for guarded in (True, False)] == ["a factor", "none"]
    given = policies()["asrpt"]
    assert about(given).guarantee == given.guarantee != ""
    assert "see Asrpt.guarantee" not in about(given).guarantee


def test_first_clauses():
    assert (
        first_clause("Smith, vol. 3, 1956 (SPT). In Tiresias' words") == "Smith, vol. 3, 1956 (SPT)"
    )
    assert first_clause("none; it starves") == "none"
    assert first_clause("optimal.") == "optimal"


def test_the_command_lists_them(capsys):
    from shadowprice.cli.listed import policies_command as command

    command(as_json=True)
    listed = {row["policy"]: row for row in json.loads(capsys.readouterr().out)}
    assert listed["srtf"]["knows"] == "duration"
    assert listed["fifo"]["knows"] == "nothing"
    assert "Tiresias" in listed["las2d"]["source"]
    assert "hadare" in listed
    assert listed["fifo"]["use"] == ""
    assert "asrpt-early on clusters in use" in listed["asrpt"]["use"]
