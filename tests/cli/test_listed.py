"""One policy or generator in full, and the version."""

from __future__ import annotations

import json
from inspect import signature

import pytest
import typer
from typer.testing import CliRunner

from shadowprice.cli.app import app
from shadowprice.cli.generate import GENERATORS
from shadowprice.cli.listed import FIRST_POLICIES
from shadowprice.errors import InputError
from shadowprice.execution.simulator import schedulers
from shadowprice.instances.generators import generators
from shadowprice.solvers.about import parameters
from shadowprice.solvers.registry import parameter_text, policies, policy
from shadowprice.version import __version__


def said(*words: str) -> str:
    done = CliRunner().invoke(app, words, env={"COLUMNS": "200"}, catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def test_the_version() -> None:
    assert said("--version") == f"shadowprice {__version__}\n"


def test_the_help_of_generate_names_all_generators() -> None:
    assert GENERATORS.split(", ") == sorted(generators())
    command = typer.main.get_command(app).commands["generate"]
    told = next(each.help for each in command.params if each.name == "name")
    # The oldest Typer that is allowed drops the help of arguments.
    assert told is None or told.startswith(GENERATORS)


@pytest.mark.parametrize("name", [*policies(), *schedulers()])
def test_every_parameter_of_ours_is_described(name: str) -> None:
    thing = policies().get(name) or schedulers()[name]
    assert [each.name for each in parameters(thing) if not each.says] == []


def test_a_policy_is_shown_with_the_values_of_its_name() -> None:
    record = json.loads(said("policies", "las2d:thresholds_gpu_s=60/7200", "--json"))
    assert record["policy"] == "las2d:thresholds_gpu_s=60/7200"
    assert [each["name"] for each in record["parameters"]] == ["thresholds_gpu_s", "promote_knob"]
    assert record["parameters"][0]["value"] == "60.0/7200.0"
    assert "[GPU-s]" in said("policies", "las2d")
    assert "no parameters" in said("policies", "easy")
    assert "60.0" in said("policies", "hadare:round_s=60")


def test_a_value_is_told_in_the_form_in_which_it_is_given() -> None:
    for name in ("las2d", "gittins2d", "hadar"):
        usual = policy(name)
        for each in parameters(usual):
            if isinstance(each.value, float | tuple):
                assert policy(f"{name}:{each.name}={parameter_text(each.value)}") == usual


def test_a_policy_and_a_preset_are_one_too_many() -> None:
    with pytest.raises(InputError, match="expected one of the two"):
        said("policies", "fifo", "--preset", "tiresias")


@pytest.mark.parametrize("name", ["lognormal", "gavel-published", "recurrent"])
def test_a_generator_is_shown_with_its_parameters(name: str) -> None:
    record = json.loads(said("generate", name, "--json"))
    made = signature(generators()[name].generate).parameters
    assert [each["name"] for each in record["parameters"]] == list(made)
    assert name in said("generate")


@pytest.mark.parametrize("name", generators())
def test_every_parameter_of_a_generator_says_what_it_is(name: str) -> None:
    record = json.loads(said("generate", name, "--json"))
    assert [each["name"] for each in record["parameters"] if not each["says"]] == []


def test_policies_are_a_line_each_the_ten_that_one_should_know_first() -> None:
    def listed(*words: str) -> list[str]:
        """Names at the beginnings of lines; what goes on in the next line is indented."""
        _, *lines = said("policies", *words).splitlines()
        return [line.split()[0] for line in lines if line[:1].isalpha()]

    assert listed()[: len(FIRST_POLICIES)] == list(FIRST_POLICIES)
    every = [row["policy"] for row in json.loads(said("policies", "--json"))]
    assert every == sorted({*policies(), *schedulers()})
    assert listed("--all")[: len(every)] == every


@pytest.mark.parametrize("command", ["simulate", "compare"])
def test_what_most_runs_need_fits_on_one_screen(command: str) -> None:
    """Options of most runs in the first 40 lines at 100 columns, and no word of the help is cut at 80."""
    done = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "100", "TERM": "dumb"})
    if "[default: None]" in done.stdout:
        pytest.skip("the oldest Typer that is allowed says '[default: None]' of each option")
    screen = "\n".join(done.stdout.splitlines()[:40])
    assert all(f"{option} " in screen for option in ("--cluster", "--with", "--round", "--help"))
    done = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "80", "TERM": "dumb"})
    assert "…" not in done.stdout
