"""A battery of laws for policies of your own; needs hypothesis, which the ``test`` extra installs.

::

    from shadowprice.proofs.testing import laws

    test_my_policy = laws(MyPolicy())

gives one test a law under pytest, each searched by Hypothesis; docs/policies.md has an example.
"""

from __future__ import annotations

try:
    import hypothesis  # noqa: F401
except ImportError as error:
    raise ImportError(
        "shadowprice.proofs.testing: hypothesis is not installed, "
        "expected pip install 'shadowprice[test]'"
    ) from error

from shadowprice.proofs.testing.battery import laws
from shadowprice.proofs.testing.subject import Case, LawBroken, Scaling

__all__ = ["Case", "LawBroken", "Scaling", "laws"]
