"""``shadowprice policies`` and ``traces``: what there is by name, ours and that of installed packages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.table import Table

from shadowprice.analysis.semantics import OF_THE_ENGINE, OF_THE_POLICY
from shadowprice.cli.options import OPTION_OF, JsonOption, PresetOption
from shadowprice.cli.show import console, stderr
from shadowprice.entry_points import MODELS, POLICIES, TRACES, offers
from shadowprice.errors import InputError
from shadowprice.solvers.about import about, first_clause

if TYPE_CHECKING:
    from shadowprice.execution.own_loop import RunsItself
    from shadowprice.solvers.policy import Policy

OURS = "shadowprice"
"""Origin of what comes with this package."""


def policies_command(preset: PresetOption = None, as_json: JsonOption = False) -> None:
    """List policies: what they know, whether they preempt, what is proven of them, and where they are from.

    Policies and models of installed packages are among them, and are imported; one that is broken is a line
    on stderr. A policy in a file of your own needs no list: it is FILE.py:NAME.
    """
    from shadowprice.execution.kernel.run import ENGINE, RULE
    from shadowprice.execution.presets.registry import preset as find_preset

    if preset is not None:
        found = find_preset(preset)
        console.print(f"{found.name}: {found.source}")
        console.print("policies: " + ", ".join(found.policies))
        console.print("placements: " + ", ".join(found.placements))
        return
    rows = _policies()
    if as_json:
        print(json.dumps(rows))
        return
    table = Table("policy", "knows", "preempts", "what it does; guarantee; source", show_lines=True)
    table.columns[0].no_wrap = True
    for row in rows:
        preempts = "yes" if row["preempts"] else "no"
        told = (row["does"], row["guarantee"], row["source"])
        clauses = [*filter(None, map(_clause, told)), *_switch_lines(row)]
        if row["loop"] != ENGINE:
            clauses.append(f"index: {row['loop']}")
        if row["use"]:
            clauses.append(f"use {row['use']}")
        if row["from"] != OURS:
            clauses.append(f"from {row['from']}")
        table.add_row(str(row["policy"]), str(row["knows"]), preempts, "\n".join(clauses))
    console.print(table)
    _print_other_names()
    console.print(RULE, highlight=False)


def _print_other_names() -> None:
    from shadowprice.execution.presets.registry import presets
    from shadowprice.instances.generators import generators
    from shadowprice.solvers.registry import allocations

    console.print(
        f"The engine's switches go with every policy that does not refuse them here: "
        f"{', '.join(_named(OF_THE_ENGINE))}. Others only with those that take them here: "
        f"{', '.join(_named(OF_THE_POLICY))}.",
        highlight=False,
    )
    console.print("allocation policies: " + ", ".join(sorted(allocations())))
    models = [f"{offer.name} (from {offer.distribution})" for offer in offers(MODELS)]
    if models:
        console.print("models of installed packages: " + ", ".join(models))
    console.print(
        "generators: "
        + ", ".join(sorted(generators()))
        + "; presets: "
        + ", ".join(sorted(presets()))
    )


def _policies() -> list[dict[str, Any]]:
    """One record a policy, by name; what is broken is said on stderr."""
    from shadowprice.execution.own_loop import schedulers
    from shadowprice.solvers.registry import policies, policies_named

    known: dict[str, Policy | RunsItself] = {**policies(), **schedulers()}
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
            _report(error)
    return sorted(rows, key=lambda row: str(row["policy"]))


def _record(name: str, thing: Policy | RunsItself, origin: str) -> dict[str, Any]:
    from shadowprice.analysis.settle import switches_of
    from shadowprice.execution.kernel.run import loop_of

    statements = about(thing)
    return {
        "policy": name,
        "knows": ", ".join(sorted(thing.knows)) or "nothing",
        "preempts": thing.preemptive,
        "does": _first_line(type(thing).__doc__),
        "guarantee": statements.guarantee,
        "source": statements.source,
        "use": statements.use,
        "from": origin,
        "loop": loop_of(thing),
        **asdict(switches_of(thing)),
    }


def traces_command(as_json: JsonOption = False) -> None:
    """List formats of traces: what each is, and where its importer is from.

    Importers of installed packages are among them, and are imported; one that is broken is a line on stderr.
    """
    from shadowprice.instances.traces import importers, installed_importer

    known = importers()
    rows = [
        {"format": name, "is": _first_line(module.__doc__), "from": OURS}
        for name, module in sorted(known.items())
    ]
    for offer in offers(TRACES):
        try:
            if offer.name in known:
                raise InputError(f"{offer}: hidden by ours of that name")
            importer = installed_importer(offer)
        except InputError as error:
            _report(error)
        else:
            told = _first_line(importer.__doc__)
            rows.append({"format": offer.name, "is": told, "from": offer.distribution})
    if as_json:
        print(json.dumps(rows))
        return
    table = Table("format", "what it is", "from")
    for row in rows:
        table.add_row(row["format"], row["is"], row["from"])
    console.print(table)


def _report(error: InputError) -> None:
    stderr.print(str(error), style="yellow", markup=False, highlight=False, soft_wrap=True)


def _first_line(text: str | None) -> str:
    return (text or "").strip().partition("\n")[0]


def _clause(text: object) -> str:
    return first_clause(str(text))


def _switch_lines(row: Mapping[str, Any]) -> Iterator[str]:
    """Differences of a policy from the others in the switches of a run that it takes."""
    more = [name for name in row["takes"] if name not in OF_THE_ENGINE]
    less = [name for name in row["refuses"] if name in OF_THE_ENGINE]
    if more:
        yield f"takes {', '.join(_named(more))}"
    if less:
        yield f"refuses {', '.join(_named(less))}"


def _named(switches: Iterable[str]) -> list[str]:
    """Options that set some switches; some only a program can set."""
    return [OPTION_OF[name] for name in switches if name in OPTION_OF]
