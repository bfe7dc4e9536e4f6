"""Write the digests of the models as published: ``python docs/publish_models.py``.

To be run after a change of a file of ``shadowprice/models/`` once the methods that know that model
without looking at its rows know the change; see :mod:`shadowprice.solvers.programs.published`.
"""

from __future__ import annotations

import json

from shadowprice.solvers.programs.published import DIGESTS, digest


def digests() -> dict[str, str]:
    """The digest of each file of the models, by name."""
    files = sorted(DIGESTS.parent.glob("*.py"))
    return {path.stem: digest(path.read_text("utf-8")) for path in files if path.stem != "__init__"}


if __name__ == "__main__":
    DIGESTS.write_text(json.dumps(digests(), indent=1) + "\n", "utf-8")
