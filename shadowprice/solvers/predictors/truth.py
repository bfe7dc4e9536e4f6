"""Access of predictors to the true iterations: required, or refused."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import PolicyError


def refuse_truth(name: str, iterations: NDArray[np.float64] | None) -> None:
    """Raise if a predictor that sees only the past is given the true iterations."""
    if iterations is not None:
        raise PolicyError(f"predictor {name!r}: given true iterations, but is not clairvoyant")


def require_truth(name: str, iterations: NDArray[np.float64] | None) -> NDArray[np.float64]:
    """The true iterations, which a clairvoyant predictor cannot do without."""
    if iterations is None:
        raise PolicyError(f"predictor {name!r}: is clairvoyant, expected the true iterations")
    return np.asarray(iterations, dtype=np.float64)
