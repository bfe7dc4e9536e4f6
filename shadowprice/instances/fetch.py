"""Public data sets, downloaded on request into the user's cache and checked by SHA-256."""

from __future__ import annotations

from dataclasses import dataclass

from shadowprice.errors import InputError


@dataclass(frozen=True)
class DataSet:
    """A file at a public address.

    Parameters
    ----------
    url, sha256 : str
        Where it is, and what its bytes must hash to.
    licence, source : str
        Under what terms, and whom to cite.
    """

    url: str
    sha256: str
    licence: str
    source: str


_GAVEL = "https://raw.githubusercontent.com/stanford-futuredata/gavel/c4fa40097339e9608ab71fd64c8bdea96a5e4a4c/scheduler"


def _gavel(file: str, sha256: str) -> DataSet:
    source = "Narayanan et al., OSDI'20; github.com/stanford-futuredata/gavel"
    return DataSet(f"{_GAVEL}/{file}", sha256, "MIT", source)


DATASETS: dict[str, DataSet] = {
    "gavel-simulation-throughputs": _gavel(
        "simulation_throughputs.json",
        "17111f7295f03265fd9e5118d7eba31e3dd9d6e50a2e215c13ad3d3f91f74381",
    ),
    "gavel-physical-cluster-throughputs": _gavel(
        "physical_cluster_throughputs.json",
        "4b5acfe389951edf734df26caf5bbaacbbba2df60e340758c4ed220cd65f963c",
    ),
    "gavel-artifact-evaluation": _gavel(
        "traces/physical_cluster/artifact_evaluation.trace",
        "aa267474f78f61ef65ec26585957e7737e0f2f8cba7e5425d7e52e26146d15b6",
    ),
    "gavel-debug": _gavel(
        "traces/physical_cluster/debug.trace",
        "995884b79a7d529bfaba24a5281081d519e17f11c534d936a14497951377c0c6",
    ),
    "gavel-debug-v2": _gavel(
        "traces/physical_cluster/debug_v2.trace",
        "250e279e3aa79fe9633c121f7bc8519322cd294fc866243253912258c7dd3a76",
    ),
    "gavel-highmem-test": _gavel(
        "traces/physical_cluster/highmem_test.trace",
        "29507c1f06047505f0177374ab9a0a749be6094dc72e6ed484f025eabe13547f",
    ),
    "gavel-max-min-fairness": _gavel(
        "traces/physical_cluster/max_min_fairness.trace",
        "dc13589c23c7b77d37d3d1014ff499e0c1ffca2959ce35d0e4ce70b71247424b",
    ),
    "gavel-medium-test": _gavel(
        "traces/physical_cluster/medium_test.trace",
        "161ebef0f499a83bb00899a30f1701b533ddb47fd29cbd0ff1058b6c46daa5ff",
    ),
    "gavel-minimize-makespan": _gavel(
        "traces/physical_cluster/minimize_makespan.trace",
        "b00befc3fc2a62c1776fd70d978065e3fb1ae75fd06b37557f2425fe51556bc5",
    ),
    "gavel-small-test": _gavel(
        "traces/physical_cluster/small_test.trace",
        "1a216a80d1f40bc2b88a3edb5f14ff687560024c085a6392613618a47cbe54dc",
    ),
    "gavel-msr-seed0-103959": _gavel(
        "traces/msr/seed=0/103959.trace",
        "993c5d59d0b7447597e252b900670356623bda10dad0a4487588e3d839523442",
    ),
    "gavel-msr-seed0-23dbec": _gavel(
        "traces/msr/seed=0/23dbec.trace",
        "5e77c69605651395c7610f85678205709009d401a299ae16b5af47f7f04c2714",
    ),
    "gavel-msr-seed0-51b7ef": _gavel(
        "traces/msr/seed=0/51b7ef.trace",
        "56dfc3e66adbdf48f65db0881e4f31d7e81e8555fdaef6380605d011512e503f",
    ),
    "gavel-msr-seed0-795a4c": _gavel(
        "traces/msr/seed=0/795a4c.trace",
        "52a95b1f5b9bda0bd0bec1fd35d3ef04dd50d6da091b99bfed7296bc13cabab8",
    ),
    "gavel-msr-seed0-925e2b": _gavel(
        "traces/msr/seed=0/925e2b.trace",
        "8964aed38ba3a5e88addfc6402d3dc215b0693227cd89204c801815a7c92e833",
    ),
}


def fetch(name: str) -> str:
    """Path of a data set in the cache, downloaded if it is not there.

    Raises
    ------
    InputError
        If the name is unknown, the address cannot be reached, or the bytes are not as expected.
    """
    import pooch

    if name not in DATASETS:
        raise InputError(f"data set {name!r}: expected one of {', '.join(sorted(DATASETS))}")
    found = DATASETS[name]
    try:
        path = pooch.retrieve(
            found.url, known_hash=f"sha256:{found.sha256}", path=pooch.os_cache("shadowprice")
        )
    except (OSError, ValueError) as error:
        raise InputError(f"data set {name!r}: {error}") from error
    return str(path)
