"""What every test of modes asks: that no bound of theirs is above the least cost of a schedule."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.proofs.lower_bounds import modes as lb_mode
from shadowprice.solvers.offline.lagrangian import exact_prices
from shadowprice.solvers.offline.modes.job_modes import ModeTable
from shadowprice.solvers.offline.type_prices import (
    SpanPrices,
    best_prices,
    best_span_prices,
    busy_price_ticks,
    fluid_price_ticks,
)
from shadowprice.solvers.offline.typed_bound import TypedPrices, typed_bound, typed_prices
from support.typed_jobs import LeastCosts


def never_above(jobs: ModeTable, least: LeastCosts, data: st.DataObject) -> None:
    """Bounds of found prices and of drawn ones are at most the least costs."""
    at = best_prices(jobs)
    assert busy_price_ticks(jobs, at) / TICKS_PER_S <= least.total_s
    if len(set(jobs.weight)) == 1:
        fluid = jobs.weight[0] * fluid_price_ticks(jobs, at)
        assert fluid / TICKS_PER_S <= least.total_s
    assert best_span_prices(jobs)[0] / TICKS_PER_S <= least.last_s
    resources = len(jobs.capacity)
    whole = st.lists(st.integers(1, 9), min_size=resources, max_size=resources)
    prices = tuple(data.draw(whole))
    assert lb_mode.check(jobs, least.total_s, prices)
    n = len(jobs.release)
    own = tuple(data.draw(st.lists(st.integers(0, 9), min_size=n, max_size=n)))
    assert lb_mode.check(jobs, least.last_s, SpanPrices(prices, own))
    found = typed_prices(jobs, np.inf, 200)
    if found is not None:
        assert typed_bound(jobs, found) / TICKS_PER_S <= least.total_s
    drawn = data.draw(st.lists(st.floats(0, 3), min_size=4 * resources, max_size=4 * resources))
    bounds = (np.arange(5) + int(jobs.release.min()) // TICKS_PER_S) * TICKS_PER_S
    by_interval = TypedPrices(bounds, exact_prices(np.array(drawn).reshape(4, resources)))
    assert lb_mode.check(jobs, least.total_s, by_interval)
