"""Options about what speeds of runs depend on: a word for what was published, or a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from shadowprice.errors import InputError

if TYPE_CHECKING:
    from shadowprice.instances.speeds.elasticity import Growth
    from shadowprice.instances.speeds.interference import Interference
    from shadowprice.instances.speeds.model_skew import ModelSkews
    from shadowprice.instances.speeds.profiles import Profiles


PUBLISHED = "published"


def read_conditions(
    profiles: str | None, spread: str | None, grow: str | None, interference: str | None
) -> dict[str, Any]:
    """The switches of ``Semantics`` that these options describe.

    Raises
    ------
    InputError
        If a file or an option is not as expected.
    """
    return {
        "profiles": None if profiles is None else _profiles(profiles),
        "skews": None if spread is None else _skews(spread),
        "growth": None if grow is None else _growth(grow),
        "interference": None if interference is None else _interference(interference),
    }


def _profiles(text: str) -> Profiles:
    from shadowprice.instances.speeds.profiles import Profiles

    return Profiles.synthetic() if text == PUBLISHED else Profiles.load(Path(text))


def _skews(text: str) -> ModelSkews:
    from shadowprice.instances.speeds.model_skew import ModelSkews, published_skews

    return published_skews() if text == PUBLISHED else ModelSkews.load(Path(text))


def _growth(text: str) -> Growth:
    from shadowprice.instances.speeds.elasticity import Growth

    return Growth.parse(text)


def _interference(text: str) -> Interference:
    """A JSON object of models and their GPU utilisations."""
    from shadowprice.instances.entries import is_number
    from shadowprice.instances.files import read_json
    from shadowprice.instances.speeds.interference import Interference

    if text == PUBLISHED:
        return Interference()
    path = Path(text)
    given = read_json(path)
    good = isinstance(given, dict) and all(map(is_number, given.values()))
    if not good:
        raise InputError(f"{path}: expected an object of models and their GPU utilisations")
    try:
        return Interference({str(model): float(u) for model, u in given.items()})
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
