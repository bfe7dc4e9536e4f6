"""What an author of a policy reads: every member is described in the reference, and the example keeps its laws."""

from __future__ import annotations

import re
import sys

import pytest

from shadowprice.proofs.testing import laws
from shadowprice.solvers import policy as described
from shadowprice.solvers.job_columns import JobColumns
from shadowprice.solvers.knowledge import Knowledge
from shadowprice.solvers.policy import Decision, Policy
from shadowprice.solvers.registry import policy
from shadowprice.solvers.state import State
from support.paths import ROOT

sys.path.insert(0, str(ROOT / "docs" / "sphinx_extensions"))

import reference_pages

EXAMPLE = ROOT / "examples" / "policies" / "narrowest_first.py"


@pytest.mark.parametrize("owner", [Policy, State, JobColumns, Decision])
def test_all_that_is_public_is_described(owner: type) -> None:
    assert owner.__doc__
    for name, member in vars(owner).items():
        slot = type(member).__name__ == "member_descriptor"
        if (
            not name.startswith("_")
            and not slot
            and (callable(member) or isinstance(member, property))
        ):
            assert getattr(member, "__doc__", None), name


@pytest.mark.parametrize("owner", [State, JobColumns, Decision])
def test_attributes_are_in_the_docstring_of_their_class(owner: type) -> None:
    for name in owner.__slots__:
        if not name.startswith("_"):
            assert re.search(rf"(?m)^ *(\w+, )*{name}(, \w+)* : ", owner.__doc__ or ""), name


def test_the_reference_has_the_module_that_exports_them() -> None:
    assert {Decision, JobColumns, Knowledge, Policy, State} == {
        getattr(described, name) for name in described.__all__
    }
    text = reference_pages.pages()["reference/policies.rst"]
    assert ".. automodule:: shadowprice.solvers.policy\n   :members:\n" in text


test_example = laws(policy(f"{EXAMPLE}:NarrowestFirst"), times=("patience_s",), examples=10)
