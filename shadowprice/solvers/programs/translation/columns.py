"""Columns of a programme from the Vars of a Pyomo model: bounds, kinds, and what data change in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray

from shadowprice.errors import SolverError
from shadowprice.models.rule_cases import trace_rule
from shadowprice.solvers.programs.translation.affine import Frame, Number, Value
from shadowprice.solvers.programs.translation.index_sets import NotTraceable
from shadowprice.solvers.programs.translation.templates import Walker

INFINITY = float("inf")
_NUMBERS = (int, float, np.integer, np.floating)


@dataclass
class VarColumns:
    """Bounds and kinds of the columns of one Var.

    Parameters
    ----------
    lower, upper : ndarray, shape (size,)
    integer : ndarray of bool, shape (size,)
    changing : list of (ndarray, ndarray or slice, Value)
        One of the first two arrays, entries of it, and what they follow from when Params change.
    set_alone : list of (int, float, float)
        Columns whose bounds were set by themselves, or fixed, and those bounds.
    """

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    integer: NDArray[np.bool_]
    changing: list[tuple[NDArray[np.float64], Any, Value]] = field(default_factory=list)
    set_alone: list[tuple[int, float, float]] = field(default_factory=list)

    def fill(self, changed: set[int] | None) -> bool:
        """Follow the Params that changed, all if None; whether a bound may have."""
        stale = False
        for array, where, value in self.changing:
            if changed is None or value.needs & changed:
                array[where], stale = value.get(), True
        if stale:
            for k, lower, upper in self.set_alone:
                self.lower[k], self.upper[k] = lower, upper
        return stale


def columns_of(variable: Any, size: int, walker: Walker) -> VarColumns:
    """Columns of a Var, in the order of its index set.

    Members of a sparse Var are not made: the rule of its bounds is traced.

    Raises
    ------
    SolverError
        If a member is fixed without a value.
    """
    found = VarColumns(
        np.full(size, -INFINITY), np.full(size, INFINITY), np.zeros(size, dtype=np.bool_)
    )
    sparse = variable.is_indexed() and not variable._dense  # noqa: SLF001
    if sparse and not _rules_of_all(variable, found, walker):
        for index in variable.index_set():
            variable[index]
    if variable._data:  # noqa: SLF001
        _members_set(variable, found, walker)
    found.fill(None)
    return found


def _rules_of_all(variable: Any, columns: VarColumns, walker: Walker) -> bool:
    """Bounds and kind from the rules of the Var for all its members; False if one has its own."""
    bounds, domain = variable._rule_bounds, variable._rule_domain  # noqa: SLF001
    block = variable.parent_block()
    if not domain.constant():
        return False
    like = pyo.Var(domain=domain(block, None, variable))
    like.construct()
    low, high = like.bounds
    columns.lower[:] = -INFINITY if low is None else low
    columns.upper[:] = INFINITY if high is None else high
    columns.integer[:] = not like.is_continuous()
    if bounds is None:
        return True
    frame = Frame(len(columns.lower), {})
    if bounds.constant():
        _add_rule(columns, bounds(block, None), frame, slice(None), walker)
        return True
    try:
        cases = trace_rule(block, bounds, variable.index_set())
        members = walker.members(variable.index_set()).columns
        ids = [template._id for template in cases[0].templates]  # noqa: SLF001
        frame = Frame(len(columns.lower), dict(zip(ids, members, strict=True)))
        for case in cases:
            where = walker.where(case.conditions, frame)
            inner = frame if where is None else frame.selected(where)
            _add_rule(
                columns, case.expression, inner, slice(None) if where is None else where, walker
            )
    except Exception:  # Whatever a rule raises that was not written for templates.
        columns.changing.clear()
        return False
    return True


def _add_rule(
    columns: VarColumns, rule: Sequence[Any], frame: Frame, where: Any, walker: Walker
) -> None:
    """Bounds by one expression each; what the domain says holds as well."""
    for array, side, tighter in zip(
        (columns.lower, columns.upper), rule, (np.maximum, np.minimum), strict=True
    ):
        if side is None:
            continue
        affine = walker.walk(side, frame)
        if affine.terms:
            raise NotTraceable("a bound depends on a variable")
        own = array[where].copy()

        def tight(number: Number, own: Any = own, tighter: Any = tighter) -> Number:
            return np.asarray(tighter(own, number), dtype=np.float64)

        columns.changing.append((array, where, affine.constant.then(tight)))


def _members_set(variable: Any, columns: VarColumns, walker: Walker) -> None:
    """Members that exist: dense ones, and those that somebody has asked for."""
    members = variable._data  # noqa: SLF001
    positions = positions_of(variable, list(members), walker)
    domains: dict[int, tuple[float, float, bool]] = {}
    for k, each in zip(positions, members.values(), strict=True):
        if id(each.domain) not in domains:
            low, high = each.domain.bounds()
            domains[id(each.domain)] = (
                -INFINITY if low is None else float(low),
                INFINITY if high is None else float(high),
                not each.is_continuous(),
            )
        low, high, columns.integer[k] = domains[id(each.domain)]
        if each.fixed:
            if each.value is None:
                raise SolverError(f"variable {each.name} is fixed, but has no value")
            low = high = float(each.value)
            columns.integer[k] &= low == np.floor(low)
        elif not _plain(each._lb) or not _plain(each._ub):  # noqa: SLF001
            columns.lower[k], columns.upper[k] = low, high
            own = (each._lb, each._ub)  # noqa: SLF001
            _add_rule(columns, own, Frame(1, {}), slice(k, k + 1), walker)
            continue
        else:
            low = low if each._lb is None else max(low, each._lb)  # noqa: SLF001
            high = high if each._ub is None else min(high, each._ub)  # noqa: SLF001
        columns.lower[k], columns.upper[k] = low, high
        if columns.changing:
            columns.set_alone.append((k, low, high))


def _plain(bound: Any) -> bool:
    return bound is None or isinstance(bound, _NUMBERS)


def positions_of(component: Any, keys: list[Any], walker: Walker) -> list[int]:
    """Positions of members of a component in its index set."""
    if not component.is_indexed():
        return [0]
    members = walker.members(component.index_set())
    if len(keys) == members.size:
        place = {key: k for k, key in enumerate(component.index_set())}
        return [place[key] for key in keys]
    rows = [key if isinstance(key, tuple) else (key,) for key in keys]
    columns = [
        np.array([walker.codes.code(each) for each in part]) for part in zip(*rows, strict=True)
    ]
    found: list[int] = members.positions(columns).tolist()
    return found
