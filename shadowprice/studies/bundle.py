"""Bundle of a study for artifact evaluation: one ZIP archive with RO-Crate metadata.

=============================  =======================================================================
``study.yaml``                 the study; files that it names lie in ``files/``
``files/``                     code of the study's own, and traces if asked for; else their checksums
``results/``                   what ``study run`` wrote
``report.html``                the report
``certificates/``              certificates, each checked, with ``index.csv``
``repeat.sh``                  repeats the study and compares its tables with ``results/``
``checksums.txt``              SHA-256 of the files that runs read
``ro-crate-metadata.json``     metadata (RO-Crate 1.x), written and validated by ``rocrate``
=============================  =======================================================================
"""

from __future__ import annotations

import csv
import hashlib
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import yaml

from shadowprice.analysis.certify import certify
from shadowprice.errors import InputError, VerificationError
from shadowprice.instances.objective import Objective
from shadowprice.studies.comparisons import rows_of
from shadowprice.studies.page import study_page
from shadowprice.studies.plan import PlannedRun, StudyPlan, plan_study
from shadowprice.studies.results import POINTS, STUDY, TABLES, StudyResults, read_results
from shadowprice.studies.statements import headline
from shadowprice.studies.study_file import StudyFile, read_study

RESULTS, FILES, CERTIFICATES = "results", "files", "certificates"
_EPOCH = (1980, 1, 1, 0, 0, 0)
_EXECUTABLE = 0o755


class Certificates(StrEnum):
    """Runs that are carried out again and certified."""

    FIRST = "first"
    """One seed of every setting and policy."""

    ALL = "all"
    NONE = "none"


@dataclass(frozen=True)
class BundleChoices:
    """Contents of a bundle.

    Parameters
    ----------
    certificates : Certificates
    budget_s : float
        Time for the bound of a certificate [s].
    with_traces : bool
        Whether traces themselves are in it, whose licences may forbid that; else their checksums.
    """

    certificates: Certificates = Certificates.FIRST
    budget_s: float = 5.0
    with_traces: bool = False


def write_bundle(
    file: Path,
    results_folder: Path,
    archive: Path,
    choices: BundleChoices,
    progress: Callable[[str], None] = lambda step: None,
) -> list[str]:
    """Write the archive; what is in it that has no certificate, and why, in lines.

    Raises
    ------
    InputError
        If the study or its results are not as expected, or the package ``rocrate`` is not installed.
    VerificationError
        If a run that is carried out again costs something else than its row says.
    """
    crate_of = _rocrate()
    study, results = read_study(file), read_results(results_folder)
    plan = plan_study(study, file.parent)
    if len(results.runs) < len(plan.runs):
        failed = results.record.failed
        first = "".join(f"; failed: {place}: {why}" for place, why in list(failed.items())[:1])
        raise InputError(
            f"{results_folder}: has {len(results.runs)} of {len(plan.runs)} runs, {len(failed)} failed; expected all: "
            f"`study run` computes what has no rows{first}"
        )
    with tempfile.TemporaryDirectory() as made:
        root = Path(made) / "bundle"
        root.mkdir()
        _write_inputs(study, plan, root, choices)
        _write_results(results, results_folder, root)
        told = list(_certificates(plan, results, root, choices, progress))
        progress("metadata")
        _write_crate(crate_of, root, results)
        _zip(root, archive)
    return told


def _rocrate() -> Any:
    try:
        from rocrate.rocrate import ROCrate
    except ImportError:
        raise InputError(
            "study bundle: the package rocrate is not installed; pip install 'shadowprice[study]'"
        ) from None
    return ROCrate


def _write_inputs(study: StudyFile, plan: StudyPlan, root: Path, choices: BundleChoices) -> None:
    """Study, files of its own, checksums and the script that repeats it."""
    found = study.to_plain()
    (root / FILES).mkdir()
    lines = []
    names: dict[str, str] = {}
    for path in map(Path, plan.files):
        name = path.name
        if name in names:
            raise InputError(f"{path}: has the name of {names[name]}, expected different names")
        names[name] = str(path)
        lines.append(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {FILES}/{name}\n")
        if choices.with_traces or path.suffix == ".py":
            shutil.copyfile(path, root / FILES / name)
    (root / "checksums.txt").write_text("".join(lines), encoding="utf-8")
    text = yaml.safe_dump(_moved(found, set(names)), sort_keys=False, allow_unicode=True)
    (root / "study.yaml").write_text(text, encoding="utf-8")
    script = root / "repeat.sh"
    script.write_text(_script(bool(names)), encoding="utf-8")
    script.chmod(_EXECUTABLE)


def _moved(value: Any, names: set[str]) -> Any:
    """The study with files under ``files/``, by their names."""
    if isinstance(value, dict):
        return {key: _moved(each, names) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_moved(each, names) for each in value]
    if isinstance(value, str):
        path, colon, rest = value.partition(":")
        name = Path(path).name
        if name in names and (not colon or name.endswith(".py")):
            return f"{FILES}/{name}{colon}{rest}"
    return value


def _script(has_files: bool) -> str:
    check = "sha256sum --check checksums.txt\n" if has_files else ""
    return f"""\
#!/bin/sh
# Repeats the study in this folder and compares the new tables with those in {RESULTS}/. Needs the versions that
# {RESULTS}/{STUDY} names; files that are not in {FILES}/ are to be put there first.
set -eu
cd "$(dirname "$0")"
{check}shadowprice study run study.yaml --output repeated --jobs 0
shadowprice study compare {RESULTS} repeated --same
for certificate in {CERTIFICATES}/*.jsonl; do
    if [ -e "$certificate" ]; then shadowprice check "$certificate"; fi
done
"""


def _write_results(results: StudyResults, folder: Path, root: Path) -> None:
    (root / RESULTS).mkdir()
    for name in (STUDY, POINTS, *(f"{name}.parquet" for name in TABLES)):
        shutil.copyfile(folder / name, root / RESULTS / name)
    (root / "report.html").write_text(study_page(results), encoding="utf-8")


def _certificates(
    plan: StudyPlan,
    results: StudyResults,
    root: Path,
    choices: BundleChoices,
    progress: Callable[[str], None],
) -> Iterator[str]:
    """Carry runs out again and write their certificates; runs that can have none are told."""
    folder = root / CERTIFICATES
    folder.mkdir()
    goals = (Objective.FLOW,) if plan.study.bounds is None else plan.study.bounds.objectives
    rows = []
    for number, run in enumerate(_chosen(plan, choices.certificates), start=1):
        progress(f"certifying {run}")
        outcome = run.task.outcome()
        for goal in goals:
            _expect_same(results, run, goal, outcome)
            try:
                found = certify(outcome, goal, budget_s=choices.budget_s)
            except InputError as error:
                yield f"{run}: no certificate: {error}"
                break
            name = f"{number:04d}-{goal}.jsonl"
            (folder / name).write_text(found.text, encoding="ascii")
            rows.append(
                {"file": name, **run.axes, "objective": str(goal), "claim": found.sentence()}
            )
    with (folder / "index.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]) if rows else ["file"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _chosen(plan: StudyPlan, which: Certificates) -> Iterator[PlannedRun]:
    seen: set[tuple[object, ...]] = set()
    for run in plan.runs if which is not Certificates.NONE else ():
        setting = tuple(value for name, value in run.axes.items() if name != "seed")
        if which is Certificates.ALL or setting not in seen:
            seen.add(setting)
            yield run


def _expect_same(results: StudyResults, run: PlannedRun, goal: Objective, outcome: Any) -> None:
    """Refuse a run that does not repeat."""
    recorded = rows_of(results.runs, run.axes)[f"total_{goal}_s"].iloc[0]
    cost = goal.cost_s(outcome.instance.workload, outcome.end_s)
    if recorded is not None and float(recorded) != float(cost):
        raise VerificationError(
            f"{run}: costs {cost!r} s in total {goal} time now, and its row says {recorded!r}"
        )


def _write_crate(crate_of: Any, root: Path, results: StudyResults) -> None:
    """RO-Crate metadata: every file, the action that made the results, and the software that did."""
    record = results.record
    crate = crate_of()
    crate.name = results.study.study
    crate.description = headline(results)
    crate.license = "see the licences of the traces; the package is under the MIT licence"
    described = {
        ".parquet": "application/vnd.apache.parquet",
        ".json": "application/json",
        ".jsonl": "application/jsonl",
        ".html": "text/html",
        ".csv": "text/csv",
        ".yaml": "application/yaml",
        ".sh": "application/x-sh",
        ".txt": "text/plain",
        ".py": "text/x-python",
    }
    files = {}
    for path in sorted(each for each in root.rglob("*") if each.is_file()):
        name = path.relative_to(root).as_posix()
        kind = described.get(path.suffix, "application/octet-stream")
        properties = {
            "encodingFormat": kind,
            "contentSize": str(path.stat().st_size),
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        }
        files[name] = crate.add_file(path, name, properties=properties)
    from rocrate.model import ContextEntity, SoftwareApplication

    software = crate.add(
        SoftwareApplication(
            crate,
            "#shadowprice",
            {"name": "shadowprice", "version": record.shadowprice, "softwareVersion": record.code},
        )
    )
    for name, number in record.libraries.items():
        library = crate.add(
            SoftwareApplication(crate, f"#{name}", {"name": name, "version": number})
        )
        software.append_to("softwareRequirements", library)
    for read, digest in record.files.items():
        name = Path(read).name
        if f"{FILES}/{name}" not in files:
            crate.add(
                ContextEntity(
                    crate,
                    f"#{name}",
                    properties={"@type": "CreativeWork", "name": name, "identifier": digest},
                )
            )
    results_files = [each for name, each in files.items() if name.startswith(f"{RESULTS}/")]
    crate.add_action(
        software,
        identifier="#study-run",
        object=[files["study.yaml"]],
        result=results_files,
        properties={"name": record.command or "shadowprice study run study.yaml"},
    )
    crate.write(root)


def _zip(root: Path, archive: Path) -> None:
    """Write the archive, times of files left out; it is there whole or not at all."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    unfinished = archive.with_name(f".{archive.name}")
    with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in sorted(each for each in root.rglob("*") if each.is_file()):
            entry = zipfile.ZipInfo(path.relative_to(root).as_posix(), _EPOCH)
            entry.external_attr = (path.stat().st_mode & 0o777) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            packed.writestr(entry, path.read_bytes())
    unfinished.replace(archive)
