"""Policies, placements and allocation policies by name, with parameters.

A name is that of one of ours, ``FILE.py:NAME`` for what a file of the user's own defines, or, of a policy,
one that an installed package offers. The first runs nothing but our code, the others run theirs.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass, replace
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar, cast, runtime_checkable

import shadowprice.solvers
import shadowprice.solvers.gavel.policies
import shadowprice.solvers.placement
from shadowprice import entry_points
from shadowprice.errors import InputError
from shadowprice.instances.entries import expected_name
from shadowprice.instances.offers import Offers
from shadowprice.user_code import file_of, load, names_a_file, sentence, split_parameters

if TYPE_CHECKING:
    from shadowprice.solvers.gavel.allocation import AllocationPolicy
    from shadowprice.solvers.placement.protocol import Placement
    from shadowprice.solvers.policy import Policy


T = TypeVar("T")

COPIES = "hadare"
"""Name of the scheduler that runs a job as several copies; policies run it as one gang."""


def modules(package: ModuleType) -> Iterable[ModuleType]:
    """Modules of a package, in order of their names, packages in it left out."""
    for module in pkgutil.iter_modules(package.__path__):
        if not module.ispkg:
            yield importlib.import_module(f"{package.__name__}.{module.name}")


def policies() -> Mapping[str, Policy]:
    """All policies of :mod:`shadowprice.solvers` by name: the ``POLICIES`` of its modules."""
    return Offers(shadowprice.solvers, "POLICIES")


def placements() -> Mapping[str, Placement]:
    """All placements by name: the ``PLACEMENTS`` of the modules of :mod:`shadowprice.solvers.placement`."""
    return Offers(shadowprice.solvers.placement, "PLACEMENTS")


def allocations() -> Mapping[str, AllocationPolicy]:
    """All allocation policies by name: the ``ALLOCATIONS`` of :mod:`shadowprice.solvers.gavel.policies`."""
    return Offers(shadowprice.solvers.gavel.policies, "ALLOCATIONS")


def allocation(name: str) -> AllocationPolicy:
    """An allocation policy by name, with parameters after a colon: ``pop:parts=8``. They are then in its name.

    Raises
    ------
    InputError
        If the name, a parameter or its value is unknown; the message lists what there is. Also if a
        file that is named cannot be run, or has no allocation policy.
    """
    from shadowprice.solvers.gavel.earlier_names import WRITTEN_NOW

    known, base = allocations(), name.partition(":")[0]
    if base in WRITTEN_NOW:
        raise InputError(f"allocation policy {base!r}: is written {WRITTEN_NOW[base]} now")
    found: Any = resolve("allocation policy", name, known)
    named: AllocationPolicy = replace(found, name=name) if base in known else found
    return _with(named, "allocation policy", name, "name", "needs_steps", "packed", "allocate")


def policy(name: str) -> Policy:
    """A policy by name, with parameters after a colon: ``las2d:thresholds_gpu_s=3250/7200``.

    The first parameter may be given by its value alone where it is a name. Behind a value with parameters
    what the policy does not have goes on with these: ``gavel:min_cost:aware=true,slos=true,round_s=600``.

    Raises
    ------
    InputError
        If the name, a parameter or its value is unknown; the message lists what there is. Also if a
        file that is named cannot be run, or does not have one policy.
    """
    found: Policy = _one("policy", name, policies_named(name))
    return found


def policies_named(name: str) -> tuple[Policy, ...]:
    """Policies that a name stands for: one, unless a file or a package has a list under it.

    Raises
    ------
    InputError
        As of :func:`policy`.
    """
    found: tuple[Policy, ...] = _several(
        "policy", name, policies(), _expect_policy, entry_points.POLICIES
    )
    return found


def name_with_parameters(policy: Policy | str) -> str:
    """A policy's name with the parameters that are not as usual, in the form that :func:`policy` takes.

    Of a policy of one's own it tells two apart, and cannot be looked up. A parameter that is an object
    is told by its name; a log of prices, which decides nothing, is not told.

    >>> from shadowprice.solvers.classic.las import Las
    >>> name_with_parameters(Las()), name_with_parameters(Las(quantum_s=900.0))
    ('las', 'las:quantum_s=900.0')
    """
    if isinstance(policy, str):
        return policy
    if not is_dataclass(policy) or isinstance(policy, type):
        return policy.name
    from shadowprice.solvers.price_log import KeepsPrices  # it loads NumPy

    usual: Any = policies().get(policy.name)
    usual = usual if type(usual) is type(policy) else None
    untold = {"name", "log"} if isinstance(policy, KeepsPrices) else {"name"}
    told = [
        f"{each.name}={parameter_text(getattr(policy, each.name))}"
        for each in fields(policy)
        if each.init
        and each.name not in untold
        and getattr(policy, each.name) != (getattr(usual, each.name) if usual else _default(each))
    ]
    told.sort(key=lambda setting: ":" in setting)  # Behind a value's own parameters come no others.
    return f"{policy.name}:{','.join(told)}" if told else policy.name


def registered_name(policy: Policy) -> str | None:
    """Name with parameters under which :func:`policy` finds an equal policy of ours; None if there is none."""
    name = name_with_parameters(policy)
    base, _, settings = name.partition(":")
    known = policies()
    if base not in known:
        return None
    try:
        found = _configured(known[base], settings, base)
    except InputError:
        return None
    return name if found == policy else None


def require_policy(name: str) -> None:
    """Refuse the name of no policy, whatever parameters it is given with.

    For a name of ours texts are read and nothing is imported; what else has it is looked up.

    Raises
    ------
    InputError
        Listing what there is.
    """
    base = name.partition(":")[0]
    if base != COPIES and base not in policies():
        policies_named(name)


def resolve(
    what: str, name: str, known: Mapping[str, Any], *, fixed: frozenset[str] = frozenset()
) -> Any:
    """Look up a name, and set its parameters to those after the colon.

    Parameters
    ----------
    what
        What such a thing is called in messages.
    known
        Dataclasses by name.
    fixed
        Parameters that cannot be set here.

    Raises
    ------
    InputError
        If the name, a parameter or its value is unknown; the message lists what there is. Also if a
        file that is named cannot be run, or has a list of several there.
    """
    base, settings = _parted(what, name)
    if base in known:
        return _configured(known[base], settings, f"{what} {base!r}", fixed)
    return _one(what, name, _several(what, name, known, lambda offered, where: offered))


def placement(name: str) -> Placement:
    """A placement by name, with parameters after a colon: ``skew:pack_limit=0.3``.

    Raises
    ------
    InputError
        If the name, a parameter or its value is unknown; the message lists what there is. Also if a
        file that is named cannot be run, or has no placement.
    """
    found: Placement = resolve("placement", name, placements())
    return _with(found, "placement", name, "name", "allocator")


# What a name stands for.


def _parted(what: str, name: str) -> tuple[str, str]:
    """The name before the colon, and the parameters behind it."""
    base, colon, settings = name.partition(":")
    if colon and not settings:
        raise InputError(
            f"{what} {name!r}: nothing behind the colon, expected NAME=VALUE,... or a NAME in a file"
        )
    return base, settings


def _several(
    what: str,
    name: str,
    known: Mapping[str, Any],
    expect: Callable[[Any, str], Any],
    group: str | None = None,
) -> tuple[Any, ...]:
    """Objects that a name stands for; classes are called without arguments.

    Parameters
    ----------
    expect : callable
        Refuses an object of others' code that is none of these, given with how messages call it.
    group : str, optional
        Entry points among which it is looked up as well.
    """
    base, settings = _parted(what, name)
    if base in known:
        return (_configured(known[base], settings, f"{what} {base!r}"),)
    where = f"{what} {name!r}"
    if names_a_file(name):
        target, settings = split_parameters(name)
        found = load(target, what)
    else:
        offer = None if group is None else entry_points.offered(group, base)
        if offer is None:
            raise InputError(f"{what} {base!r}: {_expected(base, known, group)}")
        where, found = str(offer), offer.load()
    listed = found if isinstance(found, list | tuple) else (found,)
    return tuple(expect(_made(each, settings, where), where) for each in listed)


def _one(what: str, name: str, offered: tuple[Any, ...]) -> Any:
    if len(offered) != 1:
        raise InputError(f"{what} {name!r}: is a list of {len(offered)}, expected one")
    return offered[0]


def _expect_policy(offered: Any, where: str) -> Policy:
    # Who asks for a name that nobody has does not wait for the protocol.
    from shadowprice.solvers.policy_checks import expect_policy

    return expect_policy(offered, where)


def _expected(name: str, known: Mapping[str, Any], group: str | None) -> str:
    installed = [] if group is None else [offer.name for offer in entry_points.offers(group)]
    told = expected_name(name, {*known, *installed}, "shadowprice policies --all")
    return f"{told}, or FILE.py:NAME"


def _made(thing: Any, settings: str, where: str) -> Any:
    """An object of others' code with its parameters; an error of theirs is one of the input."""
    try:
        return _configured(thing() if isinstance(thing, type) else thing, settings, where)
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{where}: {sentence(error, file_of(thing))}") from error


def _with(offered: T, what: str, name: str, *attributes: str) -> T:
    """The same object, if it has some attributes."""
    missing = [each for each in attributes if not hasattr(offered, each)]
    if missing:
        raise InputError(
            f"{what} {name!r}: {type(offered).__name__} has no {', '.join(missing)}, expected an object with "
            f"{', '.join(attributes)}"
        )
    return offered


def _configured(item: Any, settings: str, where: str, fixed: frozenset[str] = frozenset()) -> Any:
    """The same object with the parameters that a text sets; fixed ones cannot be set."""
    if not settings:
        return item
    if not is_dataclass(item) or isinstance(item, type):
        raise InputError(f"{where} takes no parameters: it is no dataclass")
    parameters = [each for each in written_parameters(item) if each not in fixed]
    values: dict[str, Any] = {}
    inner = ""
    for k, setting in enumerate(settings.split(",")):
        key, equals, text = setting.partition("=")
        alone = not equals or ":" in key
        if k == 0 and alone and parameters and isinstance(getattr(item, parameters[0]), str):
            key, equals, text = parameters[0], "=", setting
        if inner and equals and key not in parameters:
            values[inner] += f",{setting}"
            continue
        if not equals or key not in parameters:
            listed = ", ".join(sorted(parameters)) or "none"
            raise InputError(
                f"{where}: parameter {setting!r}, expected NAME=VALUE with one of {listed}"
            )
        if inner and key in _inner_parameters(inner, values[inner]):
            raise InputError(
                f"{where}: {setting!r} behind {inner}={values[inner]}, which has a parameter {key} too; expected "
                f"it before {inner}="
            )
        values[key] = _value(getattr(item, key), text, f"{where}: parameter {key}")
        if isinstance(getattr(item, key), str) and _has_parameters(text):
            inner = key
    return replace(item, **values)


def written_parameters(item: Any) -> list[str]:
    """Parameters of a dataclass that a text can set, in its order."""
    written = (str, bool, int, float, tuple)
    return [
        each.name
        for each in fields(item)
        if each.init and each.name != "name" and isinstance(getattr(item, each.name), written)
    ]


def _has_parameters(name: str) -> bool:
    """True if a name, also of what a file defines, has parameters behind it."""
    return bool(split_parameters(name)[1]) if names_a_file(name) else ":" in name


def _inner_parameters(parameter: str, value: str) -> frozenset[str]:
    """Parameters of the allocation policy or placement that a parameter names, where it is one of ours."""
    ours: Mapping[str, Callable[[], Mapping[str, Any]]] = {
        "allocation": allocations,
        "placement": placements,
    }
    known, base = ours.get(parameter, dict)(), value.partition(":")[0]
    return frozenset(written_parameters(known[base]) if base in known else ())


def _default(parameter: Field[Any]) -> object:
    if parameter.default_factory is not MISSING:
        return parameter.default_factory()
    return parameter.default


def parameter_text(value: object) -> str:
    """A parameter's value as it is written."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return "/".join(map(parameter_text, value))
    if isinstance(value, str | int | float):
        return str(value)
    return str(getattr(value, "name", type(value).__name__))


def _value(default: object, text: str, where: str) -> object:
    try:
        if isinstance(default, tuple):
            return tuple(float(word) for word in text.split("/"))
        if isinstance(default, bool):
            return {"true": True, "false": False}[text]
        if isinstance(default, int):
            return int(text)
        if isinstance(default, float):
            return float(text)
    except (ValueError, KeyError):
        raise InputError(f"{where}: got {text!r}, expected a value like {default!r}") from None
    return text


# Options of a run that are a policy's, or a placement's, to follow: found on the object.
#
# The engine follows the options about when decisions are due, what runs are charged and on what
# their speeds depend, whatever the policy. The others go to the policy, by one rule: it takes an option
# if it has a parameter of that name, or says so itself, as :class:`Configurable`.


@runtime_checkable
class Configurable(Protocol):
    """A policy or a placement for which an option is more than a parameter of the same name."""

    @property
    def takes(self) -> frozenset[str]:
        """Names of these options."""

    def with_options(self, values: Mapping[str, Any]) -> Self:
        """The same policy or placement under values of these options."""


def taken(thing: object, among: Iterable[str]) -> frozenset[str]:
    """Options among some that a policy or a placement takes."""
    parameters = {each.name for each in fields(thing) if each.init} if is_dataclass(thing) else ()
    stated = thing.takes if isinstance(thing, Configurable) else ()
    return frozenset(among) & {*parameters, *stated}


def configured(thing: T, values: Mapping[str, Any]) -> T:
    """A policy or a placement under values of options that it takes."""
    stated = thing.takes if isinstance(thing, Configurable) else frozenset()
    own = {name: value for name, value in values.items() if name in stated}
    found: Any = cast(Any, thing).with_options(own) if own else thing
    parameters = {name: value for name, value in values.items() if name not in own}
    return cast(T, replace(found, **parameters) if parameters else found)
