r"""Public data sets: where they are, what their bytes must hash to, under what terms, and whom to cite.

Files of one folder belong together. Where a publisher names no SHA-256 the checksum is git's name of the content: the
SHA-1 of ``"blob <size>\0"`` and the bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from types import MappingProxyType

CC_BY = "CC-BY-4.0"


@dataclass(frozen=True)
class DataSet:
    """A file at public addresses.

    Parameters
    ----------
    folder : str
        What it belongs to; files of one folder are kept beside each other.
    urls : tuple of str
        Where it is: the publisher's address, then mirrors.
    checksum : str
        ``sha256:`` or ``git-blob:`` and hexadecimal digits.
    licence, source : str
        Under what terms, and whom to cite.
    what : str
        What is in it, and how it is read.
    """

    folder: str
    urls: tuple[str, ...]
    checksum: str
    licence: str
    source: str
    what: str

    @property
    def file(self) -> str:
        """Name of the file, the publisher's."""
        return PurePosixPath(self.urls[0]).name


def _github(repository: str, commit: str, path: str) -> tuple[str, ...]:
    """Addresses of a file of a public repository."""
    return (
        f"https://raw.githubusercontent.com/{repository}/{commit}/{path}",
        f"https://cdn.jsdelivr.net/gh/{repository}@{commit}/{path}",
    )


def _gavel(file: str, sha256: str) -> DataSet:
    commit = "c4fa40097339e9608ab71fd64c8bdea96a5e4a4c"
    urls = _github("stanford-futuredata/gavel", commit, f"scheduler/{file}")
    source = "Narayanan et al., OSDI'20; github.com/stanford-futuredata/gavel"
    what = "throughputs (--throughputs)" if file.endswith(".json") else "trace (format gavel)"
    return DataSet("gavel", urls, f"sha256:{sha256}", "MIT", source, what)


def _acme(cluster: str, blob: str) -> DataSet:
    commit, path = "6d6ac9cd15f3b01151ac6ba00ecddd9156f0dc73", f"data/job_trace/trace_{cluster}.csv"
    source = "Hu et al., NSDI'24; github.com/InternLM/AcmeTrace"
    urls = (
        _github("InternLM/AcmeTrace", commit, path)[0],
        _github("InternLM/AcmeTrace", "master", path)[0],
    )
    return DataSet(
        "acme", urls, f"git-blob:{blob}", CC_BY, source, f"log of {cluster.title()} (format acme)"
    )


def _pai(table: str, sha256: str, what: str) -> DataSet:
    url = f"https://aliopentrace.oss-cn-beijing.aliyuncs.com/v2020GPUTraces/{table}.tar.gz"
    source = "Weng et al., NSDI'22; github.com/alibaba/clusterdata, cluster-trace-gpu-v2020"
    return DataSet("pai2020", (url,), f"sha256:{sha256}", CC_BY, source, what)


def _openb(file: str, commit: str, sha256: str, what: str) -> DataSet:
    urls = _github("alibaba/clusterdata", commit, f"cluster-trace-gpu-v2023/csv/{file}.csv")
    source = "Weng et al., ATC'23; github.com/alibaba/clusterdata, cluster-trace-gpu-v2023"
    licence = "for research and study (terms of the repository)"
    return DataSet("openb2023", urls, f"sha256:{sha256}", licence, source, what)


def _spot(file: str, commit: str, sha256: str, what: str) -> DataSet:
    urls = _github("alibaba/clusterdata", commit, f"cluster-trace-v2026-spot-gpu/{file}")
    source = "Duan et al., ASPLOS'26; github.com/alibaba/clusterdata, cluster-trace-v2026-spot-gpu"
    licence = "terms of the repository"
    return DataSet("spot2026", urls, f"sha256:{sha256}", licence, source, what)


_DATA_SETS: dict[str, DataSet] = {
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
    "philly": DataSet(
        "philly",
        (
            "https://media.githubusercontent.com/media/msr-fiddle/philly-traces/"
            "29a1b87fa2d9ed80b83c9e3a37f3a88d382b031d/trace-data.tar.gz",
            "https://media.githubusercontent.com/media/msr-fiddle/philly-traces/master/trace-data.tar.gz",
        ),
        "sha256:2037ccf63a725a02be718b0e1aeee6142c90b7f62d0d849295120e9f6ba13d2c",
        CC_BY,
        "Jeon et al., ATC'19; github.com/msr-fiddle/philly-traces",
        "archive of 1.06 GB; unpack cluster_job_log (format philly-log)",
    ),
    "philly-flat": DataSet(
        "philly",
        _github(
            "pkusys/ElasticFlow",
            "04a0109a6acdd7d89f4cb31b6a6a7a128bee6bb0",
            "pollux/pollux_simulator/traces/philly.csv",
        ),
        "sha256:ebffb3dd1589bdf4e7bcd74496201c5ded1d557d498ee14f560463f37ec353da",
        CC_BY,
        "Jeon et al., ATC'19, flattened by Gu et al., ASPLOS'23; github.com/pkusys/ElasticFlow",
        "82,248 jobs of Philly, a row a job (format philly)",
    ),
    "helios": DataSet(
        "helios",
        _github(
            "S-Lab-System-Group/HeliosData", "159f0caeec16600b9b6017862952a36aae01c43f", "data.zip"
        ),
        "git-blob:1a48d5e0fb816fe9bbf1ad7086e7dec90923e5c6",
        CC_BY,
        "Hu et al., SC'21; github.com/S-Lab-System-Group/HeliosData",
        "archive; unpack data/CLUSTER/cluster_log.csv (format helios) and cluster_gpu_number.csv",
    ),
    "acme-seren": _acme("seren", "3133535311d36ecc404d4446e129036a1057c6f2"),
    "acme-kalos": _acme("kalos", "6e6c11a6308e403a2b75f3dec2d9cf48263c1a52"),
    "pai2020-jobs": _pai(
        "pai_job_table",
        "5aad7f7caac501136d14ed6a48e40546f825d7b0617a3a4f337e2348fe0a6cb0",
        "jobs (format pai2020); needs the task and group tables",
    ),
    "pai2020-tasks": _pai(
        "pai_task_table",
        "cd1d6dc3215d2a8607ccf6b6dd952b5db776df86926c73259fea7c1499ac40e5",
        "tasks of the jobs",
    ),
    "pai2020-groups": _pai(
        "pai_group_tag_table",
        "722fef30b7fb7aa50dabd79155614b5423a9d65cf45a9b26c590d57725423a14",
        "groups of jobs that recur",
    ),
    "pai2020-machines": _pai(
        "pai_machine_spec",
        "cc0d38a4045af1b1af8179de8b1b54b1ddd995e6160d6d061a6b1000f1276c2d",
        "machines",
    ),
    "openb2023-pods": _openb(
        "openb_pod_list_default",
        "50a91c7c74abe3b658188dc78ac1dd302970d40c",
        "1ee7ed79c27a3b0861cda8ddba86a004c6aba904caafa329a76ae93ca63834a8",
        "pods (format openb2023)",
    ),
    "openb2023-pods-gpuspec33": _openb(
        "openb_pod_list_gpuspec33",
        "b937928cf81f0edb6fe33634d01f2069a8d6ab17",
        "eca4f746db1e5b25864ad021b55ece3943e101a3ebd4574d09dcb95c46117652",
        "pods of which a third names GPU types (format openb2023)",
    ),
    "openb2023-nodes": _openb(
        "openb_node_list_all_node",
        "0c9677bb156ded9c63ca40d9aa54cd31d3e75061",
        "5a85c2af79c66a1efff8bbcbda430400aae56d8431370d738480967e1a9c6b15",
        "nodes",
    ),
    "spot2026-jobs": _spot(
        "job_info_df.csv",
        "c08f563115af39bad047353431bf745b4dee665c",
        "113ccee4c28f5c3bbaaca974cd164b9280b7d4c39e53b745443b28eea05e03dd",
        "jobs (format spot2026)",
    ),
    "spot2026-nodes": _spot(
        "node_info_df.csv",
        "0d3dcd97c6e674634758c908c775e11b94c17575",
        "1aba161961a5a4a1a61aa581383c5e5abe3400b59f8597ba8c4eef7597bc9d18",
        "nodes",
    ),
    "infinitehbd-faults": DataSet(
        "infinitehbd",
        _github(
            "stepfun-ai/InfiniteHBD-Trace",
            "7aacdc8c3d2352c5b784bc0ea31756e1620daed1",
            "fault_trace.json",
        ),
        "sha256:5871b881b341c9526223c025eda3a9bd2f0f875cf8d53441688ccd953e11b80d",
        "Apache-2.0",
        "StepFun, SIGCOMM'25; github.com/stepfun-ai/InfiniteHBD-Trace",
        "faults of 400 nodes over a year",
    ),
}

DATA_SETS = MappingProxyType(_DATA_SETS)
"""Data sets by name."""
