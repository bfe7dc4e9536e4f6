"""Reductions of rows are NumPy's own, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest

from shadowprice.solvers.narrow_tables import across


@pytest.mark.parametrize("columns", range(1, 20))
def test_rows_are_reduced_as_numpy_does(columns: int) -> None:
    rng = np.random.default_rng(columns)
    table = rng.lognormal(0.0, 9.0, (300, columns)) * rng.choice([-1.0, 0.0, 1.0], (300, columns))
    for reduction in (np.add, np.maximum, np.logical_or, np.multiply, np.subtract):
        for each in (table, table > 0.0, (99 * table.clip(-1, 1)).astype(np.int8)):
            if each.dtype == bool and reduction is np.subtract:
                continue
            mine, numpys = across(reduction, each), reduction.reduce(each, axis=1)
            assert mine.dtype == numpys.dtype
            assert mine.tobytes() == numpys.tobytes()
            assert not np.shares_memory(mine, each)


def test_rows_of_no_columns() -> None:
    assert across(np.add, np.ones((3, 0))).tolist() == [0.0, 0.0, 0.0]
    assert across(np.logical_or, np.ones((2, 0))).tolist() == [False, False]
    with pytest.raises(ValueError, match="no identity"):
        across(np.maximum, np.ones((3, 0)))
