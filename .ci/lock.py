"""The versions that `make` installs: exact ones in requirements/, and the lowest that are allowed.

``lock.py write`` resolves pyproject.toml with pip and writes one complete list for each of
``demo``, ``test``, ``dev`` and ``docs``; a list installs with ``pip install --no-deps -r``, so that nothing
else comes in. The newest versions that have wheels for Python 3.11 are taken, the oldest Python
that we support; what is needed only on another Python or system gets a line with a marker.
``lock.py check LIST`` fails unless this Python has the versions of a list and no others.
``lock.py newest LIST`` prints what pip would install today, which it installs nothing to know, and
``lock.py compare LIST FILE`` fails unless that is what a list has. ``lock.py lowest`` prints every
direct dependency at its lower bound.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import tomllib
from collections import deque
from collections.abc import Iterable, Iterator
from importlib.metadata import distributions
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "requirements"
# Each list, and the extras of pyproject.toml that it holds.
LISTS: dict[str, set[str]] = {"demo": set(), "test": {"test"}, "dev": {"dev"}, "docs": {"docs"}}
EVERYTHING = {"dev", "docs"}
"""Extras that together hold all lists."""
TARGETS = {"dev": "check"}
"""Targets of make that a list is for, where they have another name."""
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
SYSTEMS = (("linux", "x86_64"), ("linux", "aarch64"), ("darwin", "arm64"))
# What a wheel may be built for on each system.
WHEELS = {
    ("linux", "x86_64"): [f"manylinux_2_{minor}_x86_64" for minor in range(28, 4, -1)],
    ("linux", "aarch64"): [f"manylinux_2_{minor}_aarch64" for minor in range(28, 16, -1)],
    ("darwin", "arm64"): ["macosx_15_0_arm64"],
}
# Tags of before PEP 600.
WHEELS["linux", "x86_64"] += ["manylinux2014_x86_64", "manylinux2010_x86_64", "manylinux1_x86_64"]
WHEELS["linux", "aarch64"] += ["manylinux2014_aarch64"]


class Place(NamedTuple):
    """A Python on a system."""

    python: str
    system: str
    machine: str

    def environment(self) -> dict[str, str]:
        """Its values of markers."""
        return {
            "implementation_name": "cpython",
            "os_name": "posix",
            "platform_machine": self.machine,
            "platform_python_implementation": "CPython",
            "platform_system": {"linux": "Linux", "darwin": "Darwin"}[self.system],
            "python_full_version": f"{self.python}.0",
            "python_version": self.python,
            "sys_platform": self.system,
        }


PLACES = [Place(python, *system) for python, system in product(PYTHONS, SYSTEMS)]
# Markers from short to long; the first that holds at exactly the places in question is taken.
MARKERS = [
    *(f'sys_platform == "{system}"' for system in ("linux", "darwin")),
    *(f'python_version {sign} "{python}"' for python in PYTHONS[1:] for sign in ("<", ">=")),
    *(
        f'sys_platform == "{system}" and python_version {sign} "{python}"'
        for system in ("linux", "darwin")
        for python in PYTHONS[1:]
        for sign in ("<", ">=")
    ),
]


class Pin(NamedTuple):
    """A resolved distribution, and what it asks for."""

    name: str
    version: str
    requires: tuple[Requirement, ...]


def project() -> dict[str, Any]:
    """The tables of pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def resolve(requirements: Iterable[str]) -> dict[str, Pin]:
    """What pip would install for them into an empty environment of this Python."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        pip = (sys.executable, "-m", "pip", "install", "--quiet", "--only-binary", ":all:")
        subprocess.run(
            [*pip, "--dry-run", "--ignore-installed", "--report", str(report), *requirements],
            cwd=ROOT,
            check=True,
        )
        found = [each["metadata"] for each in json.loads(report.read_text())["install"]]
    return {
        canonicalize_name(each["name"]): Pin(
            each["name"], each["version"], tuple(map(Requirement, each.get("requires_dist", ())))
        )
        for each in found
    }


def asked(pins: dict[str, Pin], extras: set[str], place: Place) -> Iterator[Requirement]:
    """Every requirement that shadowprice with ``extras`` has at a place, direct or not."""
    build = [Requirement(each) for each in project()["build-system"]["requires"]]
    root = Requirement(f"shadowprice[{','.join(sorted(extras))}]")
    queue = deque([root, *build])
    seen: set[tuple[str, str]] = set()
    while queue:
        wanted = queue.popleft()
        yield wanted
        name = canonicalize_name(wanted.name)
        for extra in {"", *wanted.extras}:
            if name not in pins or (name, extra) in seen:
                continue
            seen.add((name, extra))
            values = {**place.environment(), "extra": extra}
            queue.extend(
                each
                for each in pins[name].requires
                if each.marker is None or each.marker.evaluate(values)
            )


def complete() -> dict[str, Pin]:
    """Pins for all that is needed at any place: pip itself resolves for this one only."""
    also: set[str] = {*project()["build-system"]["requires"]}
    while True:
        pins = resolve([f".[{','.join(sorted(EVERYTHING))}]", *sorted(also)])
        needed = [each for place in PLACES for each in asked(pins, EVERYTHING, place)]
        lacking = {
            f"{each.name}{each.specifier}"
            for each in needed
            if canonicalize_name(each.name) not in pins
        }
        if not lacking:
            return pins
        also |= lacking


def unmet(pins: dict[str, Pin]) -> list[str]:
    """Requirements that a pin does not satisfy at some place."""
    return sorted(
        {
            f"{each} on Python {place.python}, {place.system}: {pin.name} is {pin.version}"
            for place in PLACES
            for each in asked(pins, EVERYTHING, place)
            if (pin := pins[canonicalize_name(each.name)]).name != "shadowprice"
            and not each.specifier.contains(pin.version, prereleases=True)
        }
    )


def line(pin: Pin, places: set[Place]) -> str:
    """A pin for some places."""
    if places == set(PLACES):
        return f"{pin.name}=={pin.version}"
    for text in MARKERS:
        marker = Requirement(f"x; {text}").marker
        if marker and {each for each in PLACES if marker.evaluate(each.environment())} == places:
            return f"{pin.name}=={pin.version}; {text}"
    # Installed where it is not needed too.
    return f"{pin.name}=={pin.version}"


def lines(pins: dict[str, Pin], extras: set[str]) -> list[str]:
    """The pins of a list, by name."""
    places: dict[str, set[Place]] = {}
    for place in PLACES:
        for each in asked(pins, extras, place):
            places.setdefault(canonicalize_name(each.name), set()).add(place)
    del places["shadowprice"]
    return [line(pins[name], places[name]) for name in sorted(places)]


def without_wheels(path: Path, python: str, system: tuple[str, str]) -> str:
    """What pip says if a list cannot be installed from wheels alone; empty if it can."""
    platforms = [word for tag in WHEELS[system] for word in ("--platform", tag)]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "pip",
                "install",
                "--quiet",
                "--dry-run",
                "--no-deps",
                "--only-binary",
                ":all:",
                "--target",
                folder,
                "--python-version",
                python,
                *platforms,
                "-r",
                str(path),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    said = [text for text in done.stderr.splitlines() if text.startswith("ERROR")]
    return said[-1] if done.returncode else ""


def write() -> int:
    """The lists of requirements/; says for which Pythons and systems there are wheels."""
    if ".".join(map(str, sys.version_info[:2])) != PYTHONS[0]:
        print(f"error: expected Python {PYTHONS[0]}: a later one may take what this one lacks")
        return 2
    pins = complete()
    if problems := unmet(pins):
        print("error: no one version suits every Python:", *problems, sep="\n  ")
        return 1
    FOLDER.mkdir(exist_ok=True)
    for name, extras in LISTS.items():
        head = f"# Exact versions for `make {TARGETS.get(name, name)}`; `make lock` renews them."
        text = "\n".join([head, *lines(pins, extras), ""])
        (FOLDER / f"{name}.txt").write_text(text, encoding="utf-8")
    for python, system in product(PYTHONS, SYSTEMS):
        said = without_wheels(FOLDER / "test.txt", python, system)
        print(f"Python {python}, {' '.join(system):14} {said or 'wheels for everything'}")
    return 0


def pinned(path: Path) -> dict[str, str]:
    """Versions by name that a file has for this Python and system."""
    found = {}
    for text in path.read_text(encoding="utf-8").splitlines():
        if text.startswith("#"):
            continue
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate():
            version = str(requirement.specifier).removeprefix("==")
            found[canonicalize_name(requirement.name)] = version
    return found


def check(name: str) -> int:
    """0 if what is installed is what a list says, except pip and shadowprice itself."""
    installed = {canonicalize_name(each.metadata["Name"]): each.version for each in distributions()}
    return compare(installed, name)


def newest(name: str) -> int:
    """Print what pip would install for a list into an empty environment of this Python today."""
    wanted = f".[{','.join(sorted(LISTS[name]))}]" if LISTS[name] else "."
    pins = resolve([wanted, *project()["build-system"]["requires"]])
    print(
        *(
            f"{pin.name}=={pin.version}"
            for _, pin in sorted(pins.items())
            if pin.name != "shadowprice"
        ),
        sep="\n",
    )
    return 0


def compare(found: dict[str, str], name: str) -> int:
    """0 if versions are those of a list, but for pip and shadowprice itself; prints where they differ."""
    found = {key: found[key] for key in found.keys() - {"pip", "shadowprice"}}
    expected = pinned(FOLDER / f"{name}.txt")
    for key in sorted(found.keys() | expected.keys()):
        here, there = found.get(key, "not installed"), expected.get(key, "not in it")
        if here != there:
            print(f"error: {key}: {here}, requirements/{name}.txt: {there}")
    return int(found != expected)


def lowest() -> int:
    """Print each dependency of the package and of its tests at its lower bound."""
    table = project()["project"]
    texts = [*table["dependencies"], *table["optional-dependencies"]["test"]]
    for text in texts:
        requirement = Requirement(text)
        if requirement.name == "shadowprice":
            for extra in sorted(requirement.extras):
                texts += table["optional-dependencies"][extra]
            continue
        bounds = [each.version for each in requirement.specifier if each.operator == ">="]
        if len(bounds) != 1:
            print(f"error: {text}: expected one lower bound", file=sys.stderr)
            return 2
        print(f"{requirement.name}=={bounds[0]}")
    return 0


def main() -> int:
    """Do as asked."""
    match sys.argv[1:]:
        case ["write"]:
            return write()
        case ["check", name] if name in LISTS:
            return check(name)
        case ["newest", name] if name in LISTS:
            return newest(name)
        case ["compare", name, file] if name in LISTS:
            return compare(pinned(Path(file)), name)
        case ["lowest"]:
            return lowest()
    lists = "|".join(LISTS)
    print(f"usage: lock.py write | check {lists} | newest {lists} | compare {lists} FILE | lowest")
    return 2


if __name__ == "__main__":
    sys.exit(main())
