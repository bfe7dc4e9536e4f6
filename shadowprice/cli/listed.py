"""``shadowprice policies`` and ``terms``: what there is by name, ours and that of installed packages."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from shadowprice.analysis.run_options import OF_THE_ENGINE
from shadowprice.cli.options import OPTION_OF, PresetOption, with_options
from shadowprice.cli.results import ResultForm, print_result
from shadowprice.cli.show import console, note, print_lines, print_rows
from shadowprice.docstrings import first_line
from shadowprice.entry_points import MODELS, POLICIES, offers
from shadowprice.errors import InputError
from shadowprice.solvers.about import about, first_clause, parameters

if TYPE_CHECKING:
    from shadowprice.execution.preset import Preset
    from shadowprice.execution.simulator import HasSimulator
    from shadowprice.instances.features import Feature
    from shadowprice.solvers.policy import Policy

OURS = "shadowprice"
"""Origin of what comes with this package."""


@with_options
def policies_command(
    name: Annotated[
        str | None,
        typer.Argument(
            help="One of them, or FILE.py:NAME (runs it): all of it, with its parameters."
        ),
    ] = None,
    preset: PresetOption = None,
    every: Annotated[
        bool, typer.Option("--all", help="All of them, not only those that one should know first.")
    ] = False,
    *,
    form: ResultForm,
) -> None:
    """List policies, a line each: what they know, whether they preempt, and what they do.

    With a name all that there is to say of one: what is proven of it, its source, its parameters and options. With
    --all, --json or --csv policies of installed packages are among them, and are imported; one that is broken is a line
    on stderr. A policy in a file of your own needs no list: it is FILE.py:NAME.
    """
    from shadowprice.execution.preset_registry import preset as find_preset

    if name is not None:
        if preset is not None:
            raise InputError(f"policy {name!r} and --preset {preset}: expected one of the two")
        _describe(name, form)
        return
    if preset is not None:
        published = find_preset(preset)
        record = {
            "preset": published.name,
            "source": published.source,
            "policies": list(published.policies),
            "placements": list(published.placements),
        }
        print_result(form, lambda: _show_preset(published), lambda: record)
        return
    rows = _policies() if every or form.option else _first_policies()
    print_result(form, lambda: _show_policies(rows, every), lambda: rows)


def _show_preset(preset: Preset) -> None:
    console.print(f"{preset.name}: {preset.source}")
    console.print("policies: " + ", ".join(preset.policies))
    console.print("placements: " + ", ".join(preset.placements))


def _show_policies(rows: Sequence[Mapping[str, Any]], every: bool) -> None:
    table = Table("policy", "knows", "preempts", "what it does", box=None, pad_edge=False)
    for column in table.columns[:3]:
        column.no_wrap = True
    for row in rows:
        preempts = "yes" if row["preempts"] else "no"
        origin = "" if row["from"] == OURS else f" (from {row['from']})"
        does = Text(_clause(row["does"]) + origin)
        table.add_row(Text(str(row["policy"])), str(row["knows"]), preempts, does)
    console.print(table)
    print_lines(
        "`shadowprice policies NAME`: what is proven of one, its source, parameters and options",
        *_other_names(every),
    )


FIRST_POLICIES = (
    "fifo",
    "easy",
    "srtf",
    "las2d",
    "hadar",
    "hadare",
    "asrpt",
    "synergy-tune",
    "gandiva",
    "gavel",
)
"""Those that one should know first: three classics, and one of each published system."""


def _describe(name: str, form: ResultForm) -> None:
    """One policy: the record of the list in full, and its parameters with their values under this name."""
    from shadowprice.execution.simulator import schedulers
    from shadowprice.solvers.registry import parameter_text, policy, resolve

    own = schedulers()
    thing = resolve("policy", name, own) if name.partition(":")[0] in own else policy(name)
    record = _record(name, thing, OURS)
    del record["from"]  # The list says it; here the name may be a file.
    record["about"] = (inspect.getdoc(type(thing)) or "").partition("\nParameters\n")[0].strip()
    record["parameters"] = [
        {**asdict(each), "value": parameter_text(each.value)} for each in parameters(thing)
    ]
    print_result(form, lambda: _show_policy(name, record), lambda: record)


def _show_policy(name: str, record: Mapping[str, Any]) -> None:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for key in ("policy", "about", "knows", "preempts", "loop", "guarantee", "source", "use"):
        text = ("no", "yes")[record[key]] if key == "preempts" else str(record[key])
        if text:
            table.add_row(key, Text(" ".join(text.split())))
    for line in _option_lines(record):
        table.add_row("options", Text(line))
    console.print(table)
    if not record["parameters"]:
        console.print("no parameters")
        return
    table = Table("parameter", "value", "type", "what it is")
    for column in table.columns:
        column.overflow = "fold"
    for each in record["parameters"]:
        table.add_row(*(Text(each[key]) for key in ("name", "value", "kind", "says")))
    console.print(table)
    print_lines(f"given as {name.partition(':')[0]}:NAME=VALUE,NAME=VALUE")


def _other_names(every: bool) -> Iterator[str]:
    """Lines on what else there is by name."""
    from shadowprice.execution.preset_registry import presets
    from shadowprice.execution.simulator import schedulers
    from shadowprice.solvers.registry import allocations, policies, written_parameters

    if not every:
        others = {**policies(), **schedulers()}.keys() - {*FIRST_POLICIES}
        yield f"--all: {len(others)} others, and those of installed packages"
        return
    shares = {name: ", ".join(written_parameters(each)) for name, each in allocations().items()}
    listed = (f"{name} ({takes})" if takes else name for name, takes in sorted(shares.items()))
    yield f"allocation policies of gavel, with what they take as NAME:PARAMETER=VALUE: {', '.join(listed)}"
    models = [f"{offer.name} (from {offer.distribution})" for offer in offers(MODELS)]
    if models:
        yield f"models of installed packages: {', '.join(models)}"
    yield f"--preset NAME: the policies of a published simulator, {', '.join(sorted(presets()))}"


def _first_policies() -> list[dict[str, Any]]:
    """One record each of those that one should know first."""
    from shadowprice.execution.simulator import schedulers
    from shadowprice.solvers.registry import policies

    known: dict[str, Policy | HasSimulator] = {**policies(), **schedulers()}
    return [_record(name, known[name], OURS) for name in FIRST_POLICIES]


def _policies() -> list[dict[str, Any]]:
    """One record a policy, by name; what is broken is said on stderr."""
    from shadowprice.execution.simulator import schedulers
    from shadowprice.solvers.registry import policies, policies_named

    known: dict[str, Policy | HasSimulator] = {**policies(), **schedulers()}
    rows = [_record(name, thing, OURS) for name, thing in known.items()]
    for offer in offers(POLICIES):
        try:
            if offer.name in known:
                raise InputError(f"{offer}: hidden by ours of that name")
            rows += [
                _record(offer.name, policy, offer.distribution)
                for policy in policies_named(offer.name)
            ]
        except InputError as error:
            note(str(error))
    return sorted(rows, key=lambda row: str(row["policy"]))


def _record(name: str, thing: Policy | HasSimulator, origin: str) -> dict[str, Any]:
    from shadowprice.analysis.preparation import options_of
    from shadowprice.execution.kernel.run import loop_of

    statements = about(thing)
    return {
        "policy": name,
        "knows": ", ".join(sorted(thing.knows)) or "nothing",
        "preempts": thing.preemptive,
        "does": first_line(type(thing).__doc__),
        "guarantee": statements.guarantee,
        "source": statements.source,
        "use": statements.use,
        "from": origin,
        "loop": loop_of(thing),
        **asdict(options_of(thing)),
    }


@with_options
def terms_command(
    name: Annotated[
        str | None, typer.Argument(help="One of them: its settings, and what it excludes.")
    ] = None,
    *,
    form: ResultForm,
) -> None:
    """List what an instance may say beyond nodes and jobs, and what brings it: --with, or columns and other options."""
    from shadowprice.instances.entries import expected_name, shown
    from shadowprice.instances.features import Feature

    if name is None:
        _list_terms(form)
        return
    names = [each.value for each in Feature]
    if name not in names:
        raise InputError(f"term {shown(name)}: {expected_name(name, names)}")
    record = _term_record(Feature(name))
    print_result(form, lambda: _print_term(record), lambda: record)


def _list_terms(form: ResultForm) -> None:
    from shadowprice.instances.features import Feature

    rows = [
        {key: _term_record(each)[key] for key in ("term", "is", "says", "given_by")}
        for each in Feature
    ]
    print_result(form, lambda: _show_terms(rows), lambda: rows)


def _show_terms(rows: Sequence[Mapping[str, Any]]) -> None:
    table = Table("term", "what it says", "given by", show_lines=True)
    table.columns[0].no_wrap = True
    for row in rows:
        table.add_row(Text(row["term"]), Text(row["says"]), Text("; ".join(row["given_by"])))
    console.print(table)
    print_lines(
        "`shadowprice terms NAME` shows the settings of one",
        "--with NAME:key=value,...: a comma begins the next key, and is written twice in a value: a,,b is a,b",
    )


def _term_record(feature: Feature) -> dict[str, Any]:
    """All that there is to say of a term."""
    from shadowprice.instances.terms.options.declared_settings import DeclaredSettings
    from shadowprice.instances.terms.registry import DECLARED, ORIGINS, SETTINGS
    from shadowprice.instances.terms.settings import settings_of

    term = SETTINGS.get(feature) or DECLARED.get(feature)
    sets = (SETTINGS.get(feature) or DeclaredSettings).sets
    flags = [] if term is None else [f"--with {feature}"]
    if feature in ORIGINS:
        flags.append(ORIGINS[feature])
    return {
        "term": feature.value,
        "is": feature.phrase,
        "says": feature.sentence,
        "given_by": flags,
        "settings": [] if term is None else [asdict(each) for each in settings_of(term)],
        "options": [] if term is None else list(sets),
        "example": "" if term is None else f"shadowprice {term.example}",
        "not_with": dict(_apart(feature)),
    }


def _apart(feature: Feature) -> Iterator[tuple[str, str]]:
    """Terms that do not go together with one, and why."""
    from shadowprice.instances.features import APART, Feature

    for each in Feature:
        reason = APART.get(frozenset((feature, each)))
        if reason is not None:
            yield each.value, reason


def _print_term(record: dict[str, Any]) -> None:
    print_lines(f"{record['term']}: {record['says']}")
    print_lines(f"given by {'; '.join(record['given_by'])}")
    if record["settings"]:
        print_rows(
            ("setting", "expected", "default", "unit", "what it is"),
            (
                (each["name"], each["expected"], _default(each), each["unit"], each["says"])
                for each in record["settings"]
            ),
        )
    if record["options"]:
        print_lines(
            f"in Python: RunOptions({', '.join(f'{name}=...' for name in record['options'])})"
        )
    if record["example"]:
        print_lines(f"example: {record['example']}")
    if record["not_with"]:
        print_rows(("not with", "because"), record["not_with"].items())


def _default(setting: Mapping[str, Any]) -> str:
    if setting["required"]:
        return "required"
    return "" if setting["default"] is None else str(setting["default"])


def _clause(text: object) -> str:
    return first_clause(str(text))


def _option_lines(row: Mapping[str, Any]) -> Iterator[str]:
    """Differences of a policy from the others in the options of a run that it takes."""
    more = [name for name in row["takes"] if name not in OF_THE_ENGINE]
    less = [name for name in row["refuses"] if name in OF_THE_ENGINE]
    if more:
        yield f"takes {', '.join(_named(more))}"
    if less:
        yield f"refuses {', '.join(_named(less))}"


def _named(names: Iterable[str]) -> list[str]:
    """Options on the command line of some of a run's; some only a program can set."""
    from shadowprice.instances.terms.registry import term_of_option

    flags = []
    for name in names:
        term = term_of_option(name)
        if term is not None:
            flags.append(f"--with {term}")
        elif name in OPTION_OF:
            flags.append(OPTION_OF[name])
    return list(dict.fromkeys(flags))
